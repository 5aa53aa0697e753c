//! Deep Tensor Kernel Clustering and, without its companion objectives, Deep Divergence-based Clustering.
//!
//! | part | where |
//! |---|---|
//! | the table in config.toml, and its check | [`Settings`] |
//! | `paper`, `authors`, `tk-uco`, `plus` | [`Preset`] |
//! | a batch becomes a loss and a step | `learner.rs`, with the terms in `dtkc_core::loss` |
//! | clusters from what was learnt before | `seen.rs`, `grains.rs`, `strays.rs`, `regroup` |
//! | how many there are | [`Joinings`] |
//! | what is learnt before clusters are | `start.rs` |
//! | what is known about all images: neighbours, first clusters | `surroundings.rs`, `partners.rs` |

mod balance;
mod flops;
mod grains;
mod joinings;
mod learner;
mod memory;
mod partners;
mod preset;
mod regroup;
mod seen;
mod settings;
mod sight;
mod start;
mod strays;
mod surroundings;

pub use joinings::{Apart, Joinings};
pub use learner::DtkcLearner;
pub use partners::PartnerConfig;
pub use preset::Preset;
pub use settings::Settings;
pub use start::{Join, StartConfig, StartKind};
pub use surroundings::Common;
