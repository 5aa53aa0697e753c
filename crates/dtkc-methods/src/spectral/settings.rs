//! The settings of spectral clustering, their check and preset.

use dtkc_core::{ConfigError, ModelConfig, NetworkConfig, ValidModel};
use dtkc_item::ItemShape;
use serde::{Deserialize, Serialize};

use super::{Affinity, SpectralLearner};
use crate::learner::Learner;
use crate::nearest::Likeness;
use crate::network;
use crate::optimizer::OptimConfig;
use crate::{LearnError, Method, MethodTable, SettingError, Task, TrainPlan};

/// Every number of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Nearest others that every image is joined with. scikit-learn counts the image itself, too: its 10 are 9 here.
    pub neighbours: usize,
    /// What makes images near: `pixels`, `outlines`, or `auto`, which is `outlines` and for many clusters what suits the images.
    pub by: Likeness,
    /// What an edge of the graph weighs.
    pub affinity: Affinity,
    /// The network that learns the clusters, so that new images can be assigned.
    pub network: NetworkConfig,
    /// Its optimiser.
    pub optim: OptimConfig,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            neighbours: 10,
            by: Likeness::Pixels,
            affinity: Affinity::Connectivity,
            network: NetworkConfig::default(),
            optim: OptimConfig::adam(1e-3),
        }
    }
}

/// The names of the presets.
pub const PRESETS: [&str; 2] = ["published", "outlines"];

/// The numbers of a preset. `published`: ten neighbours of equal weight by pixels, as the paper does not say which graph it
/// used. `outlines`: by outlines, and edges between neighbours of each other weigh most. Restarts differ in k-means and in the
/// network only; after twenty epochs its scores on the images it learnt from were within .002 of the clusters' own.
pub fn preset(name: &str) -> (Settings, TrainPlan) {
    let mut settings = Settings::default();
    // The network only learns what the graph says: large images are looked at in less detail, as `plus` does.
    settings.network.reduce = 0;
    if name == PRESETS[1] {
        (settings.by, settings.affinity) = (Likeness::Auto, Affinity::Mutual);
    }
    let plan = TrainPlan { epochs: 20, patience: 0, batch: 120, restarts: 3, prune: false, ..TrainPlan::default() };
    (settings, plan)
}

impl Settings {
    /// The network for these items, checked.
    pub(super) fn model(&self, input: ItemShape, clusters: usize) -> Result<ValidModel, LearnError> {
        let config = ModelConfig::new(input, clusters).with_network(self.network.clone());
        Ok(config.check().map_err(SettingError::from)?)
    }
}

impl MethodTable for Settings {
    fn check(&self, _method: Method) -> Result<(), SettingError> {
        self.optim.check()?;
        match self.neighbours {
            0 => Err(ConfigError::Zero { name: "neighbours".into() }.into()),
            many @ 1001.. => Err(ConfigError::TooLarge { name: "neighbours".into(), value: many, most: 1000 }.into()),
            _ => Ok(()),
        }
    }

    fn suit(&mut self, input: ItemShape) -> Option<String> {
        if input.image().is_none() {
            self.network.reduce = 1;
        }
        network::suit(&mut self.network, input)
    }

    fn check_task(&self, input: ItemShape, clusters: usize) -> Result<(), LearnError> {
        self.model(input, clusters).map(drop)
    }

    fn learner(&self, task: &Task, seed: u64) -> Result<Box<dyn Learner>, LearnError> {
        Ok(Box::new(SpectralLearner::new(self, task, seed)?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_refused_in_a_sentence() {
        let check = |neighbours| {
            let settings = Settings { neighbours, ..Settings::default() };
            settings.check(Method::Spectral).unwrap_err().to_string()
        };
        assert!(check(0).contains("neighbours is 0"));
        assert!(check(5000).contains("the most is 1000"));
        Settings::default().check_task(ItemShape::Sequence { dim: 3 }, 4).unwrap();
        PRESETS.iter().for_each(|name| preset(name).0.check(Method::Spectral).unwrap());
    }

    #[test]
    fn the_network_looks_at_large_images_in_less_detail() {
        let reduce = |input: ItemShape| {
            let mut settings = preset(PRESETS[0]).0;
            settings.suit(input);
            settings.network.reduce
        };
        let square = |side| ItemShape::Image(dtkc_item::ImageShape { height: side, width: side, channels: 3 });
        assert_eq!([28, 64, 128].map(|side| reduce(square(side))), [1, 2, 4]);
        assert_eq!(reduce(ItemShape::Sequence { dim: 3 }), 1);
    }
}
