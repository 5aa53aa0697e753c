//! Random views of images: geometry and colour, on the CPU, from our own generator.
//!
//! A view is made of the image as the network would see it (scaled to [0, 1] and averaged down), in this order: flips, one affine map
//! with an optional elastic distortion (bilinear), colour. Every image has its own random stream, so that the result
//! depends on seed, epoch, batch and position alone, never on threads.

mod background;
mod colour;
mod config;
mod geometry;

pub use config::{AugmentConfig, Fill};

use crate::pixels::image_tensor;
use crate::{ConfigError, random};
use burn::tensor::{Device, Tensor};
use dtkc_item::ImageShape;
use rayon::prelude::*;

/// Which random numbers a batch gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchKey {
    /// Seed of the run.
    pub seed: u64,
    /// Epoch.
    pub epoch: u64,
    /// Batch in that epoch.
    pub batch: u64,
}

/// Makes views of images of one size.
#[derive(Debug, Clone)]
pub struct Augmenter {
    config: AugmentConfig,
    size: ImageShape,
}

impl Augmenter {
    /// Checks the configuration.
    pub fn new(config: &AugmentConfig, size: ImageShape) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config: config.clone(), size })
    }

    /// The images and a random view of each: n rows of first views, then n rows of second views. First views are
    /// the clean images unless `augment.both` is set.
    ///
    /// # Shapes
    /// - clean: n images as the network takes them, see [`ValidModel::input_values`](crate::ValidModel::input_values)
    /// - output: `[2 n, height, width, channels]`
    pub fn pairs(&self, clean: Vec<f32>, key: BatchKey, device: &Device) -> Tensor<4> {
        image_tensor(self.pair_values(clean, None, key), self.size, device)
    }

    /// [`pairs`](Self::pairs) whose second views are views of other images, one for each: of near neighbours.
    ///
    /// # Panics
    /// Panics when there are not as many of both.
    pub fn pairs_with(&self, clean: Vec<f32>, partners: &[f32], key: BatchKey, device: &Device) -> Tensor<4> {
        image_tensor(self.pair_values(clean, Some(partners), key), self.size, device)
    }

    /// Both without the tensor.
    fn pair_values(&self, clean: Vec<f32>, partners: Option<&[f32]>, key: BatchKey) -> Vec<f32> {
        let shown = partners.unwrap_or(&clean);
        assert_eq!(clean.len(), shown.len(), "as many partners as images");
        let second = self.views(shown, key, 1);
        let mut all = match self.config.both {
            true => self.views(&clean, key, 0),
            false => clean,
        };
        all.extend(second);
        all
    }

    /// One random view of every image, each already scaled to [0, 1]; `stream` tells first from second views.
    fn views(&self, clean: &[f32], key: BatchKey, stream: u64) -> Vec<f32> {
        let len = self.size.len();
        let mut views = vec![0.0; clean.len()];
        let place = (key.epoch << 32) ^ key.batch;
        views.par_chunks_exact_mut(len).zip(clean.par_chunks_exact(len)).enumerate().for_each(|(i, (view, image))| {
            let mut rng = random::generator(key.seed, b"augment.", place, (i as u64) << 1 | stream);
            geometry::warp(image, view, self.size, &self.config, &mut rng);
            colour::change(view, self.size, &self.config, &mut rng);
        });
        views
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::scale_pixels;

    const SIZE: ImageShape = ImageShape { height: 12, width: 10, channels: 3 };

    fn images(n: usize) -> Vec<f32> {
        let bytes: Vec<u8> = (0..n * SIZE.len()).map(|i| ((i * 37 + i / 91 * 11) % 251) as u8).collect();
        scale_pixels(&bytes, SIZE)
    }

    fn key(batch: u64) -> BatchKey {
        BatchKey { seed: 3, epoch: 1, batch }
    }

    #[test]
    fn nothing_to_do_gives_the_image_back() {
        let augmenter = Augmenter::new(&AugmentConfig::off(), SIZE).unwrap();
        let clean = images(4);
        let pairs = augmenter.pair_values(images(4), None, key(0));
        assert_eq!(&pairs[..clean.len()], &clean);
        assert_eq!(&pairs[clean.len()..], &clean);
    }

    #[test]
    fn views_depend_on_the_key_and_not_on_threads() {
        let augmenter = Augmenter::new(&AugmentConfig::strong(), SIZE).unwrap();
        let run = |batch| augmenter.pair_values(images(9), None, key(batch));
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| run(0));
        let many = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap().install(|| run(0));
        assert_eq!(alone, many);
        assert_ne!(run(0), run(1));
    }

    #[test]
    fn first_views_are_clean_unless_both_is_set() {
        let clean = images(2);
        let one = Augmenter::new(&AugmentConfig::strong(), SIZE).unwrap().pair_values(images(2), None, key(0));
        assert_eq!(&one[..clean.len()], &clean);
        let both = AugmentConfig { both: true, ..AugmentConfig::strong() };
        let both = Augmenter::new(&both, SIZE).unwrap().pair_values(images(2), None, key(0));
        assert_ne!(&both[..clean.len()], &clean);
        assert_eq!(&both[clean.len()..], &one[clean.len()..]);
    }

    #[test]
    fn second_views_may_be_of_partners() {
        let augmenter = Augmenter::new(&AugmentConfig::strong(), SIZE).unwrap();
        let (own, other) = (images(2), images(4)[2 * SIZE.len()..].to_vec());
        let pairs = augmenter.pair_values(own.clone(), Some(&other), key(0));
        let (first, second) = pairs.split_at(own.len());
        assert_eq!(first, own);
        assert_eq!(second, &augmenter.pair_values(other, None, key(0))[own.len()..]);
    }

    #[test]
    fn views_stay_in_range_and_differ_from_the_image() {
        let config = AugmentConfig { noise: 0.1, elastic: 0.05, ..AugmentConfig::strong() };
        let augmenter = Augmenter::new(&config, SIZE).unwrap();
        let pairs = augmenter.pair_values(images(16), None, key(5));
        assert!(pairs.iter().all(|v| (0.0..=1.0).contains(v)));
        let (clean, views) = pairs.split_at(pairs.len() / 2);
        let moved = clean.iter().zip(views).filter(|(a, b)| (**a - **b).abs() > 0.02).count();
        assert!(moved > clean.len() / 2, "{moved} of {}", clean.len());
    }
}
