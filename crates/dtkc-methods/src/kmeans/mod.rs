//! k-means: for points in memory, and for any number of images as a method of its own.
//!
//! | part | where |
//! |---|---|
//! | k-means of points in memory, the best of several starts | [`kmeans()`], [`lloyd_from`] |
//! | k-means++ | `seeding.rs` |
//! | nearest centres and sums, shared between threads | `sums.rs`, with the loops in `dtkc_ops` |
//! | the method: an epoch is an iteration over images that are streamed | [`KmeansLearner`], `images.rs` |
//! | clusters that lost all their images | `farthest.rs` |
//! | centres as a network with an embedding | `axes.rs` |

mod axes;
mod farthest;
mod images;
mod learner;
mod lloyd;
mod points;
mod seeding;
mod settings;
mod sums;

pub use learner::KmeansLearner;
pub use lloyd::{Clustering, KmeansOptions, kmeans, lloyd_from};
pub use points::Points;
pub(crate) use points::check_clusters;
pub(crate) use settings::images;
pub use settings::{PRESETS, Settings, published};
