//! How far a network has come from which the number of clusters is read, on the disk: while it is trained its weights, at
//! the end how well groups are apart.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use dtkc_core::NamedArray;
use dtkc_methods::Learner;
use dtkc_methods::dtkc::Joinings;
use serde::{Deserialize, Serialize};

use super::fine::Plan;
use crate::checkpoint::{self, float_array, floats, with_prefix, without_prefix};
use crate::config::RunConfig;
use crate::error::TrainError;
use crate::run_dir::RunDir;

/// The name of the result.
const JOININGS: &str = "joinings";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Meta {
    config_hash: String,
    clusters: usize,
    steps: usize,
    step: usize,
}

/// The progress of one search.
pub(super) struct State {
    path: PathBuf,
    meta: Meta,
    joinings: Option<Joinings>,
    saved: usize,
    last_save: Instant,
    interval: Duration,
}

impl State {
    /// Reads what there is into `learner`. What another plan made (somebody changed the range) is begun anew.
    pub(super) fn open(
        run: &RunDir,
        config: &RunConfig,
        plan: &Plan,
        learner: &mut dyn Learner,
    ) -> Result<Self, TrainError> {
        let Plan { clusters, steps, .. } = *plan;
        let meta = Meta { config_hash: config.hash()?, clusters, steps, step: 0 };
        let interval = Duration::from_secs_f64(config.run.checkpoint_seconds);
        let path = run.search();
        let mut state = Self { path, meta, joinings: None, saved: 0, last_save: Instant::now(), interval };
        if state.path.exists() {
            state.read(learner)?;
        }
        Ok(state)
    }

    fn read(&mut self, learner: &mut dyn Learner) -> Result<(), TrainError> {
        let damaged = |reason: String| TrainError::DamagedCheckpoint { path: self.path.clone(), reason };
        let (meta, arrays) = checkpoint::read::<Meta>(&self.path)?;
        if (Meta { step: 0, ..meta.clone() }) != self.meta {
            return Ok(());
        }
        match floats(&arrays, JOININGS) {
            Some(steps) => self.joinings = Some(Joinings::new(steps.as_chunks().0.to_vec())),
            None => {
                learner.set_weights(&without_prefix("weights.", &arrays)).map_err(|e| damaged(e.to_string()))?;
                learner.set_progress(&without_prefix("progress.", &arrays)).map_err(|e| damaged(e.to_string()))?;
            }
        }
        (self.saved, self.meta) = (meta.step, meta);
        Ok(())
    }

    /// The result, where there is one already.
    pub(super) fn joinings(&self) -> Option<Joinings> {
        self.joinings.clone()
    }

    /// Steps that are done.
    pub(super) fn step(&self) -> usize {
        self.meta.step
    }

    /// Steps that the disk knows of.
    pub(super) fn saved(&self) -> usize {
        self.saved
    }

    /// A step was made; saves now and then.
    pub(super) fn advance(&mut self, learner: &dyn Learner) -> Result<(), TrainError> {
        self.meta.step += 1;
        if self.last_save.elapsed() >= self.interval { self.save(learner) } else { Ok(()) }
    }

    /// Writes everything that is needed to go on.
    pub(super) fn save(&mut self, learner: &dyn Learner) -> Result<(), TrainError> {
        let mut arrays: Vec<NamedArray> = with_prefix("weights.", &learner.weights()).collect();
        arrays.extend(with_prefix("progress.", &learner.progress()));
        checkpoint::write(&self.path, &self.meta, &arrays)?;
        (self.saved, self.last_save) = (self.meta.step, Instant::now());
        Ok(())
    }

    /// Writes the result, which takes the place of the network.
    pub(super) fn finish(&self, joinings: &Joinings) -> Result<(), TrainError> {
        checkpoint::write(&self.path, &self.meta, &[float_array(JOININGS, joinings.steps().as_flattened())])
    }
}
