//! Deep Clustering Network: an autoencoder whose codes are drawn to the centres of k-means, which follow them.
//!
//! Each step trains the network with the clusters that the items have, gives the items of the batch new ones, and moves
//! their centres towards them. Every few epochs k-means over all codes puts the centres right.

mod centres;
mod learner;
mod settings;

pub use centres::Centres;
pub use learner::DcnLearner;
pub use settings::{PRESETS, Settings, preset};
