//! Long work as a person at the command line sees it.

use std::fmt;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use dtkc_observe::Observer;

use crate::interrupt;
use crate::progress::{Progress, Shown};

/// Shows progress and remarks on standard error: a bar on a terminal, a line now and then in a log, nothing where
/// `quiet` says so but for warnings. Work is asked to stop after Ctrl-C, once [`interrupt::install`] was called.
#[derive(Debug)]
pub struct Terminal {
    shown: Shown,
    /// The present stretch of work.
    present: RwLock<Option<Progress>>,
}

impl Terminal {
    /// Looks at standard error once and stays with what it is.
    pub fn new(quiet: bool) -> Self {
        Self::with(Shown::on_stderr(quiet))
    }

    fn with(shown: Shown) -> Self {
        Self { shown, present: RwLock::new(None) }
    }

    fn present(&self) -> RwLockReadGuard<'_, Option<Progress>> {
        // A thread that panicked leaves nothing half done here.
        self.present.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace(&self, next: Option<Progress>) {
        let before = std::mem::replace(&mut *self.present.write().unwrap_or_else(PoisonError::into_inner), next);
        if let Some(before) = before {
            before.finish();
        }
    }

    fn print(&self, text: &str) {
        match &*self.present() {
            Some(progress) => progress.println(text),
            None => eprintln!("{text}"),
        }
    }
}

impl Observer for Terminal {
    fn begin(&self, work: &str, unit: &'static str, total: Option<u64>) {
        self.replace(Some(Progress::new(self.shown, work, unit, total)));
    }

    fn set_total(&self, total: u64) {
        if let Some(progress) = &*self.present() {
            progress.set_total(total);
        }
    }

    fn advance(&self, units: u64) {
        if let Some(progress) = &*self.present() {
            progress.inc(units);
        }
    }

    fn skip(&self, units: u64) {
        if let Some(progress) = &*self.present() {
            progress.skip(units);
        }
    }

    fn note(&self, remark: fmt::Arguments<'_>) {
        if let Some(progress) = &*self.present() {
            progress.note(remark);
        }
    }

    fn say(&self, text: &str) {
        if self.shown != Shown::Hidden {
            self.print(text);
        }
    }

    fn warn(&self, text: &str) {
        self.print(&format!("warning: {text}"));
    }

    fn end(&self) {
        self.replace(None);
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stretch_follows_the_other_and_nothing_is_needed_before() {
        let terminal = Terminal::with(Shown::Hidden);
        let all: &dyn Observer = &terminal;
        all.advance(1);
        all.set_total(3);
        all.note(format_args!("nobody looks"));
        all.end();
        all.begin("count", "things", None);
        all.skip(1);
        all.begin("draw", "images", Some(2));
        all.advance(2);
        assert!(terminal.present().is_some() && !all.stop());
        all.end();
        assert!(terminal.present().is_none());
    }

    #[test]
    fn quiet_hides() {
        assert_eq!(Terminal::new(true).shown, Shown::Hidden);
        assert_ne!(Terminal::new(false).shown, Shown::Hidden);
    }
}
