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

/// Copies the pretrained restarts of the run at `from` into `run`, so that it no longer needs the other one. Says what
/// they are, for the run's hash.
pub fn adopt(from: &Path, run: &RunDir) -> Result<String, TrainError> {
    run_dir::require_run(from)?;
    let mut hash = Sha256::new();
    let sources = available(from);
    if sources.is_empty() {
        let text = format!(
            "{} has no finished pretraining; name a run of dec, idec, dcn, dbc or spectralnet that has got that far",
            from.display()
        );
        return Err(TrainError::NothingTrained(text));
    }
    for (restart, source) in sources.iter().enumerate() {
        let bytes = fs_err::read(source)?;
        // Damage is found now and not when training is under way.
        checkpoint::decode::<Meta>(source, &bytes)?;
        hash.update(&bytes);
        dtkc_files::write(&run.pretrained(restart), &bytes)?;
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The task of one restart, with what another run's pretraining made for it.
pub fn with_pretraining(task: &Task, root: &Path, config: &RunConfig, restart: usize) -> Result<Task, TrainError> {
    let pretrained = match config.run.pretrained_hash.is_empty() {
        true => None,
        false => Some(read(root, restart)?),
    };
    Ok(Task { pretrained, ..task.clone() })
}

/// What a restart begins with. Where there are fewer than restarts, they are used in turn.
fn read(root: &Path, restart: usize) -> Result<Arc<[NamedArray]>, TrainError> {
    let count = available(root).len().max(1);
    let (_, arrays) = checkpoint::read::<Meta>(&run_dir::pretrained_path(root, restart % count))?;
    Ok(arrays.into())
}

fn available(root: &Path) -> Vec<PathBuf> {
    (0..).map(|restart| run_dir::pretrained_path(root, restart)).take_while(|path| path.exists()).collect()
}
