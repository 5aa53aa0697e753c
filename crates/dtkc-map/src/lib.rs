//! Embeddings as people can look at them.
//!
//! | what | where |
//! |---|---|
//! | the directions in which points vary most | [`Pca`] |
//! | who is how near to whom, as weights | [`Graph`] |
//! | a map on which near points are near | [`layout`] |
//! | how far two groups are apart, and whether one falls into two | [`Gap`], [`halves`] |
//! | where one is cut in two | [`Cut`] |
//!
//! Everything is on plain slices, `[n, width]` row-major, and gives the same bits for any number of threads.

mod cut;
mod gap;
mod graph;
mod layout;
mod pca;
mod random;

pub use cut::Cut;
pub use gap::{Gap, Halves, halves};
pub use graph::Graph;
pub use layout::{Plan, layout};
pub use pca::Pca;
