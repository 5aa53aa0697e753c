//! Deep Tensor Kernel Clustering and, without its companion objectives, Deep Divergence-based Clustering.
//!
//! | part | where |
//! |---|---|
//! | the table in config.toml, and its check | [`Settings`] |
//! | `paper`, `authors`, `tk-uco`, `plus` | [`Preset`] |
//! | a batch becomes a loss and a step | `learner.rs`, with the terms in `dtkc_core::loss` |
//! | clusters from fine clusters, and how many | `regroup`, [`Joint`] |
//! | what is learnt before clusters are | `start.rs` |
//! | what is known about all images: neighbours, first clusters | `surroundings.rs`, `partners.rs` |

mod flops;
mod learner;
mod memory;
mod partners;
mod preset;
mod regroup;
mod settings;
mod sight;
mod start;
mod surroundings;

pub use learner::DtkcLearner;
pub use partners::PartnerConfig;
pub use preset::Preset;
pub use regroup::{Grouping, Joint};
pub use settings::Settings;
pub use start::{StartConfig, StartKind};
pub use surroundings::Common;
