//! A restart as a checkpoint and back.

use std::path::Path;

use dtkc_core::{Model, NamedArray};
use serde::{Deserialize, Serialize};

use super::{Best, Ended, Outcome, Restart};
use crate::checkpoint::{self, Array, Values, float_array, floats};
use crate::error::TrainError;
use crate::monitor::Monitor;
use crate::optimizer::{Adam, AdamConfig};

/// What a checkpoint belongs to. One of other settings or other data is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Hash of the settings that decide the result.
    pub config_hash: String,
    /// Fingerprint of the dataset.
    pub data: String,
    /// Number of the restart.
    pub restart: usize,
}

impl Identity {
    fn check(&self, path: &Path, found: &Self) -> Result<(), TrainError> {
        let what = match () {
            () if found.restart != self.restart => "another restart",
            () if found.config_hash != self.config_hash => "a run with other settings",
            () if found.data != self.data => "a run on other data",
            () => return Ok(()),
        };
        Err(TrainError::ForeignCheckpoint { path: path.to_owned(), what })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct LastMeta {
    identity: Identity,
    log_lines: usize,
    epoch: usize,
    batch: usize,
    adam_steps: u64,
    best_epoch: usize,
    stale: usize,
    bad_steps: usize,
    skipped: usize,
    ended: Option<Ended>,
}

/// The header of a stored network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BestMeta {
    /// What it belongs to.
    pub identity: Identity,
    /// The epoch that it comes from.
    pub epoch: usize,
}

/// A stored network without its optimiser.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredNetwork {
    /// Where it comes from.
    pub meta: BestMeta,
    /// Weights and running statistics.
    pub state: Vec<NamedArray>,
    /// Images in each cluster of the training set.
    pub sizes: Vec<u64>,
}

/// How many lines the log had when this checkpoint was written.
pub fn log_lines(path: &Path) -> Result<usize, TrainError> {
    Ok(checkpoint::read::<LastMeta>(path)?.0.log_lines)
}

impl Restart {
    /// Writes everything that is needed to go on.
    pub fn save(&self, path: &Path, identity: &Identity, log_lines: usize) -> Result<(), TrainError> {
        let meta = LastMeta {
            identity: identity.clone(),
            log_lines,
            epoch: self.epoch,
            batch: self.batch,
            adam_steps: self.adam.steps(),
            best_epoch: self.best.as_ref().map_or(0, |best| best.epoch),
            stale: self.stale,
            bad_steps: self.bad_steps,
            skipped: self.skipped,
            ended: self.ended,
        };
        let mut arrays = checkpoint::network_arrays("model.", &self.model.state());
        arrays.extend(self.adam.save());
        arrays.extend(self.monitor.save());
        arrays.push(float_array("stage_losses", &self.stage_losses));
        if let Some(best) = &self.best {
            arrays.push(float_array("best_loss", &[best.loss]));
            arrays.extend(checkpoint::network_arrays("best.", &best.state));
        }
        if let Some(outcome) = &self.outcome {
            arrays.push(float_array("outcome.loss", &[outcome.loss]));
            arrays.extend(outcome.scores.map(|scores| float_array("outcome.scores", &scores)));
            arrays.push(sizes_array(&outcome.sizes));
        }
        checkpoint::write(path, &meta, &arrays)
    }

    /// Reads what [`Restart::save`] wrote into a fresh `model`.
    pub fn load(path: &Path, identity: &Identity, mut model: Model, adam: AdamConfig) -> Result<Self, TrainError> {
        let damaged = |reason: String| TrainError::DamagedCheckpoint { path: path.to_owned(), reason };
        let (meta, arrays) = checkpoint::read::<LastMeta>(path)?;
        identity.check(path, &meta.identity)?;
        let clusters = model.valid_config().config().clusters;
        model.load_state(&checkpoint::network_state("model.", &arrays)).map_err(|e| damaged(e.to_string()))?;
        let adam = Adam::restore(adam, meta.adam_steps, &arrays)
            .filter(|adam| adam.fits(&model))
            .ok_or_else(|| damaged("the optimiser's state does not fit the network".into()))?;
        let monitor = Monitor::restore(clusters, &arrays)
            .ok_or_else(|| damaged("the figures of its epoch are not complete".into()))?;
        let best = floats(&arrays, "best_loss").and_then(|loss| loss.first()).map(|&loss| Best {
            epoch: meta.best_epoch,
            loss,
            state: checkpoint::network_state("best.", &arrays),
        });
        let outcome = read_outcome(&arrays, clusters);
        if meta.ended.is_some() != outcome.is_some() {
            return Err(damaged("it has ended, but its result is missing".into()));
        }
        Ok(Self {
            index: identity.restart,
            epoch: meta.epoch,
            batch: meta.batch,
            model,
            adam,
            monitor,
            best,
            stale: meta.stale,
            bad_steps: meta.bad_steps,
            skipped: meta.skipped,
            stage_losses: floats(&arrays, "stage_losses").unwrap_or_default().to_vec(),
            ended: meta.ended,
            outcome,
        })
    }
}

impl StoredNetwork {
    /// Writes the network.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        let mut arrays = checkpoint::network_arrays("model.", &self.state);
        arrays.push(sizes_array(&self.sizes));
        checkpoint::write(path, &self.meta, &arrays)
    }

    /// Reads the network.
    pub fn load(path: &Path, identity: &Identity) -> Result<Self, TrainError> {
        let (meta, arrays) = checkpoint::read::<BestMeta>(path)?;
        identity.check(path, &meta.identity)?;
        let sizes = read_sizes(&arrays).unwrap_or_default();
        Ok(Self { meta, state: checkpoint::network_state("model.", &arrays), sizes })
    }
}

fn read_outcome(arrays: &[Array], clusters: usize) -> Option<Outcome> {
    let loss = *floats(arrays, "outcome.loss")?.first()?;
    let scores = floats(arrays, "outcome.scores").and_then(|scores| scores.try_into().ok());
    let sizes = read_sizes(arrays).filter(|sizes| sizes.len() == clusters)?;
    Some(Outcome { loss, scores, sizes })
}

fn sizes_array(sizes: &[u64]) -> Array {
    // A dataset's indices fit 32 bits (the monitor says so too), and so do its counts.
    let values = sizes.iter().map(|&size| u32::try_from(size).unwrap_or(u32::MAX)).collect();
    Array { name: "sizes".into(), shape: vec![sizes.len()], values: Values::U32(values) }
}

fn read_sizes(arrays: &[Array]) -> Option<Vec<u64>> {
    arrays.iter().find(|a| a.name == "sizes").and_then(|a| match &a.values {
        Values::U32(values) => Some(values.iter().map(|&v| u64::from(v)).collect()),
        _ => None,
    })
}
