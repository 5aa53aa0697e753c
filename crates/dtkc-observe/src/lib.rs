//! How long work tells where it is, and asks whether it should stop.
//!
//! Libraries own neither the terminal nor Ctrl-C. They report to an [`Observer`], which a program, a test or a binding
//! implements; `dtkc-cli` has the one of the command line. Everything has a default that does nothing, so an observer
//! names only what it cares about.
//!
//! ```
//! use dtkc_observe::{Observer, Silent};
//!
//! fn add_up(numbers: &[u64], observer: &dyn Observer) -> Option<u64> {
//!     let mut sum = 0;
//!     observer.begin("add", "numbers", Some(numbers.len() as u64));
//!     for number in numbers {
//!         if observer.stop() {
//!             return None;
//!         }
//!         sum += number;
//!         observer.advance(1);
//!     }
//!     observer.end();
//!     Some(sum)
//! }
//! assert_eq!(add_up(&[1, 2, 3], &Silent), Some(6));
//! ```

use std::fmt;

/// Who long work reports to. Shared between threads.
pub trait Observer: Sync {
    /// A stretch of work begins: `total` units of it, where that is known. One stretch at a time.
    fn begin(&self, work: &str, unit: &'static str, total: Option<u64>) {
        let _ = (work, unit, total);
    }

    /// The end of the present stretch is known from now on, or is another than it seemed.
    fn set_total(&self, total: u64) {
        let _ = total;
    }

    /// `units` more are done.
    fn advance(&self, units: u64) {
        let _ = units;
    }

    /// `units` were done before this process began; they say nothing about its speed.
    fn skip(&self, units: u64) {
        let _ = units;
    }

    /// A short remark on the present stretch, such as the loss. It replaces the last one and is made only where somebody
    /// looks, so it may be given at every step.
    fn note(&self, remark: fmt::Arguments<'_>) {
        let _ = remark;
    }

    /// A sentence worth keeping.
    fn say(&self, text: &str) {
        let _ = text;
    }

    /// A sentence that somebody should read even where nothing else is shown.
    fn warn(&self, text: &str) {
        let _ = text;
    }

    /// The present stretch is done.
    fn end(&self) {}

    /// Whether work should stop at the next safe place.
    fn stop(&self) -> bool {
        false
    }
}

/// Nobody looks and nobody stops the work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Silent;

impl Observer for Silent {}
