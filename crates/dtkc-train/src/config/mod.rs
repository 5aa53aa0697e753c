//! The resolved configuration of a run: what `config.toml` in the run directory says.

mod clusters;
mod layers;

use dtkc_item::ImageShape;
use std::path::{Path, PathBuf};

use dtkc_core::{ModelConfig, Settings, ValidModel};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml::Table;

use crate::device::DeviceName;
use crate::error::TrainError;
use crate::prune::PruneConfig;

pub use clusters::{Clusters, KRange};
pub use layers::{read_file, set};

/// What the run was started with, beside the numbers of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOptions {
    /// Number of clusters, or `auto`.
    pub clusters: Clusters,
    /// The numbers of clusters that `auto` tries.
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
    /// Steps of each short run that `clusters = "auto"` makes; there are two for every number of clusters.
    pub trial_steps: usize,
    /// Batches on which restarts are compared.
    pub comparison_batches: usize,
    /// Measure the batch-norm statistics again on clean images before a restart is scored and exported.
    pub refresh_statistics: bool,
}

impl RunOptions {
    fn defaults(settings: &Settings) -> Self {
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
            // The published presets score with the running averages; ours does not trust them.
            refresh_statistics: settings.preset == dtkc_core::Preset::Plus,
        }
    }

    fn check(&self) -> Result<(), TrainError> {
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

/// The dataset of a run, as it was when the run began.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataConfig {
    /// The file.
    pub path: PathBuf,
    /// The set's name.
    pub name: String,
    /// Hash of its content.
    pub fingerprint: String,
    /// Number of images.
    pub images: usize,
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
    /// Channels of an image.
    pub channels: usize,
}

impl DataConfig {
    /// Size of the images.
    pub fn size(&self) -> ImageShape {
        ImageShape { height: self.height, width: self.width, channels: self.channels }
    }
}

/// Everything that a run needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct RunConfig {
    /// The numbers of the method.
    pub settings: Settings,
    /// The dataset.
    pub data: DataConfig,
    /// Seed, device, time.
    pub run: RunOptions,
    /// How restarts are pruned, if they are.
    pub prune: PruneConfig,
}

impl RunConfig {
    /// Applies the layers in order, each winning over those before it: `[file, flags]`. Lower than all of them is
    /// the preset that the last of them names.
    pub fn resolve(layers: &[Table]) -> Result<Self, TrainError> {
        let split: Vec<_> = layers.iter().map(|layer| layers::split(layer.clone())).collect::<Result<_, _>>()?;
        let methods: Vec<&Table> = split.iter().map(|s| &s.method).collect();
        let settings = Settings::resolve(&methods)?;
        settings.check()?;
        let run = layers::overlay("run", &RunOptions::defaults(&settings), split.iter().map(|s| &s.run))?;
        let prune = layers::overlay("prune", &PruneConfig::default(), split.iter().map(|s| &s.prune))?;
        let data = layers::overlay("data", &DataConfig::default(), split.iter().map(|s| &s.data))?;
        let config = Self { settings, data, run, prune };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), TrainError> {
        self.run.check()?;
        self.prune.problem().map_or(Ok(()), |problem| Err(TrainError::Setting(problem)))
    }

    /// Reads the configuration of a run.
    pub fn read(path: &Path) -> Result<Self, TrainError> {
        let failed = |reason: String| TrainError::ConfigFile { path: path.to_owned(), reason };
        let table = read_file(path)?;
        Self::resolve(&[table]).map_err(|e| failed(e.to_string()))
    }

    /// Writes the configuration of a run.
    pub fn write(&self, path: &Path) -> Result<(), TrainError> {
        let text = format!(
            "# Every setting of this run, written by dtkc-train {}. `dtkc-train resume` reads it;\n\
             # `dtkc-train fit --config` takes it as a start.\n\n{}",
            env!("CARGO_PKG_VERSION"),
            self.to_toml()?
        );
        Ok(dtkc_files::write(path, text.as_bytes())?)
    }

    fn to_toml(&self) -> Result<String, TrainError> {
        let mut table = layers::table(&self.settings)?;
        for (name, part) in [
            ("data", layers::table(&self.data)?),
            ("run", layers::table(&self.run)?),
            ("prune", layers::table(&self.prune)?),
        ] {
            table.insert(name.to_owned(), part.into());
        }
        toml::to_string(&table).map_err(|e| TrainError::Setting(e.to_string()))
    }

    /// The network for this data, checked. Fails while the number of clusters is not known.
    pub fn model(&self) -> Result<ValidModel, TrainError> {
        let Clusters::Fixed(clusters) = self.run.clusters else {
            return Err(TrainError::Setting(
                "the number of clusters is not known; give --clusters K or --clusters auto".into(),
            ));
        };
        self.model_of(clusters)
    }

    /// The network for this data with `clusters` clusters.
    pub fn model_of(&self, clusters: usize) -> Result<ValidModel, TrainError> {
        Ok(ModelConfig::new(self.data.size(), clusters).with_network(self.settings.network.clone()).check()?)
    }

    /// How restarts are pruned; `None` when all are trained to the end.
    pub fn pruning(&self) -> Option<&PruneConfig> {
        self.settings.plan.prune.then_some(&self.prune)
    }

    /// A hash of the settings that decide what one restart becomes. The number of restarts, the device, threads and
    /// times are left out, so that a finished run can be given more restarts, or moved.
    pub fn hash(&self) -> String {
        let mut settings = self.settings.clone();
        settings.plan.runs = 0;
        // The memory budget decides the order in which a large set is streamed.
        let RunOptions { clusters, seed, memory_budget, comparison_batches, refresh_statistics, .. } = &self.run;
        let rest = (clusters, seed, memory_budget, comparison_batches, refresh_statistics, self.data.size());
        // Plain structs always serialise.
        let text = serde_json::to_string(&(&settings, rest)).unwrap_or_default();
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    fn resolve(file: &str, flags: &str) -> Result<RunConfig, TrainError> {
        RunConfig::resolve(&[table(file), table(flags)])
    }

    #[test]
    fn flags_win_over_file_and_file_over_preset() {
        let file = "preset = 'authors'\nplan.epochs = 7\nloss.sigma = 0.2\nrun.seed = 5\nrun.threads = 3";
        let config = resolve(file, "plan.epochs = 9\nrun.seed = 6\nrun.clusters = 4").unwrap();
        assert_eq!(config.settings.preset.name(), "authors");
        assert_eq!((config.settings.plan.epochs, config.settings.loss.sigma), (9, 0.2));
        assert_eq!((config.run.seed, config.run.threads, config.run.clusters), (6, 3, Clusters::Fixed(4)));
        assert_eq!(config.settings.optim.clip_norm, 10.0, "the preset's own number");
        assert!(!config.run.refresh_statistics, "the published presets use running averages");
        assert!(resolve("preset = 'authors'", "preset = 'plus'").unwrap().run.refresh_statistics);
    }

    #[test]
    fn the_saved_file_resolves_to_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let mut config = resolve("", "run.clusters = 'auto'\nrun.k_range = '3..9'\noptim.lr = 0.1").unwrap();
        config.data =
            DataConfig { path: "/x/y.h5".into(), images: 7, height: 28, width: 28, channels: 1, ..config.data };
        config.write(&path).unwrap();
        assert_eq!(RunConfig::read(&path).unwrap(), config);
        config.run.clusters = Clusters::Fixed(5);
        config.write(&path).unwrap();
        assert_eq!(RunConfig::read(&path).unwrap(), config);
    }

    #[test]
    fn the_hash_knows_what_matters() {
        let base = resolve("", "run.clusters = 4").unwrap();
        let hash = |flags: &str| resolve("run.clusters = 4", flags).unwrap().hash();
        assert_eq!(base.hash().len(), 64);
        for same in ["run.threads = 7", "plan.runs = 3", "run.device = 'cuda'", "run.budget_seconds = 3.0"] {
            assert_eq!(hash(same), base.hash(), "{same}");
        }
        for other in ["run.seed = 1", "run.clusters = 5", "optim.lr = 0.5", "method = 'ddc'", "plan.epochs = 3"] {
            assert_ne!(hash(other), base.hash(), "{other}");
        }
    }

    #[test]
    fn mistakes_are_one_sentence() {
        let error = |flags: &str| resolve("", flags).unwrap_err().to_string();
        assert!(error("run.sead = 1").contains("run.sead"), "{}", error("run.sead = 1"));
        assert!(error("run.seed = 'x'").contains("run.seed"), "{}", error("run.seed = 'x'"));
        assert!(error("prune.keep = 2.0").contains("prune.keep"));
        assert!(error("loss.lamda = 2.0").contains("did you mean `lambda`"));
        assert!(error("run.clusters = 'many'").contains("auto"));
        assert!(error("run.budget_seconds = -1.0").contains("budget_seconds"));
        assert!(error("optim.lr = 0.0").contains("optim.lr"));
        assert!(error("run = 3").contains("run"));
    }
}
