//! What the command-line programs share: flags, exit codes, progress, interrupts and readable numbers.

pub mod exit;
pub mod human;
pub mod interrupt;
pub mod progress;
mod usage;

pub use exit::{Usage, run};
pub use progress::Progress;
pub use usage::parse;
