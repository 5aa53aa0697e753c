//! One folder per clustering method, each a learner with its own checked settings.
//!
//! The training loop, restarts, checkpoints, export and choice of k know a method only through [`Learner`]: its stages,
//! what it does when it enters one, a step, the end of an epoch, what it says about items, its state as named arrays, and
//! itself frozen as a network. Neither files nor terminals are known here.
//!
//! | part | where |
//! |---|---|
//! | what a method must be able to do | [`learner`] |
//! | the methods there are, and their settings by name | [`Method`], [`MethodSettings`] |
//! | DTKC and DDC | [`dtkc`] |
//! | k-means, in memory and as a method | [`kmeans`] |
//! | spectral clustering | [`spectral`] |
//! | nearest neighbours | [`nearest`] |
//! | DEC, IDEC and DBC; DCN; SpectralNet | [`dec`], [`dcn`], [`spectralnet`] |
//! | what the methods with an autoencoder share | [`coder`] |
//! | how long and how often to train | [`TrainPlan`] |
//! | Adam, momentum, RMSprop, their learning rate | [`optimizer`] |
//! | every seed and every order of items that has a purpose | [`places`] |
//!
//! To add a method: a folder with `settings.rs` (a checked table, neutral defaults, presets) and `learner.rs`, a name in
//! `method.rs`, an arm in `settings.rs`. It then trains, resumes, is scored, exported, labelled with and served.

mod arrays;
pub mod coder;
pub mod dcn;
pub mod dec;
pub mod dtkc;
mod error;
mod features;
pub mod inside;
pub mod kmeans;
pub mod learner;
mod method;
pub mod nearest;
mod network;
pub mod optimizer;
pub mod places;
mod plan;
mod random;
mod sequences;
mod settings;
pub mod spectral;
pub mod spectralnet;
mod symmetric;
mod vectors;

pub use error::{LearnError, SettingError};
pub use learner::{Answers, Learner};
pub use method::Method;
pub use plan::TrainPlan;
pub use settings::{MethodSettings, MethodTable, Task};
