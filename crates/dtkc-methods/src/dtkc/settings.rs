//! The settings of DTKC and DDC, and their check.

use dtkc_core::{AugmentConfig, ConfigError, LossConfig, ModelConfig, NetworkConfig, SequenceViewConfig, ValidModel};
use dtkc_item::{FeatureShape, ItemShape};
use serde::{Deserialize, Serialize};

use super::memory::{feature_memory, sequence_memory, step_memory};
use super::start::MANY;
use super::{DtkcLearner, PartnerConfig, StartConfig, StartKind};
use crate::learner::{Extent, Learner};
use crate::network;
use crate::optimizer::OptimConfig;
use crate::{LearnError, Method, MethodTable, SettingError, Task};

/// Near neighbours of `plus` for images.
pub(super) const FEW_NEIGHBOURS: usize = 5;
/// The same for sequences.
const MANY_NEIGHBOURS: usize = 20;
/// The same for features.
const NEIGHBOURS_BY_FEATURES: usize = 10;

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
    /// Random views of images; used when a term of the loss compares views.
    pub augment: AugmentConfig,
    /// The same for sequences.
    pub sequence_views: SequenceViewConfig,
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

    fn equal_views(&self, table: &str) -> ConfigError {
        ConfigError::Conflict(format!(
            "the loss compares two views of each item but every change of them is 0, so they would be equal: set a number of \
             {table}, or loss.consistency, loss.mutual_information and loss.self_label to 0"
        ))
    }

    fn check_features(&self, shape: FeatureShape, clusters: usize) -> Result<(), LearnError> {
        let conflict = |text: &str| Err(SettingError::from(ConfigError::Conflict(text.into())).into());
        if self.loss.has_companions() {
            self.check_companions(shape)?;
        }
        if self.paired() && shape.views == 0 && !self.neighbours.is_on() {
            return conflict(
                "the loss compares two views of each item, but these features have none and neighbours are off: make them with \
                 --backbone-views 4, or set neighbours.count and neighbours.share",
            );
        }
        self.model(ItemShape::Features(shape), clusters).map(drop)
    }

    /// Companion objectives on what lies inside a frozen network can shape memberships, and nothing else.
    fn check_companions(&self, shape: FeatureShape) -> Result<(), LearnError> {
        let companions = &self.loss.companions;
        let text = if shape.taps.is_empty() {
            "companion objectives look into the network, and nothing of its inside was kept with these features: name values of \
             it with --backbone-taps, or use --method ddc"
        } else if companions.detached {
            "loss.companions.detached leaves memberships alone, and the blocks of a backbone are frozen, so that nothing would \
             learn from companion objectives: set it to false"
        } else if companions.views > 0.0 || companions.share > 0.0 {
            "loss.companions.views and loss.companions.share are about blocks that are trained, and those of a backbone are \
             frozen: set both to 0"
        } else {
            return Ok(());
        };
        Err(SettingError::from(ConfigError::Conflict(text.into())).into())
    }

    /// The network for these items, checked.
    pub fn model(&self, input: ItemShape, clusters: usize) -> Result<ValidModel, LearnError> {
        let mut network = self.network.clone();
        if self.start.is_given(clusters) {
            // Nobody would ask them, and a batch has too few images for so many.
            network.fine = 0;
        }
        let config = ModelConfig::new(input, clusters).with_network(network);
        Ok(config.check().map_err(SettingError::from)?)
    }
}

impl MethodTable for Settings {
    fn check(&self, method: Method) -> Result<(), SettingError> {
        self.loss.check()?;
        self.optim.check()?;
        self.augment.check().map_err(ConfigError::from)?;
        self.sequence_views.check().map_err(ConfigError::from)?;
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

    /// Settings of the other kind of items become neutral: they say nothing about this run.
    fn suit(&mut self, input: ItemShape) -> Option<String> {
        match input {
            ItemShape::Image(_) => self.sequence_views = SequenceViewConfig::default(),
            ItemShape::Sequence { .. } => {
                self.augment = AugmentConfig::default();
                self.network.reduce = 1;
                // Measured on images alone.
                self.start.strays = false;
                if self.start.from == StartKind::Auto {
                    // Neighbours of sequences are nearly always of one kind, and fine clusters take a recurrent network long.
                    self.start.from = StartKind::Graph;
                    // The graph of five has 90 parts on spoken digits, which spectral clustering takes for clusters.
                    if self.neighbours.count == FEW_NEIGHBOURS {
                        self.neighbours.count = MANY_NEIGHBOURS;
                    }
                }
            }
            ItemShape::Features(_) => {
                (self.augment, self.sequence_views) = (AugmentConfig::default(), SequenceViewConfig::default());
                self.network.reduce = 1;
                self.start.strays = false;
                if self.start.from == StartKind::Auto {
                    // What a trained network finds alike is nearly always of one kind.
                    self.start.from = StartKind::Graph;
                    if self.neighbours.count == FEW_NEIGHBOURS {
                        self.neighbours.count = NEIGHBOURS_BY_FEATURES;
                    }
                }
            }
        }
        network::suit(&mut self.network, input)
    }

    fn fine_alone(&self, clusters: usize) -> Option<Self> {
        // Of the fine clusters of so many some thirty are used, which says nothing about larger numbers.
        let starts_fine = clusters <= MANY && self.start.has_fine(clusters);
        let learns_fine = self.paired() && self.loss.overclustering > 0.0 && self.network.fine > 1;
        let alone =
            || Self { start: StartConfig { from: StartKind::Fine, share: 1.0, ..self.start.clone() }, ..self.clone() };
        (starts_fine && learns_fine).then(alone)
    }

    fn step_memory(&self, input: ItemShape, clusters: usize, Extent { rows, steps }: Extent) -> Option<u64> {
        let model = self.model(input, clusters).ok()?;
        Some(match input {
            ItemShape::Image(_) => step_memory(&model, rows, self.compared(rows)),
            ItemShape::Sequence { .. } => sequence_memory(&model, rows, steps),
            ItemShape::Features(_) => feature_memory(&model, rows, self.compared(rows)),
        })
    }

    fn check_task(&self, input: ItemShape, clusters: usize) -> Result<(), LearnError> {
        let (is_off, name) = match input {
            ItemShape::Image(_) => (self.augment.is_off(), "augment"),
            ItemShape::Sequence { .. } => (self.sequence_views.is_off(), "sequence_views"),
            ItemShape::Features(shape) => return self.check_features(shape, clusters),
        };
        if self.paired() && is_off {
            return Err(SettingError::from(self.equal_views(name)).into());
        }
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
        let image = ItemShape::Image(dtkc_item::ImageShape { height: 28, width: 28, channels: 1 });
        let mut settings = Settings { augment: AugmentConfig::off(), ..plus() };
        assert!(settings.check_task(image, 4).unwrap_err().to_string().contains("number of augment"));
        settings.check_task(ItemShape::Sequence { dim: 3 }, 4).unwrap();
        settings.suit(image);
        assert!(settings.check_task(image, 4).is_err());
    }

    #[test]
    fn companions_of_a_frozen_network_need_its_inside_and_what_it_can_give() {
        let mut settings = plus();
        let inside = dtkc_item::Taps::new(&[dtkc_item::TapShape::Vector(4)]).unwrap();
        let shape = |taps| ItemShape::Features(FeatureShape { dim: 9, views: 4, taps });
        settings.suit(shape(inside));
        settings.check_task(shape(inside), 4).unwrap();
        let text = settings.check_task(shape(dtkc_item::Taps::NONE), 4).unwrap_err().to_string();
        assert!(text.contains("--backbone-taps") && text.contains("--method ddc"), "{text}");
        for change in ["loss.companions.detached = true", "loss.companions.views = 0.1", "loss.companions.share = 0.1"]
        {
            let changed = dtkc_settings::overlay("", &settings, &[&change.parse().unwrap()]).unwrap();
            let text = changed.check_task(shape(inside), 4).unwrap_err().to_string();
            assert!(text.contains("frozen") && text.contains("set "), "{change}: {text}");
        }
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
    fn settings_of_the_other_kind_of_items_become_neutral() {
        let (mut images, mut sequences) = (plus(), plus());
        images.suit(ItemShape::Image(dtkc_item::ImageShape { height: 28, width: 28, channels: 1 }));
        sequences.suit(ItemShape::Sequence { dim: 3 });
        assert!(images.sequence_views.is_off() && !images.augment.is_off());
        assert!(sequences.augment.is_off() && !sequences.sequence_views.is_off() && sequences.network.reduce == 1);
        assert_eq!((images.start.from, sequences.start.from), (StartKind::Auto, StartKind::Graph));
        assert_eq!((images.neighbours.count, sequences.neighbours.count), (5, 20));
        assert!(images.start.strays && !sequences.start.strays);
    }
}
