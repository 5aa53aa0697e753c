//! One part, to its end.

use std::path::Path;
use std::time::Duration;

use dtkc_observe::Observer;

use super::{Part, check, patiently};
use crate::auto_k;
use crate::config::{Clusters, RunConfig};
use crate::error::TrainError;
use crate::pipeline;
use crate::pretrained;
use crate::run_dir::{self, RunDir};
use crate::trainer::Trainer;

/// Brings a part of the run at `root` to its end, or goes on where another process has left it. A lock that is held is waited for as long
/// as `wait`.
pub fn work(root: &Path, part: Part, wait: Duration, observer: &dyn Observer) -> Result<(), TrainError> {
    let own = patiently(wait, observer, || RunDir::part(root, &part.to_string()))?;
    let config = RunConfig::read(&run_dir::config_path(root))?;
    check(&config)?;
    pipeline::check_data(&config)?;
    config.write(&own.config())?;
    let done = match (part, config.run.clusters) {
        (Part::Restart(index), Clusters::Fixed(_)) if index < config.plan.restarts => {
            begin_with(root, &own, &config, index)?;
            Trainer::open_one(&own, config, index, observer)?.train_one(index)
        }
        (Part::Search, Clusters::Auto) => auto_k::rank(&own, &config, observer).map(drop),
        (Part::Clusters(number), Clusters::Auto) => auto_k::try_number(&own, &config, number, observer),
        _ => {
            let text = format!(
                "{} has no {part} now; `dtkc-train parts {}` lists what is left",
                root.display(),
                root.display()
            );
            return Err(TrainError::Setting(text));
        }
    };
    done.map_err(|error| match error {
        TrainError::Interrupted(_) | TrainError::Stopped => TrainError::Interrupted(format!(
            "{part} is saved up to its last checkpoint; the same command goes on with it"
        )),
        other => other,
    })
}

/// Gives a part what the run has of its restart already, and the pretraining that the run took over.
fn begin_with(root: &Path, own: &RunDir, config: &RunConfig, index: usize) -> Result<(), TrainError> {
    let theirs = run_dir::last_path(root, index);
    if theirs.exists() && !own.last(index).exists() {
        dtkc_files::write(&own.last(index), &fs_err::read(theirs)?)?;
    }
    if !config.run.pretrained_hash.is_empty() {
        for (number, source) in pretrained::available(root).iter().enumerate() {
            dtkc_files::write(&own.pretrained(number), &fs_err::read(source)?)?;
        }
    }
    Ok(())
}
