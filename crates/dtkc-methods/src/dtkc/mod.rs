//! Deep Tensor Kernel Clustering and, without its companion objectives, Deep Divergence-based Clustering.
//!
//! | part | where |
//! |---|---|
//! | the table in config.toml, and its check | [`Settings`] |
//! | `paper`, `authors`, `tk-uco`, `plus` | [`Preset`] |
//! | a batch becomes a loss and a step | `learner.rs`, with the terms in `dtkc_core::loss` |
//! | new output layers from fine clusters | `regroup` |
//! | near neighbours as second views | `partners.rs` |

mod flops;
mod learner;
mod memory;
mod partners;
mod preset;
mod regroup;
mod settings;

pub use learner::DtkcLearner;
pub use partners::PartnerConfig;
pub use preset::Preset;
pub use settings::Settings;
