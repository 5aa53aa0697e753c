//! What a run tells while it goes on.

use std::cell::Cell;

use dtkc_human as human;
use dtkc_methods::Method;
use dtkc_methods::learner::PRETRAINING;
use dtkc_observe::Observer;

use crate::log::EpochRecord;
use crate::monitor::{Usage, collapse_advice};
use crate::restart::{Ended, Restart};

/// The sentences of a run, for whoever observes it.
pub struct Console<'a> {
    observer: &'a dyn Observer,
    method: Method,
    restarts: Cell<usize>,
    epochs: Cell<usize>,
    total: Cell<u64>,
}

impl<'a> Console<'a> {
    /// For so many restarts of so many epochs.
    pub fn new(observer: &'a dyn Observer, method: Method, restarts: usize, epochs: usize) -> Self {
        Self { observer, method, restarts: Cell::new(restarts), epochs: Cell::new(epochs), total: Cell::new(0) }
    }

    /// Training begins: at most `items` items in all.
    pub fn begin(&self, unit: &'static str, items: u64) {
        self.total.set(items);
        self.observer.begin("train", unit, Some(items));
    }

    /// A step over `items` items was made.
    pub fn step(&self, restart: &Restart, stage: &str, items: usize) {
        let (restarts, epochs) = (self.restarts.get(), self.epochs.get());
        let (index, epoch) = (restart.index + 1, restart.epoch + 1);
        let (loss, used) = (restart.monitor.loss(), restart.monitor.usage().used);
        match restart.stage {
            0 if restart.entered && stage == dtkc_methods::learner::CLUSTERING => self
                .observer
                .note(format_args!("restart {index}/{restarts} epoch {epoch}/{epochs} loss {loss:.4} clusters {used}")),
            _ => self.observer.note(format_args!("restart {index}/{restarts} {stage} epoch {epoch} loss {loss:.4}")),
        }
        self.observer.advance(items as u64);
    }

    /// `items` were trained on before this process began.
    pub fn skip(&self, items: u64) {
        self.observer.skip(items);
    }

    /// `items` need not be trained on any more.
    pub fn spare(&self, items: u64) {
        self.total.set(self.total.get().saturating_sub(items));
        self.observer.set_total(self.total.get());
    }

    /// The work is another than it seemed.
    pub fn set_plan(&self, restarts: usize, epochs: usize, items: u64) {
        self.restarts.set(restarts);
        self.epochs.set(epochs);
        self.total.set(items);
        self.observer.set_total(items);
    }

    /// Whether the work should stop.
    pub fn stop(&self) -> bool {
        self.observer.stop()
    }

    /// A sentence worth keeping.
    pub fn say(&self, text: impl AsRef<str>) {
        self.observer.say(text.as_ref());
    }

    /// A warning about one restart.
    pub fn warn(&self, restart: &Restart, text: &str) {
        self.observer.warn(&format!("restart {}: {text}", restart.index + 1));
    }

    /// Warns about what an epoch showed.
    pub fn epoch(&self, record: &EpochRecord, clusters: usize) {
        let EpochRecord { restart, epoch, skipped_steps, .. } = record;
        if *skipped_steps > 0 {
            let (stage, setting) = match record.stage.as_deref() {
                Some(PRETRAINING) => ("pretraining, ", "--set pretraining.optim.lr=X"),
                _ => ("", "--lr"),
            };
            self.observer.warn(&format!(
                "restart {}, {stage}epoch {epoch}: {skipped_steps} steps were not finite and were skipped; a smaller \
                 {setting} helps",
                restart + 1
            ));
        }
        // Early epochs often use few clusters; later it is worth a word, but not every time.
        if epoch.is_multiple_of(10) && record.stage.is_none() {
            let usage = Usage {
                used: record.used_clusters,
                entropy: record.entropy,
                smallest: record.smallest_share,
                largest: record.largest_share,
            };
            if let Some(advice) = collapse_advice(&usage, clusters, self.method) {
                self.observer.warn(&format!("restart {}, epoch {epoch}: {advice}", restart + 1));
            }
        }
    }

    /// A restart is done.
    pub fn ended(&self, restart: &Restart) {
        let (Some(ended), Some(outcome)) = (restart.ended, &restart.outcome) else { return };
        let used = outcome.sizes.iter().filter(|&&size| size > 0).count();
        let scores = outcome.scores.map_or(String::new(), |[acc, nmi, _]| format!(", ACC {acc:.3}, NMI {nmi:.3}"));
        let (index, restarts, epochs) = (restart.index + 1, self.restarts.get(), restart.epoch);
        let loss = outcome.loss;
        self.say(format!(
            "restart {index}/{restarts}: {} ({ended}), loss {loss:.4}, {} used{scores}",
            human::many(epochs, "epoch"),
            human::many(used, "cluster")
        ));
        let total: u64 = outcome.sizes.iter().sum();
        let largest = outcome.sizes.iter().max().map_or(0.0, |&max| max as f64 / total.max(1) as f64);
        let usage = Usage { used, entropy: 0.0, smallest: 0.0, largest };
        // Those that are no result anyway need no advice.
        if matches!(ended, Ended::Pruned | Ended::Diverged) {
            return;
        }
        if let Some(advice) = collapse_advice(&usage, outcome.sizes.len(), self.method) {
            self.warn(restart, &advice);
        }
    }

    /// Training is done.
    pub fn end(&self) {
        self.observer.end();
    }
}
