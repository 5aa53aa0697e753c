//! Does what a network is trained for serve the clusters? The paper's experiment on the mismatch of objectives.
//!
//! An autoencoder of the network's own blocks, and methods that cluster, are trained as cells of a [comparison](crate::compare).
//! Every few epochs each run looks inside itself ([`InsideRecord`](crate::log::InsideRecord)): how well k-means on the last
//! block's output agrees with the labels, and whether the gradients of the other terms of the loss point the same way as those
//! that make clusters. Here is only what is asked for, and how it is shown.
//!
//! | what | where |
//! |---|---|
//! | what is compared, as cells | [`Subject`], [`Schedule`] |
//! | what was seen, from the runs' logs | [`table()`] |
//! | Markdown, CSV, JSON; plots | [`files`], `plot` |

pub mod files;
mod plot;
mod subject;
mod table;

pub use subject::{Schedule, Subject};
pub use table::{Course, Mismatch, MismatchTable, Seen, table};
