//! A limit on the time: how many restarts of how many epochs fit, decided once and written down.
//!
//! With a time budget the result depends on the speed of the machine. The decision is therefore made once, after the
//! first epoch, and kept in `budget.json`, so that a resumed run follows the same plan.

use std::path::PathBuf;
use std::time::Instant;

use dtkc_methods::Learner;
use serde::{Deserialize, Serialize};

use crate::config::RunConfig;
use crate::error::TrainError;
use crate::prune;
use crate::run_dir::RunDir;

/// Part of the budget that is planned with; the rest is for scoring, export and surprises.
const USABLE: f64 = 0.9;

/// What fits the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) restarts: usize,
    pub(super) epochs: usize,
}

/// The time that a run has.
pub(super) struct Budget {
    seconds: Option<f64>,
    spent_before: f64,
    started: Instant,
    path: PathBuf,
    plan: Option<Plan>,
}

impl Budget {
    /// `spent` seconds were used before this process began.
    pub(super) fn open(run: &RunDir, config: &RunConfig, spent: f64) -> Result<Self, TrainError> {
        let seconds = Some(config.run.budget_seconds).filter(|&seconds| seconds > 0.0);
        let path = run.budget();
        let plan = match seconds.is_some() && path.exists() {
            true => Some(serde_json::from_str(&fs_err::read_to_string(&path)?).map_err(|e| {
                TrainError::ConfigFile { path: path.clone(), reason: format!("{e}; delete it to plan anew") }
            })?),
            false => None,
        };
        Ok(Self { seconds, spent_before: spent, started: Instant::now(), path, plan })
    }

    /// Whether the time is used up.
    pub(super) fn exhausted(&self) -> bool {
        self.is_gone(USABLE)
    }

    /// Whether half of the time is used up: what comes before clustering may take no more.
    pub(super) fn is_half_gone(&self) -> bool {
        self.is_gone(0.5)
    }

    fn is_gone(&self, part: f64) -> bool {
        self.seconds.is_some_and(|seconds| self.spent_before + self.started.elapsed().as_secs_f64() >= seconds * part)
    }

    /// Whether the plan has still to be made.
    pub(super) fn needs_plan(&self) -> bool {
        self.seconds.is_some() && self.plan.is_none()
    }

    /// The plan, where there is a budget.
    pub(super) fn planned(&self) -> Option<Plan> {
        self.plan
    }

    /// Makes the plan from the time that one epoch takes, and that all stages before it take.
    pub(super) fn make_plan(
        &mut self,
        config: &RunConfig,
        learner: &dyn Learner,
        epoch_seconds: f64,
        before_seconds: f64,
    ) -> Result<Plan, TrainError> {
        let upheavals = learner.upheavals(config.plan.epochs);
        let epochs = |seconds: f64| seconds / epoch_seconds.max(1e-9);
        let fits = epochs(self.seconds.unwrap_or(f64::INFINITY) * USABLE);
        let plan = fitting(config, &upheavals, fits, epochs(before_seconds));
        let text = serde_json::to_string(&plan).map_err(std::io::Error::from)?;
        dtkc_files::write(&self.path, text.as_bytes())?;
        self.plan = Some(plan);
        Ok(plan)
    }
}

/// The most restarts, and if there is only one the most epochs, that cost no more than `epochs` epochs in all. Each
/// restart has stages before, which take as long as `before` epochs.
fn fitting(config: &RunConfig, upheavals: &[usize], epochs: f64, before: f64) -> Plan {
    let asked = &config.plan;
    let rounds = |n| prune::rounds(config.pruning(), n, asked.epochs, upheavals);
    let cost = |n| n as f64 * before + prune::total_epochs(&rounds(n), n) as f64;
    let restarts = (1..=asked.restarts).rev().find(|&n| cost(n) <= epochs);
    match restarts {
        Some(restarts) => Plan { restarts, epochs: asked.epochs },
        None => Plan { restarts: 1, epochs: ((epochs - before) as usize).clamp(1, asked.epochs) },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn config(text: &str) -> RunConfig {
        RunConfig::resolve(&[text.parse().unwrap()]).unwrap()
    }

    #[test]
    fn restarts_are_reduced_first_and_epochs_only_for_a_single_one() {
        let config = config("preset = 'authors'\nplan.restarts = 20\nplan.epochs = 100");
        assert_eq!(fitting(&config, &[], 1e9, 0.0), Plan { restarts: 20, epochs: 100 });
        assert_eq!(fitting(&config, &[], 350.0, 0.0), Plan { restarts: 3, epochs: 100 });
        assert_eq!(fitting(&config, &[], 40.5, 0.0), Plan { restarts: 1, epochs: 40 });
        assert_eq!(fitting(&config, &[], 0.2, 0.0), Plan { restarts: 1, epochs: 1 });
        // A pretraining as long as 50 epochs.
        assert_eq!(fitting(&config, &[], 350.0, 50.0), Plan { restarts: 2, epochs: 100 });
        assert_eq!(fitting(&config, &[], 80.0, 50.0), Plan { restarts: 1, epochs: 30 });
    }

    #[test]
    fn pruning_makes_room_for_more_restarts() {
        let config =
            config("preset = 'plus'\nplan.restarts = 20\nplan.epochs = 100\nplan.prune = true\nprune.first_epoch = 5");
        // 20 restarts cost 380 epochs (see prune.rs).
        assert_eq!(fitting(&config, &[], 380.0, 0.0).restarts, 20);
        assert!((2..20).contains(&fitting(&config, &[], 300.0, 0.0).restarts));
    }
}
