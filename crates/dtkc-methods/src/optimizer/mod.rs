//! Adam and the course of its learning rate.

mod adam;
mod config;

pub use adam::{Adam, AdamConfig};
pub use config::{OptimConfig, Schedule};
