//! The settings of SpectralNet, their check and their presets.

use dtkc_core::{AutoencoderConfig, ConfigError};
use dtkc_item::ItemShape;
use serde::{Deserialize, Serialize};

use super::SpectralnetLearner;
use crate::coder::{CodeLoss, Pretraining, check_task};
use crate::learner::Learner;
use crate::optimizer::{OptimConfig, Schedule};
use crate::plan::open_epochs;
use crate::{LearnError, Method, MethodTable, SettingError, Task, TrainPlan};

/// Every number of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The autoencoder.
    pub network: AutoencoderConfig,
    /// How it is trained first.
    pub pretraining: Pretraining,
    /// The network that learns which codes are near.
    pub siamese: Siamese,
    /// Units of the hidden layers of the spectral network.
    pub hidden: Vec<usize>,
    /// Neighbours in a batch that an item is tied to.
    pub neighbours: usize,
    /// The neighbour whose median distance is the scale of the ties.
    pub scale_neighbour: usize,
    /// The companion objectives; `clustering` is the weight of the spectral loss.
    pub loss: CodeLoss,
    /// The optimiser of the clustering stage.
    pub optim: OptimConfig,
    /// Starts of the k-means that gives the clusters.
    pub starts: usize,
}

/// The network that learns which codes are near.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Siamese {
    /// Units of its hidden layers.
    pub hidden: Vec<usize>,
    /// Values that it gives.
    pub outputs: usize,
    /// Nearest codes that count as near.
    pub neighbours: usize,
    /// Distance to which strangers are pushed apart.
    pub margin: f64,
    /// Epochs; 0 for as many as the number of items asks for.
    pub epochs: usize,
    /// The optimiser.
    pub optim: OptimConfig,
}

impl Default for Siamese {
    fn default() -> Self {
        let (hidden, optim) = (vec![1024, 1024, 512], OptimConfig::rmsprop(1e-3));
        Self { hidden, outputs: 10, neighbours: 2, margin: 1.0, epochs: 50, optim }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            network: AutoencoderConfig::default(),
            pretraining: Pretraining::default(),
            siamese: Siamese::default(),
            hidden: vec![1024, 1024, 512],
            neighbours: 3,
            scale_neighbour: 2,
            loss: CodeLoss::default(),
            optim: OptimConfig::rmsprop(1e-3),
            starts: 10,
        }
    }
}

/// The names of the presets.
pub const PRESETS: [&str; 1] = ["any"];

/// The published layers, neighbours and optimiser. Epochs follow the number of items, and the learning rates fall along a
/// cosine where the authors cut them on plateaus: a run then has an end that is known beforehand.
pub fn preset(_name: &str) -> (Settings, TrainPlan) {
    let mut settings = Settings::default();
    (settings.pretraining.epochs, settings.siamese.epochs) = (0, 0);
    for optim in [&mut settings.siamese.optim, &mut settings.optim] {
        (optim.schedule, optim.final_lr) = (Schedule::Cosine, 0.01);
    }
    (settings, TrainPlan { epochs: 0, patience: 0, batch: 1024, restarts: 5, prune: false, ..TrainPlan::default() })
}

impl MethodTable for Settings {
    fn check(&self, _: Method) -> Result<(), SettingError> {
        self.pretraining.check()?;
        self.loss.check()?;
        self.optim.check()?;
        self.siamese.optim.check()?;
        let layers = [("hidden", &self.hidden), ("siamese.hidden", &self.siamese.hidden)];
        let units = layers.iter().flat_map(|(name, units)| units.iter().map(move |&units| (*name, units)));
        let counts = [
            ("neighbours", self.neighbours),
            ("scale_neighbour", self.scale_neighbour),
            ("starts", self.starts),
            ("siamese.outputs", self.siamese.outputs),
            ("siamese.neighbours", self.siamese.neighbours),
        ];
        for (name, value) in counts.into_iter().chain(units) {
            match value {
                0 => return Err(ConfigError::Zero { name: name.into() }.into()),
                1..=16384 => {}
                _ => return Err(ConfigError::TooLarge { name: name.into(), value, most: 16384 }.into()),
            }
        }
        if self.loss.reconstruction > 0.0 {
            let text = "spectralnet decodes nothing when it clusters: loss.reconstruction must be 0";
            return Err(ConfigError::Conflict(text.into()).into());
        }
        match self.siamese.margin > 0.0 && self.siamese.margin.is_finite() {
            true => Ok(()),
            false => {
                let (name, value, range) = ("siamese.margin".into(), self.siamese.margin, "more than 0");
                Err(ConfigError::Range { name, value, range }.into())
            }
        }
    }

    fn set_epochs(&mut self, items: usize, items_per_step: usize) {
        self.pretraining.set_epochs(items, items_per_step);
        self.siamese.epochs = open_epochs(self.siamese.epochs, items, items_per_step);
    }

    fn has_pretraining(&self) -> bool {
        true
    }

    fn check_task(&self, input: ItemShape, clusters: usize) -> Result<(), LearnError> {
        check_task(Method::Spectralnet, &self.network, input, clusters)
    }

    fn learner(&self, task: &Task, seed: u64) -> Result<Box<dyn Learner>, LearnError> {
        Ok(Box::new(SpectralnetLearner::new(self, task, seed)?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_preset_is_checked_and_mistakes_named() {
        let (settings, _) = preset("any");
        settings.check(Method::Spectralnet).unwrap();
        let fails = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check(Method::Spectralnet).unwrap_err().to_string()
        };
        assert!(fails(|s| s.siamese.neighbours = 0).contains("siamese.neighbours is 0"));
        assert!(fails(|s| s.hidden = vec![100, 0]).contains("hidden is 0"));
        assert!(fails(|s| s.siamese.margin = f64::NAN).contains("siamese.margin"));
        assert!(fails(|s| s.loss.reconstruction = 1.0).contains("loss.reconstruction"));
    }
}
