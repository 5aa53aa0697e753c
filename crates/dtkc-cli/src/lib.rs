//! What the command-line programs share: exit codes, progress, interrupts and readable numbers.

pub mod exit;
pub mod human;
pub mod interrupt;
pub mod progress;

pub use exit::{Usage, run};
pub use progress::Progress;
