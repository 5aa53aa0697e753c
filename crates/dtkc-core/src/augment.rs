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
    /// - images: n images, row-major, channels-last
    /// - output: `[2 n, height, width, channels]`
    ///
    /// # Panics
    /// Panics when `images` is no whole number of images.
    pub fn pairs(&self, images: &[u8], key: BatchKey, device: &Device) -> Tensor<4> {
        self.pairs_with(images, images, key, device)
    }

    /// [`pairs`](Self::pairs) whose second views are views of other images, one for each: of near neighbours.
    ///
    /// # Panics
    /// Panics when there is no whole number of images, or not the same of both.
    pub fn pairs_with(&self, images: &[u8], partners: &[u8], key: BatchKey, device: &Device) -> Tensor<4> {
        image_tensor(self.0.pair_pixels(images, partners, key), self.0.size(), device)
    }
}
