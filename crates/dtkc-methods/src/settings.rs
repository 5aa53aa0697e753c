//! The settings of any method, by the method's name.

use std::fmt;
use std::sync::Arc;

use burn::tensor::Device;
use dtkc_core::NamedArray;
use dtkc_item::ItemShape;
use serde::{Serialize, de::DeserializeOwned};
use toml::Table;

use crate::learner::{Extent, Learner};
use crate::{LearnError, Method, SettingError, TrainPlan, dcn, dec, dtkc, kmeans, spectral, spectralnet};

/// What the settings of a method must be able to do. The serialised form is the method's table in config.toml; `Default`
/// is neutral: what a setting is where a file of an earlier version does not name it.
pub trait MethodTable: Clone + fmt::Debug + Default + Serialize + DeserializeOwned {
    /// Refuses what cannot work, or what would be another method under this name.
    fn check(&self, method: Method) -> Result<(), SettingError>;

    /// Items of a step whose loss has `batch` rows.
    fn items_per_step(&self, batch: usize) -> usize {
        batch
    }

    /// Rows that a step should have at least for so many clusters; 0 where that does not matter.
    fn least_rows(&self, clusters: usize) -> usize {
        let _ = clusters;
        0
    }

    /// Sets the epochs of stages before the last where they were left open.
    fn set_epochs(&mut self, items: usize, items_per_step: usize) {
        let _ = (items, items_per_step);
    }

    /// Sets what was left open and follows from the size of the items. Returns a sentence where that is worth one.
    fn suit(&mut self, input: ItemShape) -> Option<String> {
        let _ = input;
        None
    }

    /// Whether it begins with a stage [`PRETRAINING`](crate::learner::PRETRAINING) whose place another run's can take.
    fn has_pretraining(&self) -> bool {
        false
    }

    /// These settings for a learner of fine clusters alone, from whose [`joinings`](crate::Learner::joinings) the number of clusters
    /// can be read; `None` where a run with `clusters` clusters would not begin with fine clusters.
    fn fine_alone(&self, clusters: usize) -> Option<Self> {
        let _ = clusters;
        None
    }

    /// Bytes that a step over `rows` rows of the loss takes on the CPU, about, where somebody counted them. Makes no learner:
    /// the answer may be that there is no room for one.
    fn step_memory(&self, input: ItemShape, clusters: usize, extent: Extent) -> Option<u64> {
        let _ = (input, clusters, extent);
        None
    }

    /// Refuses what cannot work with these items, before any work.
    fn check_task(&self, input: ItemShape, clusters: usize) -> Result<(), LearnError>;

    /// A learner with new weights.
    fn learner(&self, task: &Task, seed: u64) -> Result<Box<dyn Learner>, LearnError>;
}

/// The checked settings of one method.
#[derive(Debug, Clone, PartialEq)]
pub enum MethodSettings {
    /// DTKC and DDC.
    Dtkc(Box<dtkc::Settings>),
    /// k-means.
    Kmeans(Box<kmeans::Settings>),
    /// Spectral clustering.
    Spectral(Box<spectral::Settings>),
    /// DEC, IDEC and DBC.
    Dec(Box<dec::Settings>),
    /// DCN.
    Dcn(Box<dcn::Settings>),
    /// SpectralNet.
    Spectralnet(Box<spectralnet::Settings>),
}

/// Does the same with the settings of any method.
macro_rules! with {
    ($all:expr, $one:ident => $body:expr) => {
        match $all {
            MethodSettings::Dtkc($one) => $body,
            MethodSettings::Kmeans($one) => $body,
            MethodSettings::Spectral($one) => $body,
            MethodSettings::Dec($one) => $body,
            MethodSettings::Dcn($one) => $body,
            MethodSettings::Spectralnet($one) => $body,
        }
    };
}

/// Makes new settings of the same method.
macro_rules! map {
    ($all:expr, $one:ident => $body:expr) => {
        match $all {
            MethodSettings::Dtkc($one) => MethodSettings::Dtkc(Box::new($body)),
            MethodSettings::Kmeans($one) => MethodSettings::Kmeans(Box::new($body)),
            MethodSettings::Spectral($one) => MethodSettings::Spectral(Box::new($body)),
            MethodSettings::Dec($one) => MethodSettings::Dec(Box::new($body)),
            MethodSettings::Dcn($one) => MethodSettings::Dcn(Box::new($body)),
            MethodSettings::Spectralnet($one) => MethodSettings::Spectralnet(Box::new($body)),
        }
    };
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
    /// What another run's pretraining has made: the learner's own has then no epochs.
    pub pretrained: Option<Arc<[NamedArray]>>,
    /// Mean length of the items where they are sequences; 0 for images.
    pub length: usize,
    /// Which restart it is, from 0: they may begin in different ways.
    pub restart: usize,
    /// What the restarts of a run have in common.
    pub common: dtkc::Common,
}

impl Method {
    /// The names of its presets, the default one first.
    pub fn presets(self) -> Vec<&'static str> {
        match self {
            Method::Dtkc | Method::Ddc => dtkc::Preset::ALL.map(dtkc::Preset::name).to_vec(),
            Method::Kmeans => kmeans::PRESETS.to_vec(),
            Method::Spectral => spectral::PRESETS.to_vec(),
            Method::Dec | Method::Idec | Method::Dbc => dec::PRESETS.to_vec(),
            Method::Dcn => dcn::PRESETS.to_vec(),
            Method::Spectralnet => spectralnet::PRESETS.to_vec(),
        }
    }

    /// Settings and plan of one of its presets; the default one where none is named.
    pub fn preset(self, name: Option<&str>) -> Result<(&'static str, MethodSettings, TrainPlan), SettingError> {
        let presets = self.presets();
        let name = match name {
            None => presets[0],
            Some(given) => presets.iter().copied().find(|&known| known == given).ok_or_else(|| {
                let (given, known) = (given.to_owned(), presets.join(", "));
                SettingError::Preset { method: self.name(), given, known }
            })?,
        };
        let (settings, plan) = match self {
            Method::Dtkc | Method::Ddc => {
                let (settings, plan) = dtkc::Preset::named(name).settings(self);
                (MethodSettings::Dtkc(Box::new(settings)), plan)
            }
            Method::Kmeans => {
                let (settings, plan) = kmeans::published();
                (MethodSettings::Kmeans(Box::new(settings)), plan)
            }
            Method::Spectral => {
                let (settings, plan) = spectral::preset(name);
                (MethodSettings::Spectral(Box::new(settings)), plan)
            }
            Method::Dec | Method::Idec | Method::Dbc => {
                let (settings, plan) = dec::preset(self, name);
                (MethodSettings::Dec(Box::new(settings)), plan)
            }
            Method::Dcn => {
                let (settings, plan) = dcn::preset(name);
                (MethodSettings::Dcn(Box::new(settings)), plan)
            }
            Method::Spectralnet => {
                let (settings, plan) = spectralnet::preset(name);
                (MethodSettings::Spectralnet(Box::new(settings)), plan)
            }
        };
        Ok((name, settings, plan))
    }

    /// The settings that say nothing; what equals them is left out of a run's hash.
    pub fn neutral(self) -> MethodSettings {
        match self {
            Method::Dtkc | Method::Ddc => MethodSettings::Dtkc(Box::default()),
            Method::Kmeans => MethodSettings::Kmeans(Box::default()),
            Method::Spectral => MethodSettings::Spectral(Box::default()),
            Method::Dec | Method::Idec | Method::Dbc => MethodSettings::Dec(Box::default()),
            Method::Dcn => MethodSettings::Dcn(Box::default()),
            Method::Spectralnet => MethodSettings::Spectralnet(Box::default()),
        }
    }
}

impl MethodSettings {
    /// These settings with layers put over them, each winning over those before it.
    pub fn overlaid(&self, layers: &[&Table]) -> Result<Self, SettingError> {
        Ok(map!(self, settings => dtkc_settings::overlay("", settings.as_ref(), layers)?))
    }

    /// Every setting by name.
    pub fn table(&self) -> Result<Table, SettingError> {
        with!(self, settings => Ok(dtkc_settings::table(settings.as_ref())?))
    }

    /// See [`MethodTable::check`].
    pub fn check(&self, method: Method) -> Result<(), SettingError> {
        with!(self, settings => settings.check(method))
    }

    /// See [`MethodTable::items_per_step`].
    pub fn items_per_step(&self, batch: usize) -> usize {
        with!(self, settings => settings.items_per_step(batch))
    }

    /// See [`MethodTable::least_rows`].
    pub fn least_rows(&self, clusters: usize) -> usize {
        with!(self, settings => settings.least_rows(clusters))
    }

    /// See [`MethodTable::set_epochs`].
    pub fn set_epochs(&mut self, items: usize, items_per_step: usize) {
        with!(self, settings => settings.set_epochs(items, items_per_step));
    }

    /// See [`MethodTable::suit`].
    pub fn suit(&mut self, input: ItemShape) -> Option<String> {
        with!(self, settings => settings.suit(input))
    }

    /// See [`MethodTable::has_pretraining`].
    pub fn has_pretraining(&self) -> bool {
        with!(self, settings => settings.has_pretraining())
    }

    /// See [`MethodTable::fine_alone`].
    pub fn fine_alone(&self, clusters: usize) -> Option<Self> {
        Some(map!(self, settings => settings.fine_alone(clusters)?))
    }

    /// See [`MethodTable::step_memory`].
    pub fn step_memory(&self, input: ItemShape, clusters: usize, extent: Extent) -> Option<u64> {
        with!(self, settings => settings.step_memory(input, clusters, extent))
    }

    /// See [`MethodTable::check_task`].
    pub fn check_task(&self, input: ItemShape, clusters: usize) -> Result<(), LearnError> {
        with!(self, settings => settings.check_task(input, clusters))
    }

    /// See [`MethodTable::learner`].
    pub fn learner(&self, task: &Task, seed: u64) -> Result<Box<dyn Learner>, LearnError> {
        with!(self, settings => settings.learner(task, seed))
    }
}
