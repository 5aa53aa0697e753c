//! Stages and epochs of one restart: steps, the figures of an epoch, when to stop.

use std::time::{Duration, Instant};

use dtkc_methods::LearnError;
use dtkc_methods::learner::{CLUSTERING, EpochPlace, Passes as _, StepClock, StepPlace};
use dtkc_methods::places::{self, Pass};

use super::Trainer;
use crate::error::TrainError;
use crate::log::EpochRecord;
use crate::restart::{Ended, Restart};
use crate::summary::finite;

/// So many steps in a row that are not finite end a restart.
const MOST_BAD_STEPS: usize = 25;

/// The loss of an epoch of few items is mostly chance: that of as many epochs is compared as so many items are enough for.
const ENOUGH: usize = 2_000;

/// Wall times of an epoch.
#[derive(Default)]
struct Times {
    total: Duration,
    loading: Duration,
}

impl Trainer<'_> {
    /// Trains all stages before the last one, and the last until `until` of its epochs are complete or the restart ends. A
    /// restart whose numbers grow beyond all bounds ends alone: others may be better.
    pub(super) fn train_until(&mut self, restart: &mut Restart, until: usize) -> Result<(), TrainError> {
        match self.train_stages(restart, until) {
            Err(TrainError::Learn(LearnError::Diverged(reason))) => {
                self.console.warn(restart, &reason);
                self.finish_restart(restart, Ended::Diverged)
            }
            other => other,
        }
    }

    fn train_stages(&mut self, restart: &mut Restart, until: usize) -> Result<(), TrainError> {
        while restart.ended.is_none() {
            if !restart.entered {
                self.save_before_long_work(restart)?;
                restart.learner.enter(restart.stage, &mut self.data)?;
                restart.entered = true;
            }
            let is_last = restart.stage + 1 == self.stages.len();
            self.train_epochs(restart, if is_last { until } else { self.epochs_of(restart.stage) })?;
            if is_last {
                break;
            }
            if restart.ended.is_none() {
                self.journal.save_pretrained(restart, self.stages[restart.stage].name)?;
                restart.next_stage();
            }
        }
        Ok(())
    }

    /// Trains until `until` epochs of the stage are complete or the restart ends. Saves now and then.
    fn train_epochs(&mut self, restart: &mut Restart, until: usize) -> Result<(), TrainError> {
        loop {
            // Looked at before an epoch and not after it, so that a restart which was resumed here ends here, too.
            if restart.epoch > 0
                && restart.batch == 0
                && let Some(reason) = self.reason_to_end(restart)
            {
                let left = until.saturating_sub(restart.epoch);
                self.console.spare((left * self.data.len()) as u64);
                return self.finish_restart(restart, reason);
            }
            if restart.epoch >= until || restart.converged || self.is_cut_short(restart) {
                return Ok(());
            }
            let times = self.pass(restart)?;
            self.close_epoch(restart, &times)?;
            self.journal.save_if_due(restart)?;
        }
    }

    /// What follows cannot be cut in the middle: a stop inside loses it, and should lose nothing else.
    pub(super) fn save_before_long_work(&mut self, restart: &Restart) -> Result<(), TrainError> {
        let is_new = restart.stage == 0 && restart.epoch == 0;
        if is_new { Ok(()) } else { self.journal.save(restart) }
    }

    /// Whether a stage before the last must end now, so that a limit on the time leaves some for clustering.
    fn is_cut_short(&self, restart: &Restart) -> bool {
        let is_last = restart.stage + 1 == self.stages.len();
        !is_last && restart.epoch > 0 && restart.batch == 0 && self.budget.is_half_gone()
    }

    fn reason_to_end(&self, restart: &Restart) -> Option<Ended> {
        let patience = self.config.plan.patience;
        let is_last = restart.stage + 1 == self.stages.len();
        if restart.bad_steps >= MOST_BAD_STEPS {
            Some(Ended::Diverged)
        } else if is_last && restart.converged {
            Some(Ended::Converged)
        } else if is_last && patience > 0 && restart.stale >= patience {
            Some(Ended::Patience)
        } else if is_last && self.budget.exhausted() && restart.epoch < self.epochs() {
            Some(Ended::Budget)
        } else {
            None
        }
    }

    /// The rest of the current epoch, to its end or to the point where a restart is given up.
    fn pass(&mut self, restart: &mut Restart) -> Result<Times, TrainError> {
        let begin = Instant::now();
        let mut times = Times::default();
        let (steps, epochs, seed) = (self.data.steps(), self.epochs_of(restart.stage), self.config.run.seed);
        let Restart { index, stage, epoch, .. } = *restart;
        let pass = Pass::Training { restart: index, stage, epoch };
        let mut source = self.data.from(pass, restart.batch);
        loop {
            if restart.batch < steps && restart.learner.is_refresh_due(stage) {
                drop(source);
                restart.learner.refresh(&mut self.data)?;
                source = self.data.from(pass, restart.batch);
            }
            let waiting = Instant::now();
            let Some(batch) = source.next() else { break };
            times.loading += waiting.elapsed();
            let batch = batch?;
            let place = StepPlace {
                stage,
                epoch: epoch as f64 + restart.batch as f64 / steps as f64,
                epochs,
                views: places::views(seed, index, stage, epoch, restart.batch),
            };
            let result = restart.learner.step(&batch, &place, &mut StepClock::start());
            restart.batch += 1;
            if result.applied {
                restart.bad_steps = 0;
                restart.monitor.step(batch.len(), &result.loss);
                restart.monitor.memberships(&batch.indices, &result.membership);
            } else {
                restart.bad_steps += 1;
                restart.skipped += 1;
                restart.monitor.skip();
            }
            self.console.step(restart, self.stages[stage].name, batch.len());
            if restart.bad_steps >= MOST_BAD_STEPS {
                break;
            }
            if self.console.stop() {
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

    /// Looks whether the epoch was the best, lets the learner act on its end and writes it down.
    fn close_epoch(&mut self, restart: &mut Restart, times: &Times) -> Result<(), TrainError> {
        let usage = restart.monitor.usage();
        let scores = self.training_scores(restart)?;
        let stage = self.stages[restart.stage].name;
        let place = EpochPlace { stage: restart.stage, done: restart.epoch + 1, epochs: self.epochs_of(restart.stage) };
        let mut record = EpochRecord {
            restart: restart.index,
            stage: (stage != CLUSTERING).then(|| stage.to_owned()),
            epoch: place.done,
            loss: finite(restart.monitor.loss()),
            terms: restart.monitor.terms(),
            lr: restart.learner.learning_rate(place.stage, place.done as f64, place.epochs),
            used_clusters: usage.used,
            entropy: usage.entropy,
            smallest_share: usage.smallest,
            largest_share: usage.largest,
            skipped_steps: restart.monitor.skipped(),
            acc: scores.map(|s| s.acc),
            nmi: scores.map(|s| s.nmi),
            regrouped: false,
            inside: None,
            seconds: times.total.as_secs_f64(),
            loading_seconds: times.loading.as_secs_f64(),
            wall_seconds: None,
            peak_memory_bytes: None,
            machine: None,
        };
        record.inside = self.look_inside(restart, &place)?;
        restart.close_epoch(restart.learner.is_settled(&place), self.window());
        if place.stage + 1 == self.stages.len() && self.compared.contains(&place.done) {
            let loss = self.comparison_loss(restart)?;
            restart.round_losses.push(loss);
        }
        let end = restart.learner.end_epoch(&place, &mut self.data)?;
        (record.regrouped, restart.converged) = (end.regrouped, end.converged);
        if end.regrouped {
            restart.begin_again();
        }
        self.journal.append(&record)?;
        self.console.epoch(&record, restart.learner.clusters());
        Ok(())
    }

    /// Epochs whose mean loss is compared.
    fn window(&self) -> usize {
        (ENOUGH / self.config.data.items.max(1)).max(1)
    }

    /// Agreement of the labels with the clusters that the items got while they were trained on: free, and good
    /// enough to follow a run by.
    fn training_scores(&self, restart: &Restart) -> Result<Option<dtkc_metrics::Scores>, TrainError> {
        let Some(labels) = &self.labels else { return Ok(None) };
        let pairs = restart.monitor.assignments();
        if pairs.is_empty() {
            return Ok(None);
        }
        let truth: Vec<i64> = pairs.iter().map(|&(item, _)| labels[item as usize]).collect();
        let clusters: Vec<i64> = pairs.iter().map(|&(_, cluster)| i64::from(cluster)).collect();
        Ok(Some(dtkc_metrics::scores(&truth, &clusters)?))
    }

    /// A stop inside a learner's own work: the last checkpoint has what was done before it.
    pub(super) fn explain(&self, error: TrainError) -> TrainError {
        match error {
            TrainError::Stopped => TrainError::Interrupted(format!(
                "everything up to the last checkpoint is saved; {}",
                ways_on(self.journal.root())
            )),
            other => other,
        }
    }
}

fn interrupted(root: &std::path::Path, restart: &Restart) -> TrainError {
    let (index, epoch, batch) = (restart.index + 1, restart.epoch + 1, restart.batch);
    TrainError::Interrupted(format!("restart {index}, epoch {epoch}, step {batch} is saved; {}", ways_on(root)))
}

/// What can be done with a run that was stopped.
fn ways_on(root: &std::path::Path) -> String {
    let root = root.display();
    format!("go on with `dtkc-train resume {root}`, or take the best so far with `dtkc-train export {root}`")
}
