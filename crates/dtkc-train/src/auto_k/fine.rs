//! Every number of clusters from one network. It learns fine clusters alone, as the runs that follow begin, and how well every
//! number of groups is apart is read from who is near whom as it sees them: see [`dtkc_methods::dtkc::Joinings`].
//!
//! It costs a third of a restart, whatever the range. It is not used further: the network of the run has fine clusters for
//! its own number.

use dtkc_core::augment::BatchKey;
use dtkc_methods::dtkc::{Apart, Joinings};
use dtkc_methods::learner::{StepClock, StepPlace};
use dtkc_methods::places::{self, Pass, Purpose};
use dtkc_methods::{LearnError, Learner, MethodSettings};
use dtkc_observe::Observer;

use super::fine_state::State;
use super::{Figures, Trial, write};
use crate::config::{KRange, RunConfig};
use crate::data::RunData;
use crate::error::TrainError;
use crate::run_dir::RunDir;

/// Parts into which the steps are divided: the learning rate follows them as it follows the epochs of a run, however many
/// or few steps an epoch has.
const PARTS: usize = 10;

/// Part of the steps of a restart.
const SHARE: usize = 3;

/// By how much the nearest two of so many groups must be farther apart than those of one more, so that the number stands out.
pub(super) const CLEAR: f64 = 0.1;

/// What is trained.
pub(super) struct Plan {
    settings: MethodSettings,
    /// The number of clusters that the fine ones would be enough for.
    pub(super) clusters: usize,
    /// Steps in all.
    pub(super) steps: usize,
}

impl Plan {
    /// For a run that begins with fine clusters, whatever number of the range is taken.
    pub(super) fn of(config: &RunConfig) -> Option<Self> {
        let last = config.run.k_range.last;
        // The same network for every narrow range, so that what a number scores does not depend on what it is compared with.
        let clusters = last.max(KRange::default().last);
        let per_epoch = config.data.items.div_ceil(config.items_per_step().max(1)).max(1);
        let of_run = config.plan.epochs.saturating_mul(per_epoch).max(1);
        let steps = (of_run / SHARE).max(config.run.trial_steps).clamp(1, of_run);
        Some(Self { settings: config.settings.fine_alone(last)?, clusters, steps })
    }
}

/// Trains, or goes on where an earlier process stopped, and gives every number its score.
pub(super) fn rank(
    run: &RunDir,
    config: &RunConfig,
    plan: &Plan,
    observer: &dyn Observer,
) -> Result<Vec<Trial>, TrainError> {
    let range = config.run.k_range;
    let mut search = Search::new(run, config, plan, observer)?;
    let joinings = search.joinings().map_err(|error| match error {
        TrainError::Stopped => search.interrupted(),
        other => other,
    })?;
    let trials: Vec<Trial> = joinings.numbers(range.first, range.last).into_iter().map(trial).collect();
    write(run, &trials)?;
    Ok(trials)
}

fn trial(Apart { clusters, apart, further, score }: Apart) -> Trial {
    Trial { clusters, score, figures: Figures::Apart { apart, further } }
}

struct Search<'a> {
    run: &'a RunDir,
    plan: &'a Plan,
    data: RunData<'a>,
    state: State,
    learner: Box<dyn Learner>,
    views: u64,
    observer: &'a dyn Observer,
}

impl<'a> Search<'a> {
    fn new(
        run: &'a RunDir,
        config: &'a RunConfig,
        plan: &'a Plan,
        observer: &'a dyn Observer,
    ) -> Result<Self, TrainError> {
        let seed = |purpose| places::derive(config.run.seed, purpose, &[plan.clusters as u64]);
        let mut learner = plan.settings.learner(&config.task(plan.clusters)?, seed(Purpose::Weights))?;
        let state = State::open(run, config, plan, learner.as_mut())?;
        let views = seed(Purpose::Augmentation);
        Ok(Self { run, plan, data: RunData::open(config, observer)?, state, learner, views, observer })
    }

    fn joinings(&mut self) -> Result<Joinings, TrainError> {
        if let Some(joinings) = self.state.joinings() {
            return Ok(joinings);
        }
        self.observer.begin("look for the number of clusters", "steps", Some(self.plan.steps as u64));
        self.observer.skip(self.state.step() as u64);
        self.learner.enter(0, &mut self.data)?;
        while self.state.step() < self.plan.steps {
            self.pass()?;
        }
        // What follows is short, but a set with many items may have taken long until here.
        self.state.save(self.learner.as_ref())?;
        let joinings = self.learner.joinings(self.plan.clusters, &mut self.data)?;
        let joinings =
            joinings.ok_or_else(|| LearnError::Unsuitable("the network has learnt nothing to tell it by".into()))?;
        self.state.finish(&joinings)?;
        self.observer.end();
        Ok(joinings)
    }

    /// The rest of an epoch, or of the steps.
    fn pass(&mut self) -> Result<(), TrainError> {
        let per_epoch = self.data.steps();
        let (epoch, first) = (self.state.step() / per_epoch, self.state.step() % per_epoch);
        if self.learner.is_refresh_due(0) {
            self.learner.refresh(&mut self.data)?;
            self.observer.note(format_args!("fine clusters"));
        }
        for batch in self.data.from(Pass::Trial { attempt: 0, epoch }, first) {
            let step = self.state.step();
            let views = BatchKey { seed: self.views, epoch: epoch as u64, batch: (step % per_epoch) as u64 };
            let done = step as f64 / self.plan.steps as f64;
            // One more part than is trained: a run leaves it for the clusters.
            let place = StepPlace { stage: 0, epoch: done * PARTS as f64, epochs: PARTS + 1, views };
            self.learner.step(&batch?, &place, &mut StepClock::start());
            self.state.advance(self.learner.as_ref())?;
            self.observer.advance(1);
            if self.observer.stop() {
                self.state.save(self.learner.as_ref())?;
                return Err(TrainError::Stopped);
            }
            if self.state.step() >= self.plan.steps {
                break;
            }
        }
        Ok(())
    }

    fn interrupted(&self) -> TrainError {
        let (step, root) = (self.state.saved(), self.run.root().display());
        TrainError::Interrupted(format!(
            "the search for the number of clusters is saved up to step {step}; go on with `dtkc-train resume {root}`"
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn config(text: &str) -> RunConfig {
        let mut config = RunConfig::resolve(&[text.parse().unwrap()]).unwrap();
        config.data.items = 9298;
        config.plan.set_epochs(9298, config.items_per_step());
        config
    }

    #[test]
    fn only_runs_that_begin_with_fine_clusters_are_read_from_them() {
        for text in ["", "method = 'ddc'", "run.k_range = '2..25'", "run.k_range = '2..3'"] {
            assert!(Plan::of(&config(text)).is_some(), "{text}");
        }
        for text in ["method = 'kmeans'", "method = 'dec'", "preset = 'authors'", "run.k_range = '20..26'"] {
            assert!(Plan::of(&config(text)).is_none(), "{text}");
        }
    }

    #[test]
    fn the_network_is_the_same_for_narrow_ranges_and_no_longer_trained_than_a_run() {
        let plan = |text| Plan::of(&config(text)).map(|plan| (plan.clusters, plan.steps)).unwrap();
        // 38 epochs of 78 steps.
        assert_eq!(plan(""), (15, 988));
        assert_eq!(plan("run.k_range = '2..4'"), (15, 988));
        assert_eq!(plan("run.k_range = '2..20'"), (20, 988));
        assert_eq!(plan("run.trial_steps = 1100").1, 1100);
        assert_eq!(plan("plan.epochs = 2").1, 2 * 78);
    }
}
