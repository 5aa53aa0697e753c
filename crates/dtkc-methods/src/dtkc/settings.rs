//! The settings of DTKC and DDC, and their check.

use dtkc_core::{AugmentConfig, ConfigError, LossConfig, ModelConfig, NetworkConfig, ValidModel};
use dtkc_item::ItemShape;
use serde::{Deserialize, Serialize};

use super::memory::step_memory;
use super::start::MANY;
use super::{DtkcLearner, PartnerConfig, StartConfig, StartKind};
use crate::learner::Learner;
use crate::network;
use crate::optimizer::OptimConfig;
use crate::{LearnError, Method, MethodTable, SettingError, Task};

/// Images of every cluster that a step with paired views should have, on average.
const IMAGES_PER_CLUSTER: usize = 6;

/// Every number of the method. The serialised form names every setting, so it is at once the record of a run and the
/// list of what can be changed. The defaults are neutral: a term or a step that was added later is off.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Measure the batch-norm statistics again on clean images before a restart is scored and exported.
    pub refresh_statistics: bool,
    /// The network.
    pub network: NetworkConfig,
    /// The loss.
    pub loss: LossConfig,
    /// The optimiser.
    pub optim: OptimConfig,
    /// Random views; used when a term of the loss compares views.
    pub augment: AugmentConfig,
    /// What is learnt before clusters are.
    pub start: StartConfig,
    /// Near neighbours as second views.
    pub neighbours: PartnerConfig,
}

impl Settings {
    /// Whether each image is trained on together with a second view of it.
    pub fn paired(&self) -> bool {
        self.loss.needs_pairs()
    }

    /// Rows of a step that the companion objectives see: first views, or all where they contrast views.
    pub(super) fn compared(&self, rows: usize) -> usize {
        match (self.loss.companions.views > 0.0, self.loss.lambda > 0.0) {
            (true, _) => rows,
            (false, true) => self.items_per_step(rows),
            _ => 0,
        }
    }

    /// The network for these items, checked.
    pub fn model(&self, input: ItemShape, clusters: usize) -> Result<ValidModel, LearnError> {
        let ItemShape::Image(shape) = input else {
            return Err(LearnError::Unsuitable(format!("dtkc and ddc take images, but the set holds {input}")));
        };
        let mut network = self.network.clone();
        if self.start.is_given(clusters) {
            // Nobody would ask them, and a batch has too few images for so many.
            network.fine = 0;
        }
        let config = ModelConfig::new(shape, clusters).with_network(network);
        Ok(config.check().map_err(SettingError::from)?)
    }
}

impl MethodTable for Settings {
    fn check(&self, method: Method) -> Result<(), SettingError> {
        self.loss.check()?;
        self.optim.check()?;
        self.augment.check().map_err(ConfigError::from)?;
        self.neighbours.check()?;
        self.start.check()?;
        let conflict = |text: &str| Err(ConfigError::Conflict(text.into()).into());
        match (method, self.loss.has_companions()) {
            (Method::Ddc, true) => {
                return conflict(
                    "ddc has no companion objectives, so loss.lambda (--lambda) and loss.companions.views must be 0; with them it is \
                     --method dtkc",
                );
            }
            (Method::Dtkc, false) => {
                return conflict(
                    "dtkc needs companion objectives, so loss.lambda (--lambda) must be more than 0; without them it is \
                     --method ddc",
                );
            }
            _ => {}
        }
        if self.paired() && self.augment.is_off() {
            return conflict(
                "the loss compares two views of each image but every augmentation is 0, so they would be equal: set \
                 an augment number, or loss.consistency, loss.mutual_information and loss.self_label to 0",
            );
        }
        Ok(())
    }

    /// All rows are images, or half of them with paired views.
    fn items_per_step(&self, batch: usize) -> usize {
        if self.paired() { batch.div_ceil(2) } else { batch }
    }

    /// Mutual information is counted in k x k cells: with fewer images than that of a cluster, most of it is chance. Clusters
    /// that are given do without it.
    fn least_rows(&self, clusters: usize) -> usize {
        let counts = self.paired() && !self.start.is_given(clusters);
        if counts { 2 * IMAGES_PER_CLUSTER * clusters } else { 0 }
    }

    fn suit(&mut self, input: ItemShape) -> Option<String> {
        network::suit(&mut self.network, input)
    }

    fn fine_alone(&self, clusters: usize) -> Option<Self> {
        // Of the fine clusters of so many some thirty are used, which says nothing about larger numbers.
        let starts_fine = clusters <= MANY && self.start.kind(clusters, 0) == StartKind::Fine && self.start.share > 0.0;
        let learns_fine = self.paired() && self.loss.overclustering > 0.0 && self.network.fine > 1;
        let alone =
            || Self { start: StartConfig { from: StartKind::Fine, share: 1.0, ..self.start.clone() }, ..self.clone() };
        (starts_fine && learns_fine).then(alone)
    }

    fn step_memory(&self, input: ItemShape, clusters: usize, rows: usize) -> Option<u64> {
        Some(step_memory(&self.model(input, clusters).ok()?, rows, self.compared(rows)))
    }

    fn check_task(&self, input: ItemShape, clusters: usize) -> Result<(), LearnError> {
        self.model(input, clusters).map(drop)
    }

    fn learner(&self, task: &Task, seed: u64) -> Result<Box<dyn Learner>, LearnError> {
        Ok(Box::new(DtkcLearner::new(self, task, seed)?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::dtkc::Preset;

    fn plus() -> Settings {
        Preset::Plus.settings(Method::Dtkc).0
    }

    #[test]
    fn comparing_views_without_augmentation_is_refused() {
        let settings = Settings { augment: AugmentConfig::off(), ..plus() };
        assert!(settings.check(Method::Dtkc).unwrap_err().to_string().contains("augment"));
    }

    #[test]
    fn a_method_is_what_its_name_says() {
        let error = plus().check(Method::Ddc).unwrap_err().to_string();
        assert!(error.contains("ddc has no companion objectives") && error.contains("--method dtkc"), "{error}");
        let without = Preset::Plus.settings(Method::Ddc).0;
        without.check(Method::Ddc).unwrap();
        assert!(without.check(Method::Dtkc).unwrap_err().to_string().contains("--method ddc"));
    }

    #[test]
    fn blocks_are_replaced_as_a_whole() {
        let layer = "network.blocks = [{ filters = 64 }]".parse().unwrap();
        let settings = dtkc_settings::overlay("", &plus(), &[&layer]).unwrap();
        assert_eq!(settings.network.blocks.len(), 1);
        assert_eq!((settings.network.blocks[0].filters, settings.network.blocks[0].kernel), (64, 3));
    }

    #[test]
    fn fine_clusters_are_learnt_alone_where_a_run_begins_with_them() {
        let alone = plus().fine_alone(10).unwrap();
        assert_eq!(alone.start, StartConfig { from: StartKind::Fine, share: 1.0, ..plus().start });
        assert_eq!(Settings { start: plus().start, ..alone }, plus(), "nothing else changes");
        assert_eq!(plus().fine_alone(100), None, "so many begin with a graph");
        let fine = StartConfig { from: StartKind::Fine, share: 0.5, ..StartConfig::default() };
        assert_eq!(Settings { start: fine, ..plus() }.fine_alone(100), None, "too many to be told from a batch");
        assert_eq!(Preset::Authors.settings(Method::Dtkc).0.fine_alone(10), None);
        let mut without = plus();
        without.network.fine = 0;
        assert_eq!(without.fine_alone(10), None);
    }

    #[test]
    fn sequences_are_refused_in_one_sentence() {
        let error = plus().model(ItemShape::Sequence { dim: 3 }, 4).unwrap_err().to_string();
        assert_eq!(error, "dtkc and ddc take images, but the set holds sequences of 3 values a step");
    }
}
