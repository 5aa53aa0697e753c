//! Deep Embedded Clustering, and what differs from it in a weight or in the network.
//!
//! An autoencoder is pretrained, k-means on its codes gives centres, and then encoder and centres are trained so that
//! memberships by Student's t come closer to sharper ones of themselves.
//!
//! | method | what it is |
//! |---|---|
//! | DEC | dense autoencoder, whose decoder is dropped |
//! | IDEC | the same, with the decoder kept and its error in the loss |
//! | DBC | DEC with a convolutional autoencoder |
//!
//! | part | where |
//! |---|---|
//! | the table in config.toml, its check, the presets | [`Settings`] |
//! | encoder and centres, one module | `model.rs` |
//! | the sharper memberships | `targets.rs` |
//! | a batch becomes a loss and a step | `learner.rs` |

mod learner;
mod model;
mod settings;
mod targets;

pub use learner::DecLearner;
pub use model::Centred;
pub use settings::{PRESETS, Settings, preset};
pub use targets::{Targets, sharpened};
