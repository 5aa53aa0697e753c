//! A restart as a checkpoint and back.

use std::path::Path;

use dtkc_core::{NamedArray, Values};
use dtkc_methods::Learner;
use serde::{Deserialize, Serialize};

use super::{Best, Ended, Outcome, Recent, Restart};
use crate::checkpoint::{self, float_array, floats, with_prefix, without_prefix};
use crate::error::TrainError;
use crate::monitor::Monitor;
use crate::run_dir::RunDir;

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
            () if found.data != self.data => "a run on other data",
            () if found.config_hash != self.config_hash => "a run with other settings",
            () => return Ok(()),
        };
        Err(TrainError::ForeignCheckpoint { path: path.to_owned(), what })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct LastMeta {
    identity: Identity,
    log_lines: usize,
    stage: usize,
    entered: bool,
    epoch: usize,
    batch: usize,
    best_epoch: usize,
    stale: usize,
    #[serde(default)]
    converged: bool,
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

/// The weights of a finished restart, without what training needed beside them.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredNetwork {
    /// Where it comes from.
    pub meta: BestMeta,
    /// The learner's weights.
    pub weights: Vec<NamedArray>,
    /// Items of the training set in each cluster.
    pub sizes: Vec<u64>,
}

/// How far a restart has come, as its checkpoint says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// Whether it has ended.
    pub ended: bool,
    /// The stage, the epochs of it and the batches of the next one that are done.
    pub place: (usize, usize, usize),
    /// How many lines the log had then.
    pub log_lines: usize,
}

impl Reached {
    /// Whether it has come further than another.
    pub fn is_beyond(&self, other: &Self) -> bool {
        (self.ended, self.place) > (other.ended, other.place)
    }
}

/// How far the restart of a checkpoint has come.
pub fn reached(path: &Path) -> Result<Reached, TrainError> {
    let (meta, _) = checkpoint::read::<LastMeta>(path)?;
    let LastMeta { log_lines, stage, epoch, batch, ended, .. } = meta;
    Ok(Reached { ended: ended.is_some(), place: (stage, epoch, batch), log_lines })
}

/// Lines of the log that the checkpoints of a run know of.
pub fn known_lines(run: &RunDir, restarts: usize) -> Result<usize, TrainError> {
    let mut lines = 0;
    for path in (0..restarts).map(|index| run.last(index)).filter(|path| path.exists()) {
        lines = lines.max(reached(&path)?.log_lines);
    }
    Ok(lines)
}

/// Copies a checkpoint to a run whose log has so many lines.
pub fn copy(from: &Path, to: &Path, log_lines: usize) -> Result<(), TrainError> {
    let (meta, arrays) = checkpoint::read::<LastMeta>(from)?;
    checkpoint::write(to, &LastMeta { log_lines, ..meta }, &arrays)
}

/// How a restart ended and what it is worth, without the learner that it needs to go on; `None` for both where it has not ended.
pub fn read_end(
    path: &Path,
    identity: &Identity,
    clusters: usize,
) -> Result<(Option<Ended>, Option<Outcome>), TrainError> {
    let (meta, arrays) = checkpoint::read::<LastMeta>(path)?;
    identity.check(path, &meta.identity)?;
    Ok((meta.ended, read_outcome(&arrays, clusters)))
}

impl Restart {
    /// Writes everything that is needed to go on.
    pub fn save(&self, path: &Path, identity: &Identity, log_lines: usize) -> Result<(), TrainError> {
        let meta = LastMeta {
            identity: identity.clone(),
            log_lines,
            stage: self.stage,
            entered: self.entered,
            epoch: self.epoch,
            batch: self.batch,
            best_epoch: self.best.as_ref().map_or(0, |best| best.epoch),
            stale: self.stale,
            converged: self.converged,
            bad_steps: self.bad_steps,
            skipped: self.skipped,
            ended: self.ended,
        };
        let mut arrays: Vec<NamedArray> = with_prefix("weights.", &self.learner.weights()).collect();
        arrays.extend(with_prefix("progress.", &self.learner.progress()));
        arrays.extend(self.monitor.save());
        arrays.push(float_array("round_losses", &self.round_losses));
        arrays.push(float_array("recent", &self.recent.0));
        if let Some(best) = &self.best {
            arrays.push(float_array("best_loss", &[best.loss]));
            arrays.extend(with_prefix("best.", &best.weights));
        }
        if let Some(outcome) = &self.outcome {
            arrays.push(float_array("outcome.loss", &[outcome.loss]));
            arrays.extend(outcome.scores.map(|scores| float_array("outcome.scores", &scores)));
            arrays.push(sizes_array(&outcome.sizes));
            arrays.extend(outcome.confidence.map(|confidence| float_array("outcome.confidence", &[confidence])));
            arrays.push(NamedArray::list("outcome.sample", Values::U32(outcome.sample.clone())));
        }
        checkpoint::write(path, &meta, &arrays)
    }

    /// Reads what [`Restart::save`] wrote into a fresh `learner`.
    pub fn load(path: &Path, identity: &Identity, mut learner: Box<dyn Learner>) -> Result<Self, TrainError> {
        let damaged = |reason: String| TrainError::DamagedCheckpoint { path: path.to_owned(), reason };
        let (meta, arrays) = checkpoint::read::<LastMeta>(path)?;
        identity.check(path, &meta.identity)?;
        let clusters = learner.clusters();
        learner.set_weights(&without_prefix("weights.", &arrays)).map_err(|e| damaged(e.to_string()))?;
        learner.set_progress(&without_prefix("progress.", &arrays)).map_err(|e| damaged(e.to_string()))?;
        let monitor = Monitor::restore(clusters, &arrays)
            .ok_or_else(|| damaged("the figures of its epoch are not complete".into()))?;
        let best = floats(&arrays, "best_loss").and_then(|loss| loss.first()).map(|&loss| Best {
            epoch: meta.best_epoch,
            loss,
            weights: without_prefix("best.", &arrays),
        });
        let outcome = read_outcome(&arrays, clusters);
        if meta.ended.is_some() != outcome.is_some() {
            return Err(damaged("it has ended, but its result is missing".into()));
        }
        Ok(Self {
            index: identity.restart,
            learner,
            stage: meta.stage,
            entered: meta.entered,
            epoch: meta.epoch,
            batch: meta.batch,
            monitor,
            best,
            recent: Recent(floats(&arrays, "recent").unwrap_or_default().to_vec()),
            stale: meta.stale,
            converged: meta.converged,
            bad_steps: meta.bad_steps,
            skipped: meta.skipped,
            round_losses: floats(&arrays, "round_losses").unwrap_or_default().to_vec(),
            ended: meta.ended,
            outcome,
        })
    }
}

impl StoredNetwork {
    /// Writes the network.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        let mut arrays: Vec<NamedArray> = with_prefix("weights.", &self.weights).collect();
        arrays.push(sizes_array(&self.sizes));
        checkpoint::write(path, &self.meta, &arrays)
    }

    /// Reads the network.
    pub fn load(path: &Path, identity: &Identity) -> Result<Self, TrainError> {
        let (meta, arrays) = checkpoint::read::<BestMeta>(path)?;
        identity.check(path, &meta.identity)?;
        let sizes = read_sizes(&arrays).unwrap_or_default();
        Ok(Self { meta, weights: without_prefix("weights.", &arrays), sizes })
    }
}

fn read_outcome(arrays: &[NamedArray], clusters: usize) -> Option<Outcome> {
    let loss = *floats(arrays, "outcome.loss")?.first()?;
    let scores = floats(arrays, "outcome.scores").and_then(|scores| scores.try_into().ok());
    let sizes = read_sizes(arrays).filter(|sizes| sizes.len() == clusters)?;
    let confidence = floats(arrays, "outcome.confidence").and_then(|values| values.first().copied());
    let sample = match NamedArray::find(arrays, "outcome.sample").map(|array| &array.values) {
        Some(Values::U32(sample)) => sample.clone(),
        _ => Vec::new(),
    };
    Some(Outcome { loss, scores, sizes, confidence, sample })
}

fn sizes_array(sizes: &[u64]) -> NamedArray {
    NamedArray::list("sizes", Values::U64(sizes.to_vec()))
}

fn read_sizes(arrays: &[NamedArray]) -> Option<Vec<u64>> {
    match &NamedArray::find(arrays, "sizes")?.values {
        Values::U64(sizes) => Some(sizes.clone()),
        _ => None,
    }
}
