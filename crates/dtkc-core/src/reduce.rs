//! Large images seen in less detail: how much suits a network.

use crate::config::{NetworkConfig, ValidModel};
use crate::pixels::image_tensor;
use burn::tensor::{Device, Tensor};
use dtkc_item::ImageShape;
use dtkc_views::{Reduction, reduced, seen_pixels};

impl NetworkConfig {
    /// `reduce` for images of this size: where it is 0, what brings them to about 32 x 32 pixels, but never so much that
    /// too little is left for the network.
    pub fn reduce_for(&self, input: ImageShape) -> usize {
        match self.reduce {
            0 => Reduction(input).usual(|seen| self.shapes(seen).is_ok()),
            given => given,
        }
    }

    /// The largest factor up to `most` that leaves enough for the network; `None` where the images themselves are too
    /// small.
    pub(crate) fn most_reduction(&self, input: ImageShape, most: usize) -> Option<usize> {
        Reduction(input).most(most, |seen| self.shapes(seen).is_ok())
    }
}

impl ValidModel {
    /// What the first block sees of an image; nothing where items are sequences.
    pub fn seen(&self) -> ImageShape {
        reduced(self.image(), self.config().network.reduce)
    }

    /// The images; of no size where items are sequences.
    fn image(&self) -> ImageShape {
        self.config().input.image().unwrap_or(ImageShape { height: 0, width: 0, channels: 0 })
    }

    /// Bytes to what the network takes: each image scaled to [0, 1] by its own minimum and maximum (a constant one becomes
    /// zeros), then averaged down by `network.reduce`.
    ///
    /// # Shapes
    /// - images: n images of the configured size, row-major, channels-last
    /// - output: n images of [`seen`](Self::seen)
    ///
    /// # Panics
    /// Panics when `images` is no whole number of images.
    pub fn input_values(&self, images: &[u8]) -> Vec<f32> {
        seen_pixels(images, self.image(), self.config().network.reduce)
    }

    /// [`input_values`](Self::input_values) as a tensor `[n, height, width, channels]`.
    ///
    /// # Panics
    /// Panics when `images` is no whole number of images.
    pub fn input(&self, images: &[u8], device: &Device) -> Tensor<4> {
        image_tensor(self.input_values(images), self.seen(), device)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{ModelConfig, scale_images};

    fn model(input: ImageShape, reduce: usize) -> ValidModel {
        let network = NetworkConfig { reduce, ..NetworkConfig::default() };
        ModelConfig::new(input, 3).with_network(network).check().unwrap()
    }

    #[test]
    fn a_factor_of_one_changes_no_bit() {
        let size = ImageShape { height: 42, width: 42, channels: 1 };
        let images: Vec<u8> = (0..2 * size.len()).map(|i| ((i * 37 + i / 91 * 11) % 251) as u8).collect();
        let device = Device::flex();
        let same = scale_images(&images, size, &device).into_data();
        assert_eq!(model(size, 1).input(&images, &device).into_data(), same);
        assert_eq!(model(size, 2).input(&images, &device).dims(), [2, 21, 21, 1]);
    }

    #[test]
    fn the_factor_follows_the_size_of_the_images() {
        let open = NetworkConfig { reduce: 0, ..NetworkConfig::default() };
        let factor = |height, width| open.reduce_for(ImageShape { height, width, channels: 3 });
        let squares = [12, 28, 32, 47, 48, 64, 96, 128, 256, 1024].map(|side| factor(side, side));
        assert_eq!(squares, [1, 1, 1, 1, 2, 2, 3, 4, 8, 32]);
        // A narrow image keeps the 20 pixels that the paper's network needs.
        assert_eq!([factor(256, 64), factor(640, 40), factor(25, 400)], [3, 2, 1]);
        let given = NetworkConfig { reduce: 3, ..NetworkConfig::default() };
        assert_eq!(given.reduce_for(ImageShape { height: 28, width: 28, channels: 1 }), 3);
        assert_eq!(model(ImageShape { height: 128, width: 96, channels: 1 }, 0).config().network.reduce, 3);
    }
}
