//! What a pretraining made, kept for other runs to begin with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dtkc_core::NamedArray;
use dtkc_methods::Task;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::checkpoint;
use crate::config::RunConfig;
use crate::error::TrainError;
use crate::restart::Identity;
use crate::run_dir::{self, RunDir};

/// The header of what a pretraining made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Meta {
    /// The restart that it comes from.
    identity: Identity,
}

/// Writes what the pretraining of a restart has made.
pub fn write(run: &RunDir, identity: &Identity, arrays: &[NamedArray]) -> Result<(), TrainError> {
    checkpoint::write(&run.pretrained(identity.restart), &Meta { identity: identity.clone() }, arrays)
}

/// Refuses a pretraining that a run at `out` with this configuration could not begin with, before anything of that run is
/// made. Nothing is to be done where no other run is named.
pub fn check(out: &Path, config: &RunConfig) -> Result<(), TrainError> {
    if config.run.pretrained.is_empty() {
        return Ok(());
    }
    let from = Path::new(&config.run.pretrained);
    run_dir::require_run(from)?;
    let place = |path: &Path| path.canonicalize().ok();
    if place(from).is_some() && place(from) == place(out) {
        let text = format!("{} cannot take over its own pretraining; choose another folder for --out", out.display());
        return Err(TrainError::Setting(text));
    }
    let sources = available(from);
    if sources.is_empty() {
        let text = format!(
            "{} has no finished pretraining; name a run of dec, idec, dcn, dbc or spectralnet that has got that far",
            from.display()
        );
        return Err(TrainError::NothingTrained(text));
    }
    let task = config.task(config.largest_k())?;
    for source in sources {
        let (_, arrays) = checkpoint::read::<Meta>(&source)?;
        // A learner takes what fits it and nothing else.
        config.settings.learner(&Task { pretrained: Some(arrays.into()), ..task.clone() }, 0)?;
    }
    Ok(())
}

/// Copies the pretrained restarts of the run that the configuration names into `run`, so that it no longer needs the other
/// one, and notes in the configuration what they are. Nothing is to be done where no other run is named.
pub fn adopt(run: &RunDir, config: &mut RunConfig) -> Result<(), TrainError> {
    if config.run.pretrained.is_empty() {
        return Ok(());
    }
    let from = std::path::absolute(&config.run.pretrained)?;
    let sources = available(&from);
    for (number, source) in sources.iter().enumerate() {
        dtkc_files::write(&run.pretrained(number), &fs_err::read(source)?)?;
    }
    let first = Sha256::digest(fs_err::read(run.pretrained(0))?);
    config.run.pretrained = from.to_string_lossy().into_owned();
    config.run.pretrained_hash = first.iter().map(|byte| format!("{byte:02x}")).collect();
    config.run.pretrained_restarts = (0..config.plan.restarts).map(|restart| restart % sources.len().max(1)).collect();
    Ok(())
}

/// Takes over what the other run has pretrained since, for restarts that have not begun: where there are fewer autoencoders
/// than restarts, these are not independent of each other. Restarts that have begun stay with what they began with. Says
/// whether the configuration has changed.
pub fn take_more(run: &RunDir, config: &mut RunConfig) -> Result<bool, TrainError> {
    if config.run.pretrained_hash.is_empty() {
        return Ok(false);
    }
    let before = available(run.root()).len();
    let count = before + copy_missing(run, config, before)?;
    let number = |restart: usize| match run.last(restart).exists() {
        true => number(config, restart, before),
        false => restart % count.max(1),
    };
    let restarts = config.plan.restarts.max(config.run.pretrained_restarts.len());
    let numbers: Vec<usize> = (0..restarts).map(number).collect();
    let is_changed = numbers != config.run.pretrained_restarts;
    config.run.pretrained_restarts = numbers;
    Ok(is_changed)
}

/// Copies pretrained restarts that the other run has and this one lacks; says how many.
fn copy_missing(run: &RunDir, config: &RunConfig, before: usize) -> Result<usize, TrainError> {
    let sources = available(Path::new(&config.run.pretrained));
    let wanted = sources.len().min(config.plan.restarts);
    // The other run may be gone, or be another one by now: then there is nothing to be had.
    let is_same = || matches!((fs_err::read(&sources[0]), fs_err::read(run.pretrained(0))), (Ok(a), Ok(b)) if a == b);
    if wanted <= before || !is_same() {
        return Ok(0);
    }
    for (number, source) in sources.iter().enumerate().take(wanted).skip(before) {
        let bytes = fs_err::read(source)?;
        // What is damaged there is no reason to end here.
        if checkpoint::decode::<Meta>(source, &bytes).is_err() {
            return Ok(number - before);
        }
        dtkc_files::write(&run.pretrained(number), &bytes)?;
    }
    Ok(wanted - before)
}

/// The task of one restart, with what another run's pretraining made for it.
pub fn with_pretraining(task: &Task, root: &Path, config: &RunConfig, restart: usize) -> Result<Task, TrainError> {
    let pretrained = number_of(root, config, restart).map(|number| read(root, number)).transpose()?;
    Ok(Task { pretrained, restart, ..task.clone() })
}

/// The restart of the other run that a restart of the run at `root` begins with; `None` where it pretrains itself.
pub fn number_of(root: &Path, config: &RunConfig, restart: usize) -> Option<usize> {
    (!config.run.pretrained_hash.is_empty()).then(|| number(config, restart, available(root).len()))
}

fn number(config: &RunConfig, restart: usize, count: usize) -> usize {
    config.run.pretrained_restarts.get(restart).copied().unwrap_or(restart % count.max(1))
}

fn read(root: &Path, number: usize) -> Result<Arc<[NamedArray]>, TrainError> {
    let (_, arrays) = checkpoint::read::<Meta>(&run_dir::pretrained_path(root, number))?;
    Ok(arrays.into())
}

/// What the run at `root` has pretrained or taken over.
pub fn available(root: &Path) -> Vec<PathBuf> {
    (0..).map(|restart| run_dir::pretrained_path(root, restart)).take_while(|path| path.exists()).collect()
}

#[cfg(test)]
#[path = "pretrained_tests.rs"]
mod tests;
