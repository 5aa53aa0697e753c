//! SpectralNet: a network that learns the coordinates of spectral clustering, and so can be asked about new items.
//!
//! | stage | what it learns |
//! |---|---|
//! | pretraining | an autoencoder; everything after it works on codes |
//! | siamese | which codes are near: neighbours are drawn together, strangers pushed apart |
//! | clustering | outputs that are equal for near codes, orthonormal over all of them; k-means gives the clusters |
//!
//! | part | where |
//! |---|---|
//! | the table in config.toml, its check, the presets | [`Settings`] |
//! | pairs of codes and their loss | `pairs.rs` |
//! | who is near whom in a batch | `affinity.rs` |
//! | the last layer, which makes outputs orthonormal | `orthonormal.rs` |
//! | stages and steps | `learner.rs`, with the state that they share in `table.rs` |

mod affinity;
mod learner;
mod orthonormal;
mod pairs;
mod settings;
mod table;

pub use affinity::{affinities, spectral_loss};
pub use learner::SpectralnetLearner;
pub use orthonormal::{orthonormal, orthonormaliser};
pub use pairs::contrastive_loss;
pub use settings::{PRESETS, Settings, preset};
