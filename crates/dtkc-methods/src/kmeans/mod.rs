//! k-means: for points in memory, and for any number of images as a method of its own.
//!
//! | part | where |
//! |---|---|
//! | k-means of points in memory, the best of several starts | [`kmeans()`], [`lloyd_from`] |
//! | k-means++ | `seeding.rs` |
//! | nearest centres and sums, shared between threads | `sums.rs`, with the loops in `dtkc_ops` |

mod lloyd;
mod points;
mod seeding;
mod sums;

pub use lloyd::{Clustering, KmeansOptions, kmeans, lloyd_from};
pub use points::Points;
