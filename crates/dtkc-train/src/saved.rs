//! The network that a run found, read back for evaluation and export.

use std::path::Path;

use dtkc_methods::Learner;

use crate::assign::order_by_size;
use crate::config::RunConfig;
use crate::device::DeviceName;
use crate::error::TrainError;
use crate::restart::{Identity, StoredNetwork};
use crate::run_dir;
use crate::summary::{RestartFigures, Summary};

/// A finished restart of a run.
pub struct Saved {
    /// The run's settings.
    pub config: RunConfig,
    /// Its number.
    pub restart: usize,
    /// Its figures, where the whole run is finished.
    pub figures: Option<RestartFigures>,
    /// The learner with the network that it ended with.
    pub learner: Box<dyn Learner>,
    /// Cluster sizes on the training set, as the network numbers them.
    pub sizes: Vec<u64>,
    /// The network's number of the largest cluster, the second largest, ..
    pub order: Vec<usize>,
}

impl Saved {
    /// Reads the best restart of a run, or the one that is asked for.
    pub fn open(root: &Path, restart: Option<usize>, device: DeviceName) -> Result<Self, TrainError> {
        run_dir::require_run(root)?;
        let mut config = RunConfig::read(&run_dir::config_path(root))?;
        let summary_path = run_dir::summary_path(root);
        let summary = if summary_path.exists() { Some(Summary::read(&summary_path)?) } else { None };
        let unfinished = || {
            let text = format!(
                "{} is not finished; run `dtkc-train resume {}` first, or name a finished restart with --restart",
                root.display(),
                root.display()
            );
            TrainError::NothingTrained(text)
        };
        let restart = restart.or(summary.as_ref().map(|s| s.best_restart)).ok_or_else(unfinished)?;
        let path = run_dir::best_path(root, restart);
        if !path.exists() {
            let text = format!("{} has no finished restart {restart} (they count from 0)", root.display());
            return Err(TrainError::NothingTrained(text));
        }
        let identity = Identity { config_hash: config.hash()?, data: config.data.fingerprint.clone(), restart };
        let stored = StoredNetwork::load(&path, &identity)?;
        config.run.device = device;
        let mut learner = config.settings.learner(&config.task(config.clusters()?)?, 0)?;
        learner
            .set_weights(&stored.weights)
            .map_err(|error| TrainError::DamagedCheckpoint { path, reason: error.to_string() })?;
        let order = order_by_size(&stored.sizes);
        let figures = summary.and_then(|s| s.restarts.into_iter().find(|figures| figures.restart == restart));
        Ok(Self { config, restart, figures, learner, sizes: stored.sizes, order })
    }

    /// Clusters as the network numbers them, renumbered by size.
    pub fn renumber(&self, clusters: &mut [i64]) {
        let mut place = vec![0i64; self.order.len()];
        for (new, &old) in self.order.iter().enumerate() {
            place[old] = new as i64;
        }
        clusters.iter_mut().for_each(|cluster| *cluster = place[*cluster as usize]);
    }
}
