//! The resolved configuration of a run: what `config.toml` in the run directory says.

mod clusters;
mod layers;
mod options;
mod steps;

use std::path::{Path, PathBuf};

use dtkc_item::{ImageShape, ItemShape, Resize};
use dtkc_methods::{Method, MethodSettings, SettingError, Task, TrainPlan};
use dtkc_settings::{differences, table};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::error::TrainError;
use crate::prune::PruneConfig;

pub use clusters::{Clusters, KRange};
pub use layers::{is_published, read_file};
pub use options::RunOptions;
pub use steps::StepCounts;

/// The dataset of a run, as it was when the run began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataConfig {
    /// The file.
    pub path: PathBuf,
    /// The set's name.
    pub name: String,
    /// Hash of its content.
    pub fingerprint: String,
    /// Number of items.
    pub items: usize,
    /// What the items look like.
    pub input: ItemShape,
    /// How import brought images to that size, where the file says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<Resize>,
    /// How long sequences are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepCounts>,
}

impl Default for DataConfig {
    /// No dataset yet.
    fn default() -> Self {
        let input = ItemShape::Image(ImageShape { height: 0, width: 0, channels: 0 });
        Self {
            path: PathBuf::new(),
            name: String::new(),
            fingerprint: String::new(),
            items: 0,
            input,
            resize: None,
            steps: None,
        }
    }
}

/// Everything that a run needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct RunConfig {
    /// The method.
    pub method: Method,
    /// The preset that its settings started from.
    pub preset: String,
    /// The numbers of the method: its own table.
    pub settings: MethodSettings,
    /// How long and how often.
    pub plan: TrainPlan,
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
        let split = layers::Split::new(layers)?;
        let (preset, settings, plan) = split.method.preset(split.preset.as_deref())?;
        Self::over(&split, preset, &settings, &plan)
    }

    /// Reads the configuration of a run. What it does not name (a setting that came later) is neutral, whatever the
    /// preset says today.
    pub fn read(path: &Path) -> Result<Self, TrainError> {
        let failed = |reason: String| TrainError::ConfigFile { path: path.to_owned(), reason };
        let read = || {
            let split = layers::Split::new(&[read_file(path)?])?;
            let preset = split.preset.clone().unwrap_or_default();
            Self::over(&split, &preset, &split.method.neutral(), &TrainPlan::default())
        };
        read().map_err(|error| match error {
            named @ (TrainError::ConfigFile { .. } | TrainError::Io(_)) => named,
            error => failed(error.to_string()),
        })
    }

    fn over(
        split: &layers::Split,
        preset: &str,
        settings: &MethodSettings,
        plan: &TrainPlan,
    ) -> Result<Self, TrainError> {
        let config = Self {
            method: split.method,
            preset: preset.to_owned(),
            settings: settings.overlaid(&split.settings())?,
            plan: split.overlay("plan", plan)?,
            data: split.data()?,
            run: split.overlay("run", &RunOptions::default())?,
            prune: split.overlay("prune", &PruneConfig::default())?,
        };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), TrainError> {
        self.settings.check(self.method)?;
        self.plan.check()?;
        self.run.check()?;
        self.prune.problem().map_or(Ok(()), |problem| Err(TrainError::Setting(problem)))
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
        let mut all = Table::new();
        all.insert("method".into(), Value::from(self.method.name()));
        all.insert("preset".into(), Value::from(self.preset.as_str()));
        for (name, part) in [
            (self.method.name(), self.settings.table()?),
            ("plan", table(&self.plan)?),
            ("data", table(&self.data)?),
            ("run", table(&self.run)?),
            ("prune", table(&self.prune)?),
        ] {
            all.insert(name.to_owned(), part.into());
        }
        toml::to_string(&all).map_err(|e| TrainError::Setting(e.to_string()))
    }

    /// The number of clusters. Fails while it is not known.
    pub fn clusters(&self) -> Result<usize, TrainError> {
        match self.run.clusters {
            Clusters::Fixed(clusters) => Ok(clusters),
            Clusters::Auto | Clusters::Unset => Err(TrainError::Setting(
                "the number of clusters is not known; give --clusters K or --clusters auto".into(),
            )),
        }
    }

    /// The largest number of clusters that may come out; 0 while nothing is said about it.
    pub fn largest_k(&self) -> usize {
        match self.run.clusters {
            Clusters::Fixed(clusters) => clusters,
            Clusters::Auto => self.run.k_range.last,
            Clusters::Unset => 0,
        }
    }

    /// What a learner with `clusters` clusters is made for.
    pub fn task(&self, clusters: usize) -> Result<Task, TrainError> {
        let device = self.run.device.open()?;
        Ok(Task {
            input: self.data.input,
            clusters,
            plan: self.plan.clone(),
            device,
            pretrained: None,
            length: self.data.steps.as_ref().map_or(0, |steps| steps.all.div_ceil(self.data.items.max(1))),
            restart: 0,
            common: Default::default(),
        })
    }

    /// Items of a step.
    pub fn items_per_step(&self) -> usize {
        self.settings.items_per_step(self.plan.batch)
    }

    /// How restarts are pruned; `None` when all are trained to the end.
    pub fn pruning(&self) -> Option<&PruneConfig> {
        self.plan.prune.then_some(&self.prune)
    }

    /// A hash of what decides what one restart becomes: the method with its table, the plan, the seed and the data. The
    /// number of restarts, the device, threads and times are left out, so that a finished run can be given more restarts,
    /// or moved. Only what differs from the neutral settings counts, so that a setting that is added later, and is neutral
    /// in older runs, changes no hash.
    pub fn hash(&self) -> Result<String, TrainError> {
        let plan = TrainPlan { restarts: TrainPlan::default().restarts, ..self.plan.clone() };
        let mut all = Table::new();
        all.insert("method".into(), Value::from(self.method.name()));
        all.insert("data".into(), Value::from(self.data.fingerprint.as_str()));
        let parts = [
            ("settings", differences(&self.settings.table()?, &self.method.neutral().table()?)),
            ("plan", differences(&table(&plan)?, &table(&TrainPlan::default())?)),
            ("run", differences(&table(&self.run.deciding())?, &table(&RunOptions::default())?)),
        ];
        for (name, part) in parts {
            all.insert(name.into(), part.into());
        }
        let text = toml::to_string(&all).map_err(|e| SettingError::Value(e.to_string()))?;
        Ok(Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
