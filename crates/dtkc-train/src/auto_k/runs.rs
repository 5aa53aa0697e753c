//! Two short runs with different seeds for every number k. Two questions are asked of them:
//!
//! - **stability**: do both find the same groups? The adjusted Rand index of the two assignments; 0 is chance, 1 is
//!   the same groups. A k that does not fit the data cuts it at arbitrary places, and elsewhere with another seed.
//! - **silhouette** of the embedding, the mean of both runs: are the groups apart from each other?
//!
//! The score is the mean of the two. Short runs find the coarse groups first.

use dtkc_core::augment::BatchKey;
use dtkc_methods::Learner;
use dtkc_methods::learner::{EpochPlace, Passes as _, StepClock, StepPlace};
use dtkc_methods::places::{self, Pass, Purpose};
use dtkc_observe::Observer;
use ndarray::Array2;

use super::{Figures, Trial, write};
use crate::config::RunConfig;
use crate::data::RunData;
use crate::error::TrainError;
use crate::monitor::argmax;
use crate::run_dir::RunDir;

/// Images on which assignments are compared.
const COMPARED: usize = 4000;
/// Images of which the silhouette is taken; its cost is quadratic.
const SILHOUETTE: usize = 2000;

/// Tries every number of the range that is not in `trials`.
pub(super) fn rank(
    run: &RunDir,
    config: &RunConfig,
    mut trials: Vec<Trial>,
    observer: &dyn Observer,
) -> Result<Vec<Trial>, TrainError> {
    let range = config.run.k_range;
    let wanted: Vec<usize> =
        (range.first..=range.last).filter(|k| trials.iter().all(|trial| trial.clusters != *k)).collect();
    let total = (wanted.len() * 2 * config.run.trial_steps) as u64;
    observer.begin("try clusters", "steps", Some(total));
    let mut search = Search { run, config, data: RunData::open(config, observer)?, observer };
    for k in wanted {
        observer.note(format_args!("k = {k}"));
        trials.push(search.try_one(k)?);
        write(run, &trials)?;
    }
    observer.end();
    Ok(trials)
}

struct Search<'a> {
    run: &'a RunDir,
    config: &'a RunConfig,
    data: RunData<'a>,
    observer: &'a dyn Observer,
}

/// One stage of a short run.
struct Stretch {
    stage: usize,
    steps: usize,
    epochs: usize,
    attempt: usize,
    views: u64,
}

impl Search<'_> {
    fn try_one(&mut self, clusters: usize) -> Result<Trial, TrainError> {
        let options = &self.config.run;
        let mut found = Vec::new();
        for attempt in 0..2 {
            let mut learner = self.short_run(clusters, attempt)?;
            learner.settle(&mut self.data)?;
            found.push(look(learner.as_ref(), &mut self.data)?);
        }
        let stability = dtkc_metrics::ari(&found[0].clusters, &found[1].clusters)?;
        let seed = places::derive(options.seed, Purpose::Sample, &[clusters as u64]);
        let silhouette = found.iter().map(|seen| silhouette(seen, seed)).sum::<f64>() / 2.0;
        let used_clusters = found.iter().map(Seen::used).min().unwrap_or(0);
        let figures = Figures::Runs { stability, silhouette, used_clusters };
        Ok(Trial { clusters, score: (stability + silhouette) / 2.0, figures })
    }

    /// Trains a new learner for `trial_steps` steps of its last stage, after at most as many of each stage before it.
    fn short_run(&mut self, clusters: usize, attempt: usize) -> Result<Box<dyn Learner>, TrainError> {
        let place = [clusters as u64, attempt as u64];
        let seed = self.config.run.seed;
        let mut task = self.config.task(clusters)?;
        // The schedule of the learning rate should come to its end within the trial.
        let steps = self.config.run.trial_steps;
        task.plan.epochs = steps.div_ceil(self.data.steps()).max(1);
        let mut learner = self.config.settings.learner(&task, places::derive(seed, Purpose::Weights, &place))?;
        let views = places::derive(seed, Purpose::Augmentation, &place);
        let stages = learner.stages();
        for (stage, described) in stages.iter().enumerate() {
            learner.enter(stage, &mut self.data)?;
            let is_last = stage + 1 == stages.len();
            // What comes before is kept as short as the trial itself.
            let steps = if is_last { steps } else { steps.min(described.epochs * self.data.steps()) };
            self.train(learner.as_mut(), Stretch { stage, steps, epochs: described.epochs, attempt, views })?;
        }
        Ok(learner)
    }

    fn train(&mut self, learner: &mut dyn Learner, stretch: Stretch) -> Result<(), TrainError> {
        let per_epoch = self.data.steps();
        let mut left = stretch.steps;
        for epoch in 0..stretch.steps.div_ceil(per_epoch) {
            let steps = left.min(per_epoch);
            self.pass(learner, &stretch, epoch, steps)?;
            left -= steps;
            let place = EpochPlace { stage: stretch.stage, done: epoch + 1, epochs: stretch.epochs };
            if learner.end_epoch(&place, &mut self.data)?.converged {
                self.observer.advance(left as u64);
                break;
            }
        }
        Ok(())
    }

    /// The first `steps` steps of an epoch.
    fn pass(
        &mut self,
        learner: &mut dyn Learner,
        stretch: &Stretch,
        epoch: usize,
        steps: usize,
    ) -> Result<(), TrainError> {
        let &Stretch { stage, epochs, attempt, views, .. } = stretch;
        let (pass, per_epoch) = (Pass::Trial { attempt, epoch }, self.data.steps());
        let mut source = self.data.from(pass, 0);
        for step in 0..steps {
            if learner.is_refresh_due(stage) {
                drop(source);
                learner.refresh(&mut self.data)?;
                source = self.data.from(pass, step);
            }
            let Some(batch) = source.next() else { break };
            let key = BatchKey { seed: views, epoch: epoch as u64, batch: step as u64 };
            let at = StepPlace { stage, epoch: epoch as f64 + step as f64 / per_epoch as f64, epochs, views: key };
            learner.step(&batch?, &at, &mut StepClock::start());
            self.observer.advance(1);
            if self.observer.stop() {
                let root = self.run.root().display();
                let text = format!("the numbers tried so far are saved; go on with `dtkc-train resume {root}`");
                return Err(TrainError::Interrupted(text));
            }
        }
        Ok(())
    }
}

/// Clusters and embedding of the compared images, in a fixed order.
struct Seen {
    clusters: Vec<i64>,
    embedding: Array2<f32>,
}

impl Seen {
    fn used(&self) -> usize {
        self.clusters.iter().collect::<std::collections::BTreeSet<_>>().len()
    }
}

fn look(learner: &dyn Learner, data: &mut RunData<'_>) -> Result<Seen, TrainError> {
    let k = learner.clusters();
    let (mut clusters, mut values, mut width) = (Vec::new(), Vec::new(), 0);
    for batch in data.batches(Pass::Sample) {
        let answers = learner.answers(&batch?.items);
        clusters.extend(answers.membership.chunks_exact(k).map(|row| argmax(row) as i64));
        values.extend(answers.embedding);
        width = answers.width;
        if clusters.len() >= COMPARED {
            break;
        }
    }
    let embedding = Array2::from_shape_vec((clusters.len(), width), values);
    let embedding = embedding.map_err(|e| TrainError::Mismatch(e.to_string()))?;
    Ok(Seen { clusters, embedding })
}

/// A run that put everything into one cluster has no silhouette; that is the worst.
fn silhouette(seen: &Seen, seed: u64) -> f64 {
    dtkc_metrics::silhouette(&seen.embedding.view(), &seen.clusters, SILHOUETTE, seed).unwrap_or(-1.0)
}
