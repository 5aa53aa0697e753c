//! The settings of any method, by the method's name.

use burn::tensor::Device;
use dtkc_item::ItemShape;
use toml::Table;

use crate::dtkc::{self, Preset};
use crate::learner::Learner;
use crate::method::by_name;
use crate::{LearnError, Method, SettingError, TrainPlan, layers};

/// The checked settings of one method: its table in config.toml.
#[derive(Debug, Clone, PartialEq)]
pub enum MethodSettings {
    /// DTKC and DDC.
    Dtkc(Box<dtkc::Settings>),
}

/// What a learner is made for.
#[derive(Debug, Clone)]
pub struct Task {
    /// What the items look like.
    pub input: ItemShape,
    /// Number of clusters.
    pub clusters: usize,
    /// How long to train.
    pub plan: TrainPlan,
    /// Where.
    pub device: Device,
}

impl Method {
    /// The names of its presets, the default one first.
    pub fn presets(self) -> Vec<&'static str> {
        match self {
            Method::Dtkc | Method::Ddc => Preset::ALL.map(Preset::name).to_vec(),
        }
    }

    /// Settings and plan of one of its presets; the default one where none is named.
    pub fn preset(self, name: Option<&str>) -> Result<(&'static str, MethodSettings, TrainPlan), SettingError> {
        match self {
            Method::Dtkc | Method::Ddc => {
                let preset =
                    name.map_or(Ok(Preset::Plus), |name| by_name("preset", &Preset::ALL, Preset::name, name))?;
                let (settings, plan) = preset.settings(self);
                Ok((preset.name(), MethodSettings::Dtkc(Box::new(settings)), plan))
            }
        }
    }

    /// The settings that say nothing: what a setting is where a file of an earlier version does not name it, and what is
    /// left out of a run's hash.
    pub fn neutral(self) -> MethodSettings {
        match self {
            Method::Dtkc | Method::Ddc => MethodSettings::Dtkc(Box::default()),
        }
    }
}

impl MethodSettings {
    /// These settings with layers put over them, each winning over those before it.
    pub fn overlaid(&self, layers: &[&Table]) -> Result<Self, SettingError> {
        match self {
            Self::Dtkc(settings) => Ok(Self::Dtkc(Box::new(layers::overlay("", settings.as_ref(), layers)?))),
        }
    }

    /// Every setting by name.
    pub fn table(&self) -> Result<Table, SettingError> {
        match self {
            Self::Dtkc(settings) => layers::table(settings.as_ref()),
        }
    }

    /// Refuses what cannot work, or what would be another method under this name.
    pub fn check(&self, method: Method) -> Result<(), SettingError> {
        match self {
            Self::Dtkc(settings) => settings.check(method),
        }
    }

    /// Items of a step whose loss has `batch` rows.
    pub fn items_per_step(&self, batch: usize) -> usize {
        match self {
            Self::Dtkc(settings) => settings.images_per_step(batch),
        }
    }

    /// Refuses what cannot work with these items, before any work.
    pub fn check_task(&self, input: ItemShape, clusters: usize) -> Result<(), LearnError> {
        match self {
            Self::Dtkc(settings) => settings.model(input, clusters).map(drop),
        }
    }

    /// A learner with new weights.
    pub fn learner(&self, task: &Task, seed: u64) -> Result<Box<dyn Learner>, LearnError> {
        match self {
            Self::Dtkc(settings) => Ok(Box::new(dtkc::DtkcLearner::new(settings, task, seed)?)),
        }
    }
}
