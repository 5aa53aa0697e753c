//! Methods x datasets x restarts, and the paper's table of them.
//!
//! A cell is one method on one dataset: an ordinary run directory `OUT/DATASET/METHOD`, made by a process of its own, so
//! that a method that breaks down costs its cell only, and the memory of each is its own. `OUT/cells.json` says what was
//! asked for and what became of it; all figures come from the runs themselves.
//!
//! | what | where |
//! |---|---|
//! | what is asked for, in words that `fit` knows | [`Asked`], [`PassedOn`] |
//! | the datasets, and which cells there are | [`plan`] |
//! | the folder and its record | [`Place`], [`Record`] |
//! | one cell in a process of its own; one after the other | `child`, [`run()`] |
//! | figures, tables, files | [`table`], `grid`, [`files`] |
//! | what the paper says | [`paper`] |

mod asked;
mod cell;
mod child;
pub mod files;
mod grid;
pub mod paper;
pub mod plan;
mod record;
mod run;
pub mod table;

pub use asked::{Asked, ClustersFor, PassedOn, Selection};
pub use cell::Cell;
pub use child::STOP_WITH_INPUT;
pub use record::{CellRecord, Place, Record, SetRecord, State};
pub use run::{Failed, run};
