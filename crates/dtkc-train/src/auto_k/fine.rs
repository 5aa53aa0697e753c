//! Every number of clusters from a few networks. They learn fine clusters alone, as the runs that follow begin, and these are
//! joined into every number of groups: see [`dtkc_methods::dtkc::Joint`].
//!
//! Each costs a quarter of a restart, whatever the range. They are not used further: the network of the run has fine
//! clusters for its own number.

use dtkc_core::augment::BatchKey;
use dtkc_methods::dtkc::{Common, Grouping, Joint};
use dtkc_methods::learner::{StepClock, StepPlace};
use dtkc_methods::places::{self, Pass, Purpose};
use dtkc_methods::{LearnError, Learner, MethodSettings, Task};
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

/// Networks whose figures are averaged: what is tied to what depends on the first weights, too.
const NETWORKS: usize = 3;

/// Least drop by which a number stands out.
pub(super) const CLEAR: f64 = 0.15;

/// What is trained.
pub(super) struct Plan {
    settings: MethodSettings,
    /// What the networks have in common, such as the table of neighbours.
    common: Common,
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
        let steps = (of_run / 4).max(config.run.trial_steps).clamp(1, of_run);
        Some(Self { settings: config.settings.fine_alone(last)?, common: Common::default(), clusters, steps })
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
    let mut found = Vec::new();
    for network in 0..NETWORKS {
        let mut search = Search::new(run, config, plan, network, observer)?;
        let joint = search.joint().map_err(|error| match error {
            TrainError::Stopped => search.interrupted(),
            other => other,
        })?;
        found.push(joint.numbers(range.first, range.last));
    }
    let trials = scored(&means(&found));
    write(run, &trials)?;
    Ok(trials)
}

/// The mean figures of every number.
fn means(found: &[Vec<Grouping>]) -> Vec<Grouping> {
    let Some(first) = found.first() else { return Vec::new() };
    let mean = |i: usize, figure: fn(&Grouping) -> f64| {
        found.iter().map(|numbers| figure(&numbers[i])).sum::<f64>() / found.len() as f64
    };
    let number = |(i, &Grouping { clusters, .. }): (usize, &Grouping)| Grouping {
        clusters,
        drop: mean(i, |number| number.drop),
        stay: mean(i, |number| number.stay),
        beyond_chance: mean(i, |number| number.beyond_chance),
    };
    first.iter().enumerate().map(number).collect()
}

/// The score is the drop; where no number stands out by it, what stays beyond chance, which has an optimum also then.
fn scored(numbers: &[Grouping]) -> Vec<Trial> {
    let is_clear = numbers.iter().any(|number| number.drop >= CLEAR);
    let trial = |&Grouping { clusters, drop, stay, beyond_chance }: &Grouping| {
        let score = if is_clear { drop } else { beyond_chance };
        Trial { clusters, score, figures: Figures::Groups { drop, beyond_chance, stay } }
    };
    numbers.iter().map(trial).collect()
}

struct Search<'a> {
    run: &'a RunDir,
    plan: &'a Plan,
    network: usize,
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
        network: usize,
        observer: &'a dyn Observer,
    ) -> Result<Self, TrainError> {
        let seed = |purpose| places::derive(config.run.seed, purpose, &[plan.clusters as u64, network as u64]);
        let task = Task { common: plan.common.clone(), ..config.task(plan.clusters)? };
        let mut learner = plan.settings.learner(&task, seed(Purpose::Weights))?;
        let state = State::open(run, config, plan, network, learner.as_mut())?;
        let views = seed(Purpose::Augmentation);
        Ok(Self { run, plan, network, data: RunData::open(config, observer)?, state, learner, views, observer })
    }

    fn joint(&mut self) -> Result<Joint, TrainError> {
        if let Some(joint) = self.state.joint() {
            return Ok(joint);
        }
        let work = format!("look for clusters, network {} of {NETWORKS}", self.network + 1);
        self.observer.begin(&work, "steps", Some(self.plan.steps as u64));
        self.observer.skip(self.state.step() as u64);
        self.learner.enter(0, &mut self.data)?;
        while self.state.step() < self.plan.steps {
            self.pass()?;
        }
        // What follows is short, but a set with many items may have taken long until here.
        self.state.save(self.learner.as_ref())?;
        let joint = self.learner.joint(&mut self.data)?;
        let joint =
            joint.ok_or_else(|| LearnError::Unsuitable("the network has no fine clusters to be joined".into()))?;
        self.state.finish(&joint)?;
        self.observer.end();
        Ok(joint)
    }

    /// The rest of an epoch, or of the steps.
    fn pass(&mut self) -> Result<(), TrainError> {
        let per_epoch = self.data.steps();
        let (epoch, first) = (self.state.step() / per_epoch, self.state.step() % per_epoch);
        if self.learner.is_refresh_due(0) {
            self.learner.refresh(&mut self.data)?;
            self.observer.note(format_args!("fine clusters"));
        }
        for batch in self.data.from(Pass::Trial { attempt: self.network, epoch }, first) {
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
        let (network, step, root) = (self.network + 1, self.state.saved(), self.run.root().display());
        TrainError::Interrupted(format!(
            "the search for the number of clusters is saved up to step {step} of network {network}; go on with `dtkc-train resume {root}`"
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
        // 39 epochs of 78 steps.
        assert_eq!(plan(""), (15, 760));
        assert_eq!(plan("run.k_range = '2..4'"), (15, 760));
        assert_eq!(plan("run.k_range = '2..20'"), (20, 760));
        assert_eq!(plan("run.trial_steps = 1000").1, 1000);
        assert_eq!(plan("plan.epochs = 2").1, 2 * 78);
    }

    #[test]
    fn networks_are_averaged() {
        let number = |drop, stay| Grouping { clusters: 4, drop, stay, beyond_chance: stay / 2.0 };
        let mean = means(&[vec![number(0.25, 0.5)], vec![number(0.75, 1.0)]]);
        assert_eq!(mean, [number(0.5, 0.75)]);
    }

    #[test]
    fn where_no_drop_stands_out_what_stays_decides() {
        let number = |clusters, drop, beyond_chance| Grouping { clusters, drop, stay: 0.9, beyond_chance };
        let score =
            |drop| scored(&[number(3, drop, 0.5), number(8, 0.1, 0.7)]).iter().map(|t| t.score).collect::<Vec<_>>();
        assert_eq!(score(0.3), [0.3, 0.1]);
        assert_eq!(score(0.12), [0.5, 0.7]);
    }
}
