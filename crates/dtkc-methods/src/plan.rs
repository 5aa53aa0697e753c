//! How long and how often to train.

use dtkc_core::ConfigError;
use serde::{Deserialize, Serialize};

/// Items of a set for which [`TrainPlan::steps`] is meant.
const USUAL_ITEMS: f64 = 10_000.0;

/// Steps that a stage gets when its epochs are left open, within the bounds below: large sets are not cut to a part of
/// themselves, and small ones do not go on for ever.
const STEPS: usize = 5000;
const FEWEST_EPOCHS: usize = 3;
const MOST_EPOCHS: usize = 300;

/// How long and how often to train. The defaults are the paper's protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainPlan {
    /// Most epochs of the clustering stage; 0 for as many as `steps` steps take.
    pub epochs: usize,
    /// Steps of the clustering stage where its epochs are left open, for 10,000 items. More items get more, by the square root:
    /// they have more to tell, but not in proportion.
    pub steps: usize,
    /// Stop after so many epochs without a lower mean loss; 0 never stops early.
    pub patience: usize,
    /// Rows per step. With paired views half of them are items and half their second views.
    pub batch: usize,
    /// Independent restarts; the one with the lowest loss is kept.
    pub restarts: usize,
    /// Drop hopeless restarts early.
    pub prune: bool,
}

impl Default for TrainPlan {
    fn default() -> Self {
        Self { epochs: 100, steps: STEPS, patience: 30, batch: 120, restarts: 20, prune: false }
    }
}

impl TrainPlan {
    /// The number of epochs where it was left open: enough for some thousand steps, however many items there are.
    pub fn set_epochs(&mut self, items: usize, items_per_step: usize) {
        let steps = self.steps as f64 * (items as f64 / USUAL_ITEMS).sqrt();
        self.epochs = epochs_of((steps.ceil() as usize).max(1), self.epochs, items, items_per_step);
    }

    /// Refuses what cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (name, value) in [("batch", self.batch), ("restarts", self.restarts), ("steps", self.steps)] {
            if value == 0 {
                return Err(ConfigError::Zero { name: format!("plan.{name}") });
            }
        }
        match self.batch {
            1 => {
                Err(ConfigError::Conflict("plan.batch = 1 cannot separate clusters: use at least 2, better 120".into()))
            }
            _ => Ok(()),
        }
    }
}

/// `epochs`, or where that is 0 enough for some thousand steps.
pub(crate) fn open_epochs(epochs: usize, items: usize, items_per_step: usize) -> usize {
    epochs_of(STEPS, epochs, items, items_per_step)
}

fn epochs_of(steps: usize, epochs: usize, items: usize, items_per_step: usize) -> usize {
    let per_epoch = items.div_ceil(items_per_step.max(1)).max(1);
    if epochs > 0 { epochs } else { steps.div_ceil(per_epoch).clamp(FEWEST_EPOCHS, MOST_EPOCHS) }
}
