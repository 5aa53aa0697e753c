//! What people see while a run goes on.

use std::sync::atomic::{AtomicU64, Ordering};

use dtkc_cli::Progress;

use crate::log::EpochRecord;
use crate::monitor::{Usage, collapse_advice};
use crate::restart::{Ended, Restart};

/// Progress and remarks on standard error.
pub struct Console {
    progress: Progress,
    quiet: bool,
    runs: usize,
    epochs: usize,
    total: AtomicU64,
}

impl Console {
    /// For `runs` restarts of `epochs` epochs and at most `images` images in all.
    pub fn new(quiet: bool, runs: usize, epochs: usize, images: u64) -> Self {
        let progress = Progress::new_unless(quiet, "train", "images", Some(images));
        Self { progress, quiet, runs, epochs, total: AtomicU64::new(images) }
    }

    /// A step over `images` images was made.
    pub fn step(&self, restart: &Restart, images: usize) {
        let Self { runs, epochs, .. } = self;
        let (index, epoch) = (restart.index + 1, restart.epoch + 1);
        let (loss, used) = (restart.monitor.loss(), restart.monitor.usage().used);
        self.progress.note(format!("restart {index}/{runs} epoch {epoch}/{epochs} loss {loss:.4} clusters {used}"));
        self.progress.inc(images as u64);
    }

    /// `images` were trained on before this process began.
    pub fn skip(&self, images: u64) {
        self.progress.skip(images);
    }

    /// `images` need not be trained on any more.
    pub fn spare(&self, images: u64) {
        let before = self.total.fetch_sub(images, Ordering::Relaxed);
        self.progress.set_total(before.saturating_sub(images));
    }

    /// The work is another than it seemed.
    pub fn set_total(&self, images: u64) {
        self.total.store(images, Ordering::Relaxed);
        self.progress.set_total(images);
    }

    /// A line above the progress bar.
    pub fn say(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.progress.println(text);
        }
    }

    /// A warning; shown even when quiet.
    pub fn warn(&self, text: impl AsRef<str>) {
        self.progress.println(format!("warning: {}", text.as_ref()));
    }

    /// Warns about what an epoch showed.
    pub fn epoch(&self, record: &EpochRecord, clusters: usize) {
        let EpochRecord { restart, epoch, skipped_steps, .. } = record;
        if *skipped_steps > 0 {
            self.warn(format!(
                "restart {}, epoch {epoch}: {skipped_steps} steps were not finite and were skipped; a smaller --lr helps",
                restart + 1
            ));
        }
        // Early epochs often use few clusters; later it is worth a word, but not every time.
        if epoch.is_multiple_of(10) {
            let usage = Usage {
                used: record.used_clusters,
                entropy: record.entropy,
                smallest: record.smallest_share,
                largest: record.largest_share,
            };
            if let Some(advice) = collapse_advice(&usage, clusters) {
                self.warn(format!("restart {}, epoch {epoch}: {advice}", restart + 1));
            }
        }
    }

    /// A restart is done.
    pub fn ended(&self, restart: &Restart) {
        let (Some(ended), Some(outcome)) = (restart.ended, &restart.outcome) else { return };
        let used = outcome.sizes.iter().filter(|&&size| size > 0).count();
        let scores = outcome.scores.map_or(String::new(), |[acc, nmi, _]| format!(", ACC {acc:.3}, NMI {nmi:.3}"));
        let (index, runs, epochs) = (restart.index + 1, self.runs, restart.epoch);
        let loss = outcome.loss;
        self.say(format!(
            "restart {index}/{runs}: {epochs} epochs ({ended}), loss {loss:.4}, {used} clusters used{scores}"
        ));
        let total: u64 = outcome.sizes.iter().sum();
        let largest = outcome.sizes.iter().max().map_or(0.0, |&max| max as f64 / total.max(1) as f64);
        let usage = Usage { used, entropy: 0.0, smallest: 0.0, largest };
        if let Some(advice) = collapse_advice(&usage, outcome.sizes.len()).filter(|_| ended != Ended::Pruned) {
            self.warn(format!("restart {index}: {advice}"));
        }
    }

    /// Takes the progress bar away.
    pub fn finish(&self) {
        self.progress.finish();
    }
}
