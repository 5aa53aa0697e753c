//! Epochs of one restart.

use dtkc_dataset::Batch;
use std::time::{Duration, Instant};

use dtkc_cli::interrupt;
use dtkc_core::augment::BatchKey;
use dtkc_core::regroup::OutputLayer;

use super::Trainer;
use crate::error::TrainError;
use crate::eval;
use crate::log::EpochRecord;
use crate::recipe::{Parts, StepPlace};
use crate::restart::{Ended, Restart};
use crate::seeds::{self, Purpose};

/// So many steps in a row that are not finite end a restart.
const MOST_BAD_STEPS: usize = 25;

/// Wall times of an epoch.
#[derive(Default)]
struct Times {
    total: Duration,
    loading: Duration,
}

impl Trainer<'_> {
    /// Trains until `until` epochs are complete or the restart ends. Saves now and then.
    pub(super) fn train_epochs(&mut self, restart: &mut Restart, until: usize) -> Result<(), TrainError> {
        while restart.epoch < until {
            let times = self.pass(restart)?;
            self.close_epoch(restart, &times)?;
            if let Some(reason) = self.reason_to_end(restart) {
                let left = until - restart.epoch;
                self.console.spare((left * self.batches.len()) as u64);
                return self.finish_restart(restart, reason);
            }
            self.journal.save_if_due(restart)?;
        }
        Ok(())
    }

    fn reason_to_end(&self, restart: &Restart) -> Option<Ended> {
        let patience = self.recipe.settings().plan.patience;
        if restart.bad_steps >= MOST_BAD_STEPS {
            Some(Ended::Diverged)
        } else if patience > 0 && restart.stale >= patience {
            Some(Ended::Patience)
        } else if self.budget.exhausted() && restart.epoch < self.epochs() {
            Some(Ended::Budget)
        } else {
            None
        }
    }

    /// The rest of the current epoch, to its end or to the point where a restart is given up.
    fn pass(&mut self, restart: &mut Restart) -> Result<Times, TrainError> {
        let begin = Instant::now();
        let mut times = Times::default();
        let steps = self.batches.batches_per_epoch();
        let (index, epoch) = (restart.index as u64, restart.epoch as u64);
        let seed = seeds::derive(self.config.run.seed, Purpose::Augmentation, &[index]);
        let mut source = self.batches.epoch_from((index << 32) | epoch, restart.batch);
        loop {
            let waiting = Instant::now();
            let Some(batch) = source.next() else { break };
            times.loading += waiting.elapsed();
            let key = BatchKey { seed, epoch, batch: restart.batch as u64 };
            let place = StepPlace { key, epoch: epoch as f64 + restart.batch as f64 / steps as f64 };
            let Batch { indices, images } = batch?;
            let result = self.recipe.step(&mut restart.model, &mut restart.adam, &images, place, &mut Parts::default());
            restart.batch += 1;
            if result.applied {
                restart.bad_steps = 0;
                restart.monitor.step(indices.len(), &result.loss);
                restart.monitor.memberships(&indices, &result.membership);
            } else {
                restart.bad_steps += 1;
                restart.skipped += 1;
                restart.monitor.skip();
            }
            self.console.step(restart, indices.len());
            if restart.bad_steps >= MOST_BAD_STEPS {
                break;
            }
            if interrupt::requested() {
                self.journal.save(restart)?;
                return Err(interrupted(self.journal.root(), restart));
            }
            if restart.batch < steps {
                self.journal.save_if_due(restart)?;
            }
        }
        times.total = begin.elapsed();
        Ok(times)
    }

    /// Writes the epoch down and looks whether it was the best.
    fn close_epoch(&mut self, restart: &mut Restart, times: &Times) -> Result<(), TrainError> {
        let usage = restart.monitor.usage();
        let scores = self.training_scores(restart)?;
        let better = self.better_output(restart)?;
        let record = EpochRecord {
            restart: restart.index,
            epoch: restart.epoch + 1,
            loss: restart.monitor.loss(),
            terms: restart.monitor.terms(),
            lr: self.recipe.lr(restart.epoch as f64 + 1.0),
            used_clusters: usage.used,
            entropy: usage.entropy,
            smallest_share: usage.smallest,
            largest_share: usage.largest,
            skipped_steps: restart.monitor.skipped(),
            acc: scores.map(|s| s.acc),
            nmi: scores.map(|s| s.nmi),
            regrouped: better.is_some(),
            seconds: times.total.as_secs_f64(),
            loading_seconds: times.loading.as_secs_f64(),
        };
        self.journal.append(&record)?;
        self.console.epoch(&record, self.recipe.clusters());
        restart.close_epoch(self.settled(restart.epoch + 1));
        match better {
            Some(layer) => restart.model.replace_output(layer).map_err(|e| TrainError::Mismatch(e.to_string())),
            None => Ok(()),
        }
    }

    /// A better output layer from the fine clusters. It is looked for three times in the first half of the training:
    /// earlier the fine clusters say nothing, later there is no time to learn from it.
    fn better_output(&mut self, restart: &Restart) -> Result<Option<OutputLayer>, TrainError> {
        let (done, epochs) = (restart.epoch + 1, self.epochs());
        let due = (2..=4).any(|eighths| done == (epochs * eighths).div_ceil(8)) && done < epochs;
        if !due || !self.recipe.has_fine_clusters() {
            return Ok(None);
        }
        let (seed, count) = (self.config.run.seed, self.config.run.comparison_batches);
        eval::propose_output(&self.recipe, &restart.model, &mut self.batches, seed, count)
    }

    /// Agreement of the labels with the clusters that the images got while they were trained on: free, and good
    /// enough to follow a run by.
    fn training_scores(&self, restart: &Restart) -> Result<Option<dtkc_metrics::Scores>, TrainError> {
        let Some(labels) = &self.labels else { return Ok(None) };
        let pairs = restart.monitor.assignments();
        if pairs.is_empty() {
            return Ok(None);
        }
        let truth: Vec<i64> = pairs.iter().map(|&(image, _)| labels[image as usize]).collect();
        let clusters: Vec<i64> = pairs.iter().map(|&(_, cluster)| i64::from(cluster)).collect();
        Ok(Some(dtkc_metrics::scores(&truth, &clusters)?))
    }

    /// Whether every weight of the loss had its final value in this epoch.
    fn settled(&self, epoch: usize) -> bool {
        let loss = &self.recipe.settings().loss;
        let start = if loss.self_label > 0.0 { loss.self_label_start } else { 0.0 };
        epoch as f64 > loss.ramp.max(start)
    }
}

fn interrupted(root: &std::path::Path, restart: &Restart) -> TrainError {
    let (index, epoch, batch) = (restart.index + 1, restart.epoch + 1, restart.batch);
    TrainError::Interrupted(format!(
        "restart {index}, epoch {epoch}, step {batch} is saved; go on with `dtkc-train resume {}`",
        root.display()
    ))
}
