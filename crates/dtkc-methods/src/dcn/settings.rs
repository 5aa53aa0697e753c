//! The settings of DCN, their check and their presets.

use dtkc_core::{AutoencoderConfig, ConfigError};
use dtkc_item::ItemShape;
use serde::{Deserialize, Serialize};

use super::DcnLearner;
use crate::coder::{CodeLoss, Pretraining, check_task};
use crate::learner::Learner;
use crate::optimizer::OptimConfig;
use crate::{LearnError, Method, MethodTable, SettingError, Task, TrainPlan};

/// Every number of the method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The autoencoder.
    pub network: AutoencoderConfig,
    /// How it is trained first.
    pub pretraining: Pretraining,
    /// The loss of the clustering stage: `clustering` is the squared distance of a code to its centre, `reconstruction`
    /// the squared error of an image, each a mean over items.
    pub loss: CodeLoss,
    /// The optimiser of the clustering stage.
    pub optim: OptimConfig,
    /// Starts of the k-means that gives the first centres.
    pub starts: usize,
    /// Epochs after which k-means over all codes puts the centres right.
    pub recentre: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            network: AutoencoderConfig::default(),
            pretraining: Pretraining::default(),
            loss: CodeLoss { reconstruction: 1.0, ..CodeLoss::default() },
            optim: OptimConfig::adam(1e-4),
            starts: 10,
            recentre: 10,
        }
    }
}

/// The names of the presets: ours for any set, and the published numbers of epochs.
pub const PRESETS: [&str; 2] = ["any", "published"];

/// The numbers of a preset. What the paper's optimiser was is not among the published facts: Adam is ours.
pub fn preset(name: &str) -> (Settings, TrainPlan) {
    let mut settings = Settings::default();
    let mut plan = TrainPlan { epochs: 0, patience: 0, batch: 256, restarts: 5, prune: false, ..TrainPlan::default() };
    match name {
        "published" => {
            settings.pretraining.epochs = 250;
            (plan.epochs, plan.restarts) = (50, 20);
        }
        _ => settings.pretraining.epochs = 0,
    }
    (settings, plan)
}

impl MethodTable for Settings {
    fn check(&self, _: Method) -> Result<(), SettingError> {
        self.pretraining.check()?;
        self.loss.check()?;
        self.optim.check()?;
        for (name, value) in [("starts", self.starts), ("recentre", self.recentre)] {
            if value == 0 {
                return Err(ConfigError::Zero { name: name.into() }.into());
            }
        }
        match self.loss.reconstruction > 0.0 {
            true => Ok(()),
            false => {
                let text =
                    "dcn without a decoder draws all codes to one point: loss.reconstruction must be more than 0";
                Err(ConfigError::Conflict(text.into()).into())
            }
        }
    }

    fn set_epochs(&mut self, items: usize, items_per_step: usize) {
        self.pretraining.set_epochs(items, items_per_step);
    }

    fn has_pretraining(&self) -> bool {
        true
    }

    fn check_task(&self, input: ItemShape, clusters: usize) -> Result<(), LearnError> {
        check_task(Method::Dcn, &self.network, input, clusters)
    }

    fn learner(&self, task: &Task, seed: u64) -> Result<Box<dyn Learner>, LearnError> {
        Ok(Box::new(DcnLearner::new(self, task, seed)?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_checked_and_mistakes_named() {
        for name in PRESETS {
            preset(name).0.check(Method::Dcn).unwrap();
        }
        let mut settings = Settings::default();
        settings.loss.reconstruction = 0.0;
        assert!(settings.check(Method::Dcn).unwrap_err().to_string().contains("loss.reconstruction"));
    }
}
