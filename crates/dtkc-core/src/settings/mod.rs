//! Presets, and how a file or flags change them.

mod merge;
mod preset;

pub use preset::{Method, Preset};

use crate::{AugmentConfig, ConfigError, LossConfig, NetworkConfig, OptimConfig};
use serde::{Deserialize, Serialize};

/// Steps that a run gets when its epochs are left open, within these bounds: large sets are not cut to a part of
/// themselves, and small ones do not go on for ever.
const STEPS: usize = 5000;
const FEWEST_EPOCHS: usize = 3;
const MOST_EPOCHS: usize = 300;

/// How long and how often to train.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainPlan {
    /// Most epochs of a run; 0 for as many as the number of images asks for.
    pub epochs: usize,
    /// Stop after so many epochs without a lower mean loss; 0 never stops early.
    pub patience: usize,
    /// Rows per step. With paired views half of them are images and half their second views.
    pub batch: usize,
    /// Independent runs; the one with the lowest loss is kept.
    pub runs: usize,
    /// Drop hopeless runs early.
    pub prune: bool,
}

/// Every number of the method: a preset, then what a file and flags changed.
///
/// The serialised form names every setting, so it is at once the record of a run and the list of what can be changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The preset that the numbers started from.
    pub preset: Preset,
    /// With companion objectives or without.
    pub method: Method,
    /// The network.
    pub network: NetworkConfig,
    /// The loss.
    pub loss: LossConfig,
    /// The optimiser.
    pub optim: OptimConfig,
    /// Random views; used when a term of the loss compares views.
    pub augment: AugmentConfig,
    /// How long and how often.
    pub plan: TrainPlan,
}

impl Settings {
    /// The settings with some of them replaced, by anything that serialises to nested tables: a parsed TOML file, a
    /// JSON value, a struct of flags. Lists are replaced as a whole; an unknown name is an error.
    ///
    /// `preset` and `method` choose where to start from and are not numbers to replace: use [`Settings::resolve`].
    pub fn merged(&self, partial: &impl Serialize) -> Result<Settings, ConfigError> {
        merge::merged(self, partial)
    }

    /// Starts from the preset and method that the last layer to name them names (or the defaults) and applies all
    /// layers in order: `&[file, flags]` lets flags win over the file and the file over the preset.
    pub fn resolve<T: Serialize>(layers: &[T]) -> Result<Settings, ConfigError> {
        merge::resolve(layers)
    }

    /// Whether each image is trained on together with a second view of it.
    pub fn paired(&self) -> bool {
        self.loss.needs_pairs()
    }

    /// The number of epochs where it was left open: enough for some thousand steps, however many images there are.
    pub fn set_epochs(&mut self, images: usize) {
        if self.plan.epochs == 0 {
            let steps = images.div_ceil(self.images_per_step()).max(1);
            self.plan.epochs = STEPS.div_ceil(steps).clamp(FEWEST_EPOCHS, MOST_EPOCHS);
        }
    }

    /// Images per step: `plan.batch`, or half of it with paired views.
    pub fn images_per_step(&self) -> usize {
        if self.paired() { self.plan.batch.div_ceil(2) } else { self.plan.batch }
    }

    /// Refuses what cannot work. The network is checked with the data, by [`ModelConfig::check`](crate::ModelConfig::check).
    pub fn check(&self) -> Result<(), ConfigError> {
        self.loss.check()?;
        self.optim.check()?;
        self.augment.check()?;
        for (name, value) in [("batch", self.plan.batch), ("runs", self.plan.runs)] {
            if value == 0 {
                return Err(ConfigError::Zero { name: format!("plan.{name}") });
            }
        }
        if self.plan.batch < 2 {
            return Err(ConfigError::Conflict(
                "plan.batch = 1 cannot separate clusters: use at least 2, better 120".into(),
            ));
        }
        if self.paired() && self.augment.is_off() {
            return Err(ConfigError::Conflict(
                "the loss compares two views of each image but every augmentation is 0, so they would be equal: set \
                 an augment number, or loss.consistency, loss.mutual_information and loss.self_label to 0"
                    .into(),
            ));
        }
        Ok(())
    }
}
