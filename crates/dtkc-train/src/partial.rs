//! The best network so far of a run that is not finished.
//!
//! Everything comes from the checkpoints and nothing is written, so that the run goes on to the same bits.

use std::path::Path;

use dtkc_methods::{Learner, places};
use dtkc_observe::Silent;

use crate::assign;
use crate::config::RunConfig;
use crate::data::RunData;
use crate::error::TrainError;
use crate::pretrained;
use crate::restart::{Identity, Restart};
use crate::run_dir;

/// A network from the middle of training.
pub struct Partial {
    /// The restart that it comes from.
    pub restart: usize,
    /// The learner with its weights.
    pub learner: Box<dyn Learner>,
    /// Cluster sizes on the training set, as the network numbers them.
    pub sizes: Vec<u64>,
    /// What it is, in a sentence.
    pub about: String,
}

/// The best one of the restarts that were begun, or of the one that is asked for. Restarts are compared by the loss on the
/// batches that all share, as at the end of a run.
pub fn best(root: &Path, config: &RunConfig, asked: Option<usize>) -> Result<Partial, TrainError> {
    let mut data = RunData::open(config, &Silent)?;
    let mut found: Option<(f64, Restart)> = None;
    for index in asked.map_or(0..config.plan.restarts, |index| index..index + 1) {
        let Some(mut restart) = load(root, config, index)? else { continue };
        restart.learner.settle(&mut data)?;
        let loss = match &restart.outcome {
            Some(outcome) => outcome.loss,
            None => assign::comparison_loss(restart.learner.as_ref(), &mut data)?,
        };
        if found.as_ref().is_none_or(|(least, _)| loss < *least || (least.is_nan() && !loss.is_nan())) {
            found = Some((loss, restart));
        }
    }
    let (_, restart) = found.ok_or_else(|| nothing(root))?;
    let sizes = assign::assign_all(restart.learner.as_ref(), &mut data)?.sizes;
    Ok(Partial { restart: restart.index, about: about(&restart, config), learner: restart.learner, sizes })
}

/// A restart at its best epoch; `None` where it was not begun, or has no clusters yet.
fn load(root: &Path, config: &RunConfig, index: usize) -> Result<Option<Restart>, TrainError> {
    let path = run_dir::last_path(root, index);
    if !path.exists() {
        return Ok(None);
    }
    let task = pretrained::with_pretraining(&config.task(config.clusters()?)?, root, config, index)?;
    let learner = config.settings.learner(&task, places::weights(config.run.seed, index))?;
    let last_stage = learner.stages().len() - 1;
    let identity = Identity { config_hash: config.hash()?, data: config.data.fingerprint.clone(), restart: index };
    let mut restart = Restart::load(&path, &identity, learner)?;
    if restart.stage < last_stage || (restart.epoch == 0 && restart.batch == 0) {
        return Ok(None);
    }
    // Before the end of its first epoch a restart has no best one; then its weights as they are will do.
    if let Some(best) = &restart.best {
        let damaged =
            |error: dtkc_methods::LearnError| TrainError::DamagedCheckpoint { path, reason: error.to_string() };
        restart.learner.set_weights(&best.weights).map_err(damaged)?;
    }
    Ok(Some(restart))
}

fn about(restart: &Restart, config: &RunConfig) -> String {
    let epoch = restart.best.as_ref().map_or(1, |best| best.epoch);
    format!(
        "training is not finished: this is the best network so far, from epoch {epoch} of {} of restart {} of {}",
        config.plan.epochs,
        restart.index + 1,
        config.plan.restarts
    )
}

fn nothing(root: &Path) -> TrainError {
    let root = root.display();
    TrainError::NothingTrained(format!("{root} has no clusters yet; go on with `dtkc-train resume {root}`"))
}
