//! Spectral clustering: a graph of nearest neighbours, the leading eigenvectors of it, k-means of them.
//!
//! New images are assigned by a network that learns the clusters, not by Nystroem's extension: on held-out halves its NMI was
//! higher in six of six splits, its ACC neither higher nor lower (REPRODUCING.md), and a model file need not hold the images.
//!
//! | part | where |
//! |---|---|
//! | exact nearest neighbours | [`Neighbours`](crate::nearest::Neighbours) |
//! | the graph and its parts | [`Graph`] |
//! | leading eigenvectors of a sparse matrix | `subspace.rs`, `block.rs` |
//! | what makes images alike, where that is left open | `suited.rs` |
//! | all of it, for any rows | [`spectral()`] |
//! | the method: a network learns the clusters, so that new images can be assigned | [`SpectralLearner`] |

mod block;
mod embedding;
mod graph;
mod learner;
mod settings;
mod subspace;
mod suited;

pub use embedding::{EXACT, Spectral, SpectralOptions, eigenvectors, spectral};
pub(crate) use embedding::{of_neighbours, to_length_one};
pub use graph::{Affinity, Graph};
pub use learner::{MOST_IMAGES, SpectralLearner};
pub use settings::{PRESETS, Settings, preset};
pub use subspace::Leading;
pub(crate) use suited::{SIDE, Suited};
