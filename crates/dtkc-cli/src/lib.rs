//! What the command-line programs share: flags, exit codes, progress and interrupts. Libraries know none of it: they
//! report to a [`dtkc_observe::Observer`], which a program gives them as a [`Terminal`].

pub mod exit;
pub mod interrupt;
mod progress;
mod terminal;
mod usage;

pub use exit::{Usage, run};
pub use terminal::Terminal;
pub use usage::parse;
