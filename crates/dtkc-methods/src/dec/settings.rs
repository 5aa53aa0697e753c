//! The settings of DEC, IDEC and DBC, their check and their presets.

use dtkc_core::{AutoencoderConfig, AutoencoderKind, ConfigError};
use dtkc_item::ItemShape;
use serde::{Deserialize, Serialize};

use super::DecLearner;
use crate::coder::{CodeLoss, Pretraining, check_task};
use crate::learner::Learner;
use crate::optimizer::OptimConfig;
use crate::{LearnError, Method, MethodTable, SettingError, Task, TrainPlan};

/// Every number of the methods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The autoencoder.
    pub network: AutoencoderConfig,
    /// How it is trained first.
    pub pretraining: Pretraining,
    /// The loss of the clustering stage: `clustering` is KL(p || q), `reconstruction` the mean squared error.
    pub loss: CodeLoss,
    /// The optimiser of the clustering stage.
    pub optim: OptimConfig,
    /// Starts of the k-means that gives the first centres.
    pub starts: usize,
    /// Steps after which the targets p are computed anew from all items.
    pub update_interval: usize,
    /// A restart ends when less than this part of the items changed their cluster between two such times.
    pub tolerance: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            network: AutoencoderConfig::default(),
            pretraining: Pretraining::default(),
            loss: CodeLoss::default(),
            optim: OptimConfig::sgd(0.01, 0.9),
            starts: 20,
            update_interval: 140,
            tolerance: 0.001,
        }
    }
}

/// The names of the presets: ours for any set, and what was published for MNIST and for USPS.
pub const PRESETS: [&str; 3] = ["any", "mnist", "usps"];

/// The numbers of a preset.
pub fn preset(method: Method, name: &str) -> (Settings, TrainPlan) {
    let mut settings = Settings::default();
    let mut plan = TrainPlan { epochs: 0, patience: 0, batch: 256, restarts: 5, prune: false, ..TrainPlan::default() };
    match method {
        Method::Idec => {
            // The published weights are 1 and .1.
            (settings.loss.reconstruction, settings.loss.clustering) = (1.0, 0.1);
            settings.optim = OptimConfig::adam(1e-3);
        }
        Method::Dbc => settings.network.kind = AutoencoderKind::Convolutional,
        _ => {}
    }
    match name {
        "mnist" => {
            settings.pretraining.epochs = 300;
            // A rate of 1 is of dense layers; with convolutions nothing stays finite.
            if method != Method::Dbc {
                settings.pretraining.optim = OptimConfig::sgd(1.0, 0.9);
            }
            plan.restarts = 20;
        }
        "usps" => {
            settings.pretraining.epochs = 50;
            settings.update_interval = 30;
            if method == Method::Idec {
                settings.optim = OptimConfig::sgd(0.1, 0.99);
            }
            plan.restarts = 20;
        }
        _ => settings.pretraining.epochs = 0,
    }
    (settings, plan)
}

impl MethodTable for Settings {
    fn check(&self, method: Method) -> Result<(), SettingError> {
        self.pretraining.check()?;
        self.loss.check()?;
        self.optim.check()?;
        for (name, value) in [("starts", self.starts), ("update_interval", self.update_interval)] {
            if value == 0 {
                return Err(ConfigError::Zero { name: name.into() }.into());
            }
        }
        if !(0.0..=1.0).contains(&self.tolerance) {
            let (name, range) = ("tolerance".into(), "between 0 and 1");
            return Err(ConfigError::Range { name, value: self.tolerance, range }.into());
        }
        let conflict = |text: &str| Err(ConfigError::Conflict(text.into()).into());
        match (method, self.network.kind, self.loss.reconstruction > 0.0) {
            (Method::Dec, _, true) => {
                conflict("dec drops its decoder, so loss.reconstruction must be 0; with it it is --method idec")
            }
            (Method::Idec, _, false) => conflict(
                "idec keeps its decoder, so loss.reconstruction must be more than 0; without it it is --method dec",
            ),
            (Method::Dbc, AutoencoderKind::Dense, _) => {
                conflict("dbc has a convolutional autoencoder; with a dense one it is --method dec")
            }
            (Method::Dec | Method::Idec, AutoencoderKind::Convolutional, _) => {
                conflict("dec and idec have a dense autoencoder; with a convolutional one it is --method dbc")
            }
            _ => Ok(()),
        }
    }

    fn set_epochs(&mut self, items: usize, items_per_step: usize) {
        self.pretraining.set_epochs(items, items_per_step);
    }

    fn has_pretraining(&self) -> bool {
        true
    }

    fn check_task(&self, input: ItemShape, clusters: usize) -> Result<(), LearnError> {
        check_task(Method::Dec, &self.network, input, clusters)
    }

    fn learner(&self, task: &Task, seed: u64) -> Result<Box<dyn Learner>, LearnError> {
        Ok(Box::new(DecLearner::new(self, task, seed)?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_checked_and_comes_back_from_its_table() {
        for method in [Method::Dec, Method::Idec, Method::Dbc] {
            for name in PRESETS {
                let (settings, plan) = preset(method, name);
                settings.check(method).unwrap();
                plan.check().unwrap();
                let table = dtkc_settings::table(&settings).unwrap();
                assert_eq!(dtkc_settings::overlay("", &Settings::default(), &[&table]).unwrap(), settings);
            }
        }
    }

    #[test]
    fn a_method_is_what_its_name_says() {
        let fails = |settings: &Settings, method| settings.check(method).unwrap_err().to_string();
        let [dec, idec, dbc] = [Method::Dec, Method::Idec, Method::Dbc].map(|method| preset(method, "any").0);
        assert!(fails(&idec, Method::Dec).contains("--method idec"));
        assert!(fails(&dec, Method::Idec).contains("--method dec"));
        assert!(fails(&dec, Method::Dbc).contains("--method dec"));
        assert!(fails(&dbc, Method::Dec).contains("--method dbc"));
    }

    #[test]
    fn the_published_numbers() {
        let (mnist, plan) = preset(Method::Dec, "mnist");
        assert_eq!(mnist.network.hidden, [500, 500, 2000]);
        assert_eq!(
            (mnist.pretraining.epochs, mnist.pretraining.optim.lr, mnist.pretraining.optim.momentum),
            (300, 1.0, 0.9)
        );
        assert_eq!((mnist.update_interval, mnist.optim.lr, mnist.tolerance, plan.batch), (140, 0.01, 0.001, 256));
        let (usps, _) = preset(Method::Idec, "usps");
        assert_eq!((usps.update_interval, usps.optim.lr, usps.optim.momentum), (30, 0.1, 0.99));
        assert_eq!((usps.loss.clustering, usps.loss.reconstruction), (0.1, 1.0));
    }
}
