//! The settings of k-means, its check and its preset.

use dtkc_core::ConfigError;
use dtkc_item::{ImageShape, ItemShape};
use serde::{Deserialize, Serialize};

use super::KmeansLearner;
use crate::learner::Learner;
use crate::{LearnError, Method, MethodTable, SettingError, Task, TrainPlan};

/// Every number of the method; iterations and restarts are those of the run's plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// A restart ends when the sum of the squared movements of its centres is at most this part of the mean variance of
    /// a pixel; 0 goes on until no image changes its cluster.
    pub tolerance: f64,
    /// Most images that first centres are chosen from, drawn anew for every restart; at most 256 MiB of them are.
    pub seeding_images: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tolerance: 1e-4, seeding_images: 100_000 }
    }
}

/// The names of the presets.
pub const PRESETS: [&str; 1] = ["published"];

/// The published protocol: 20 starts of at most 300 iterations. A step is one product, so that it takes many images.
pub fn published() -> (Settings, TrainPlan) {
    let plan = TrainPlan { epochs: 300, patience: 0, batch: 4096, restarts: 20, prune: false, ..TrainPlan::default() };
    (Settings::default(), plan)
}

/// Images of the shape that `method` needs.
pub(crate) fn images(method: Method, input: ItemShape) -> Result<ImageShape, LearnError> {
    input.image().ok_or_else(|| LearnError::Unsuitable(format!("{method} takes images, but the set holds {input}")))
}

impl MethodTable for Settings {
    fn check(&self, _method: Method) -> Result<(), SettingError> {
        if !(0.0..=1.0).contains(&self.tolerance) {
            let (name, range) = ("tolerance".into(), "between 0 and 1");
            return Err(ConfigError::Range { name, value: self.tolerance, range }.into());
        }
        match self.seeding_images {
            0 => Err(ConfigError::Zero { name: "seeding_images".into() }.into()),
            _ => Ok(()),
        }
    }

    fn check_task(&self, input: ItemShape, clusters: usize) -> Result<(), LearnError> {
        let _ = input;
        match clusters {
            0 | 1 => Err(SettingError::from(ConfigError::Clusters(clusters)).into()),
            _ => Ok(()),
        }
    }

    fn learner(&self, task: &Task, seed: u64) -> Result<Box<dyn Learner>, LearnError> {
        Ok(Box::new(KmeansLearner::new(self, task, seed)?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_refused_in_a_sentence() {
        let check = |settings: Settings| settings.check(Method::Kmeans).unwrap_err().to_string();
        assert!(check(Settings { tolerance: -1.0, ..Settings::default() }).contains("tolerance = -1"));
        assert!(check(Settings { tolerance: f64::NAN, ..Settings::default() }).contains("tolerance"));
        assert!(check(Settings { seeding_images: 0, ..Settings::default() }).contains("seeding_images is 0"));
        let task = |input, clusters| Settings::default().check_task(input, clusters).unwrap_err().to_string();
        Settings::default().check_task(ItemShape::Sequence { dim: 3 }, 4).unwrap();
        let image = ItemShape::Image(ImageShape { height: 2, width: 2, channels: 1 });
        assert!(task(image, 1).contains("at least 2"));
    }

    #[test]
    fn the_preset_is_the_published_protocol() {
        let (settings, plan) = published();
        settings.check(Method::Kmeans).unwrap();
        assert_eq!((plan.restarts, plan.epochs, plan.prune, plan.patience), (20, 300, false, 0));
    }
}
