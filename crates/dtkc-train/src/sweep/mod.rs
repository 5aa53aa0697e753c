//! One method with several values of its settings: a comparison of variants, seen as a table over the settings and as plots.
//!
//! A point of a sweep is a cell of a [comparison](crate::compare): its name is the method with its changes, its folder
//! `OUT/DATASET/VARIANT`, and all that makes and keeps cells is there. Here is only what points there are, and how they are
//! shown.
//!
//! | what | where |
//! |---|---|
//! | settings with their values, and the points they make | [`Axis`], [`points`] |
//! | the figures of all points | [`table()`] |
//! | the paper's two sweeps | [`Like`] |
//! | Markdown, CSV, JSON; plots | [`files`], `plot` |

mod axes;
pub mod files;
mod like;
mod plot;
mod table;

pub use axes::{Axis, Join, Point, points};
pub use like::Like;
pub use table::{PointFigures, Sweep, SweepTable, table};
