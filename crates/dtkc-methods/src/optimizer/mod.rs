//! Adam, momentum and RMSprop, and the course of their learning rate.

mod config;
mod rule;
mod state;

pub use config::{OptimConfig, OptimKind, Schedule};
pub use state::Optimizer;
