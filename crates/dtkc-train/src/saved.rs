//! The network that a run found, or has found so far, read back for evaluation and export.

use std::path::Path;

use dtkc_dataset::Dataset;
use dtkc_item::ItemShape;
use dtkc_methods::Learner;

use crate::assign::order_by_size;
use crate::config::RunConfig;
use crate::device::DeviceName;
use crate::error::TrainError;
use crate::partial::{self, Partial};
use crate::restart::{Identity, StoredNetwork};
use crate::run_dir;
use crate::summary::{RestartFigures, Summary};

/// A restart of a run, at its best epoch.
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
    /// Where training is not finished, a sentence that says what this is.
    pub unfinished: Option<String>,
}

impl Saved {
    /// Reads the best restart of a run, or the one that is asked for. Where training is not finished that is the best network
    /// so far.
    pub fn open(root: &Path, restart: Option<usize>, device: DeviceName) -> Result<Self, TrainError> {
        run_dir::require_run(root)?;
        let config = RunConfig::read(&run_dir::config_path(root))?;
        let summary_path = run_dir::summary_path(root);
        let summary = if summary_path.exists() { Some(Summary::read(&summary_path)?) } else { None };
        match restart.or(summary.as_ref().map(|s| s.best_restart)) {
            Some(restart) if run_dir::best_path(root, restart).exists() => {
                let figures = summary.and_then(|s| s.restarts.into_iter().find(|figures| figures.restart == restart));
                Self::finished(root, config, restart, device).map(|saved| Self { figures, ..saved })
            }
            Some(restart) if !run_dir::last_path(root, restart).exists() => {
                let text = format!("{} has no restart {restart} (they count from 0)", root.display());
                Err(TrainError::NothingTrained(text))
            }
            restart => Self::unfinished(root, config, restart, device),
        }
    }

    fn finished(root: &Path, mut config: RunConfig, restart: usize, device: DeviceName) -> Result<Self, TrainError> {
        let path = run_dir::best_path(root, restart);
        let identity = Identity { config_hash: config.hash()?, data: config.data.fingerprint.clone(), restart };
        let stored = StoredNetwork::load(&path, &identity)?;
        config.run.device = device;
        let mut learner = config.settings.learner(&config.task(config.clusters()?)?, 0)?;
        learner
            .set_weights(&stored.weights)
            .map_err(|error| TrainError::DamagedCheckpoint { path, reason: error.to_string() })?;
        let order = order_by_size(&stored.sizes);
        Ok(Self { config, restart, figures: None, learner, sizes: stored.sizes, order, unfinished: None })
    }

    fn unfinished(
        root: &Path,
        mut config: RunConfig,
        restart: Option<usize>,
        device: DeviceName,
    ) -> Result<Self, TrainError> {
        config.run.device = device;
        let Partial { restart, learner, sizes, about } = partial::best(root, &config, restart)?;
        let order = order_by_size(&sizes);
        Ok(Self { config, restart, figures: None, learner, sizes, order, unfinished: Some(about) })
    }

    /// Opens a dataset whose items the network takes.
    pub fn dataset(&self, path: &Path) -> Result<Dataset, TrainError> {
        let dataset = Dataset::open(path)?;
        let (wanted, found) = (self.config.data.input, dataset.shape());
        let remedy = match (wanted, found) {
            _ if wanted == found => return Ok(dataset),
            (ItemShape::Features(_), ItemShape::Image(_)) => {
                "label images with the run's model file (dtkc-label), or make features of them with `dtkc-train features`"
            }
            _ => "import them again with that size",
        };
        let path = path.display();
        Err(TrainError::Mismatch(format!("{path} holds {found}, but this run was trained on {wanted}; {remedy}")))
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
