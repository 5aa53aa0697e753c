//! Random views of images as tensors; `dtkc-views` makes them.

use burn::tensor::{Device, Tensor};
use dtkc_item::ImageShape;
use dtkc_views::ViewMaker;

pub use dtkc_views::{AugmentConfig, BatchKey, Fill};

use crate::ConfigError;
use crate::pixels::image_tensor;

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
