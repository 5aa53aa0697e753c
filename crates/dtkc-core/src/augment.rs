//! Random views of images and sequences as tensors; `dtkc-views` makes them.

use burn::tensor::{Device, Tensor};
use dtkc_item::ImageShape;
use dtkc_ops::Lengths;
use dtkc_views::{SequenceViews, ViewMaker};

pub use dtkc_views::{AugmentConfig, BatchKey, Fill, SequenceViewConfig, Steps, resample};

use crate::ConfigError;
use crate::pixels::image_tensor;
use crate::sequences::Sequences;

/// Makes views of images of one size.
#[derive(Debug, Clone)]
pub struct Augmenter(ViewMaker);

impl Augmenter {
    /// Checks the configuration.
    pub fn new(config: &AugmentConfig, size: ImageShape) -> Result<Self, ConfigError> {
        Ok(Self(ViewMaker::new(config, size)?))
    }

    /// The images and a random view of each: n rows of first views, then n rows of second views. First views are
    /// the clean images unless `augment.both` is set.
    ///
    /// # Shapes
    /// - clean: n images as the network takes them, see [`ValidModel::input_values`](crate::ValidModel::input_values)
    /// - output: `[2 n, height, width, channels]`
    pub fn pairs(&self, clean: Vec<f32>, key: BatchKey, device: &Device) -> Tensor<4> {
        image_tensor(self.0.pair_values(clean, None, key), self.0.size(), device)
    }

    /// [`pairs`](Self::pairs) whose second views are views of other images, one for each: of near neighbours.
    ///
    /// # Panics
    /// Panics when there are not as many of both.
    pub fn pairs_with(&self, clean: Vec<f32>, partners: &[f32], key: BatchKey, device: &Device) -> Tensor<4> {
        image_tensor(self.0.pair_values(clean, Some(partners), key), self.0.size(), device)
    }
}

/// Makes views of sequences of one dimension.
#[derive(Debug, Clone)]
pub struct SequenceAugmenter {
    views: SequenceViews,
    dim: usize,
}

impl SequenceAugmenter {
    /// Checks the configuration.
    pub fn new(config: &SequenceViewConfig, dim: usize) -> Result<Self, ConfigError> {
        Ok(Self { views: SequenceViews::new(config, dim)?, dim })
    }

    /// Scaled sequences and a random view of each, or of a partner of each (a near neighbour): n first views, then n second
    /// views. First views are the sequences themselves unless `sequence_views.both` is set.
    ///
    /// # Panics
    /// Panics when there are not as many of both.
    pub fn pairs(&self, clean: Steps, partners: Option<&Steps>, key: BatchKey, device: &Device) -> Sequences {
        let Steps { values, lengths } = self.views.pairs(clean, partners, key);
        Sequences::new(values, self.dim, Lengths::new(&lengths), device)
    }
}
