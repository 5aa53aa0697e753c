//! What a run was started with, beside the numbers of the method.

use serde::{Deserialize, Serialize};

use super::{Clusters, KRange};
use crate::device::DeviceName;
use crate::error::TrainError;

/// What a run was started with, beside the numbers of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunOptions {
    /// Number of clusters, or `auto`.
    pub clusters: Clusters,
    /// The numbers of clusters that `auto` looks at.
    pub k_range: KRange,
    /// Seed of everything random.
    pub seed: u64,
    /// Where to train.
    pub device: DeviceName,
    /// Threads; 0 takes all cores. The result does not depend on it.
    pub threads: usize,
    /// Bytes that the loader may hold.
    pub memory_budget: u64,
    /// Least seconds between two checkpoints; 0 writes one after every step.
    pub checkpoint_seconds: f64,
    /// Seconds that training may take in all; 0 has no limit.
    pub budget_seconds: f64,
    /// Steps of each short run that `clusters = "auto"` makes; there are two for every number of clusters. Where a few
    /// networks are asked for all numbers, each takes a quarter of the steps of a restart, and at least these.
    pub trial_steps: usize,
    /// Batches on which restarts are compared.
    pub comparison_batches: usize,
    /// Epochs after which to look inside the network and write down what is seen, again and again; 0 never does. It changes
    /// nothing else.
    pub inside_every: usize,
    /// The run whose pretraining was taken over; empty for none.
    pub pretrained: String,
    /// Hash of the first restart that was taken over. It stands for all of them, so that a run can be given more restarts.
    pub pretrained_hash: String,
    /// The restart of that run that each restart begins with. Those that are not named take what is there in turn.
    pub pretrained_restarts: Vec<usize>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            clusters: Clusters::Unset,
            k_range: KRange::default(),
            seed: 0,
            device: DeviceName::CPU,
            threads: 0,
            memory_budget: 2 << 30,
            checkpoint_seconds: 30.0,
            budget_seconds: 0.0,
            trial_steps: 600,
            comparison_batches: 50,
            inside_every: 0,
            pretrained: String::new(),
            pretrained_hash: String::new(),
            pretrained_restarts: Vec::new(),
        }
    }
}

impl RunOptions {
    /// Only the options that decide what a restart becomes; the memory budget decides the order in which a large set is
    /// streamed.
    pub(super) fn deciding(&self) -> Self {
        Self {
            clusters: self.clusters,
            seed: self.seed,
            memory_budget: self.memory_budget,
            comparison_batches: self.comparison_batches,
            pretrained_hash: self.pretrained_hash.clone(),
            ..Self::default()
        }
    }

    /// Refuses what cannot work.
    pub(super) fn check(&self) -> Result<(), TrainError> {
        for (name, value) in
            [("run.checkpoint_seconds", self.checkpoint_seconds), ("run.budget_seconds", self.budget_seconds)]
        {
            if !(value.is_finite() && value >= 0.0) {
                return Err(TrainError::Setting(format!("{name} = {value} is no time; write seconds, 0 or more")));
            }
        }
        for (name, value) in [("comparison_batches", self.comparison_batches), ("trial_steps", self.trial_steps)] {
            if value == 0 {
                return Err(TrainError::Setting(format!("run.{name} is 0, it must be at least 1")));
            }
        }
        Ok(())
    }
}
