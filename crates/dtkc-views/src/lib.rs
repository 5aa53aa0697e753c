//! Images as a network sees them, and random views of them: geometry and colour, on the CPU, from our own generator.
//!
//! A view is made of the image as the network would see it (scaled to [0, 1] and averaged down), in this order: flips, one
//! affine map with an optional elastic distortion (bilinear), a rectangle that is hidden, colour. Every image has its own random stream, so that the
//! result depends on seed, epoch, batch and position alone, never on threads. Views of sequences: [`SequenceViews`].

mod background;
mod colour;
mod config;
mod erase;
mod geometry;
mod pixels;
pub mod random;
mod reduce;
mod sequence;

pub use config::{AugmentConfig, Fill};
pub use pixels::{scale_pixels, scale_pixels_into};
pub use reduce::{Reduction, reduced, seen_pixels};
pub use sequence::{SequenceViewConfig, SequenceViews, Steps, resample};

use dtkc_item::ImageShape;
use rayon::prelude::*;
use thiserror::Error;

/// A number of the views outside of its range.
#[derive(Debug, Error, Clone, PartialEq)]
#[error("{name} = {value} is out of range, it must be {range}")]
pub struct OutOfRange {
    /// The setting's name.
    pub name: String,
    /// The value given.
    pub value: f64,
    /// What is allowed, in words.
    pub range: &'static str,
}

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
pub struct ViewMaker {
    config: AugmentConfig,
    size: ImageShape,
}

impl ViewMaker {
    /// Checks the configuration.
    pub fn new(config: &AugmentConfig, size: ImageShape) -> Result<Self, OutOfRange> {
        config.check()?;
        Ok(Self { config: config.clone(), size })
    }

    /// The size of the images.
    pub fn size(&self) -> ImageShape {
        self.size
    }

    /// The images and a random view of each, or of a partner of each (a near neighbour): n rows of first views, then n
    /// rows of second views. First views are the clean images unless `augment.both` is set.
    ///
    /// # Panics
    /// Panics when there are not as many partners as images.
    pub fn pair_values(&self, clean: Vec<f32>, partners: Option<&[f32]>, key: BatchKey) -> Vec<f32> {
        let shown = partners.unwrap_or(&clean);
        assert_eq!(clean.len(), shown.len(), "as many partners as images");
        let second = self.second_views(shown, key);
        let mut all = match self.config.both {
            true => self.views(&clean, key, 0),
            false => clean,
        };
        all.extend(second);
        all
    }

    /// One random view of every image, as second views of training are.
    pub fn second_views(&self, clean: &[f32], key: BatchKey) -> Vec<f32> {
        self.views(clean, key, 1)
    }

    /// One random view of every image, each already scaled to [0, 1]; `stream` tells first from second views.
    fn views(&self, clean: &[f32], key: BatchKey, stream: u64) -> Vec<f32> {
        let len = self.size.len();
        let mut views = vec![0.0; clean.len()];
        let place = (key.epoch << 32) ^ key.batch;
        views.par_chunks_exact_mut(len).zip(clean.par_chunks_exact(len)).enumerate().for_each(|(i, (view, image))| {
            let mut rng = random::generator(key.seed, b"augment.", place, (i as u64) << 1 | stream);
            let outside = geometry::warp(image, view, self.size, &self.config, &mut rng);
            if self.config.erase > 0.0 {
                // A stream of its own: the other changes stay what they are without it.
                let mut rng = random::generator(key.seed, b"erase...", place, (i as u64) << 1 | stream);
                erase::hide(view, self.size, &outside, self.config.erase as f32, &mut rng);
            }
            colour::change(view, self.size, &self.config, &mut rng);
        });
        views
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

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
        let maker = ViewMaker::new(&AugmentConfig::off(), SIZE).unwrap();
        let clean = images(4);
        let pairs = maker.pair_values(images(4), None, key(0));
        assert_eq!(&pairs[..clean.len()], &clean);
        assert_eq!(&pairs[clean.len()..], &clean);
    }

    #[test]
    fn views_depend_on_the_key_and_not_on_threads() {
        let maker = ViewMaker::new(&AugmentConfig::strong(), SIZE).unwrap();
        let run = |batch| maker.pair_values(images(9), None, key(batch));
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| run(0));
        let many = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap().install(|| run(0));
        assert_eq!(alone, many);
        assert_ne!(run(0), run(1));
    }

    #[test]
    fn first_views_are_clean_unless_both_is_set() {
        let clean = images(2);
        let one = ViewMaker::new(&AugmentConfig::strong(), SIZE).unwrap().pair_values(images(2), None, key(0));
        assert_eq!(&one[..clean.len()], &clean);
        let both = AugmentConfig { both: true, ..AugmentConfig::strong() };
        let both = ViewMaker::new(&both, SIZE).unwrap().pair_values(images(2), None, key(0));
        assert_ne!(&both[..clean.len()], &clean);
        assert_eq!(&both[clean.len()..], &one[clean.len()..]);
    }

    #[test]
    fn second_views_may_be_of_partners() {
        let maker = ViewMaker::new(&AugmentConfig::strong(), SIZE).unwrap();
        let (own, other) = (images(2), images(4)[2 * SIZE.len()..].to_vec());
        let pairs = maker.pair_values(own.clone(), Some(&other), key(0));
        let (first, second) = pairs.split_at(own.len());
        assert_eq!(first, own);
        assert_eq!(second, &maker.pair_values(other, None, key(0))[own.len()..]);
    }

    #[test]
    fn views_stay_in_range_and_differ_from_the_image() {
        let config = AugmentConfig { noise: 0.1, elastic: 0.05, ..AugmentConfig::strong() };
        let maker = ViewMaker::new(&config, SIZE).unwrap();
        let pairs = maker.pair_values(images(16), None, key(5));
        assert!(pairs.iter().all(|v| (0.0..=1.0).contains(v)));
        let (clean, views) = pairs.split_at(pairs.len() / 2);
        let moved = clean.iter().zip(views).filter(|(a, b)| (**a - **b).abs() > 0.02).count();
        assert!(moved > clean.len() / 2, "{moved} of {}", clean.len());
    }
}
