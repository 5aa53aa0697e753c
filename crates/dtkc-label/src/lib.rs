//! Labels whole collections of images or sequences with a model file.
//!
//! - [`source`] finds items, in one fixed order; [`feed`] cuts them into portions; [`pipeline`] decodes, labels and
//!   collects side by side, with bounded memory.
//! - [`journal`] keeps every finished row at once, so that nothing is lost to an interruption; [`output`] makes the
//!   file from it at the end, in one of four forms, and reads such files back.
//! - [`label()`] is a run from its settings to its summary; [`merge()`] joins the parts of a sharded one.
//! - [`keep`] takes columns of the input over to the output; [`duplicates`] finds images that are copies of each other.
//! - [`export`] writes files that labelling tools import; [`sort`], [`gallery`] and [`table`] are what people look at.

pub mod duplicates;
pub mod error;
pub mod export;
pub mod failures;
pub mod feed;
pub mod finish;
pub mod gallery;
pub mod job;
pub mod journal;
pub mod keep;
pub mod label;
pub mod layout;
pub mod merge;
pub mod output;
pub mod pipeline;
pub mod row;
pub mod sequences;
pub mod shard;
pub mod sort;
pub mod source;
pub mod spool;
pub mod table;
pub mod tally;

pub use error::LabelError;
pub use label::label;
pub use merge::merge;
