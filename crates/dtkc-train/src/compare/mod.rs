//! Methods x datasets x restarts, and the paper's table of them.
//!
//! A cell is one method, or a variant of it, on one dataset: an ordinary run directory `OUT/DATASET/VARIANT`, made by a
//! process of its own, so that a method that breaks down costs its cell only, and the memory of each is its own. `OUT/cells.json` says what was
//! asked for and what became of it; all figures come from the runs themselves.
//!
//! | what | where |
//! |---|---|
//! | what is asked for, in words that `fit` knows | [`Asked`], [`PassedOn`] |
//! | a method with changes to its settings | [`Variant`] |
//! | the datasets, and which cells there are | [`plan`] |
//! | who begins with whose pretraining | [`pretraining`] |
//! | the folder and its record | [`Place`], [`Record`] |
//! | one cell in a process of its own; one after the other; on other machines | `child`, [`run()`], [`ready()`] |
//! | figures, tables, files | [`table`], `grid`, [`files`] |
//! | what the paper says | [`paper`] |

mod asked;
mod cell;
mod child;
pub mod files;
pub(crate) mod grid;
pub mod paper;
pub mod plan;
pub mod pretraining;
mod ready;
mod record;
mod run;
pub mod table;
mod variant;

pub use asked::{Asked, ClustersFor, PassedOn, Selection, of_all};
pub use cell::Cell;
pub use child::STOP_WITH_INPUT;
pub use ready::{Ready, ready};
pub use record::{CellRecord, Place, Record, SetRecord, State};
pub use run::{Failed, run};
pub use variant::{Variant, methods_of};
