//! Large images seen in less detail: before anything else their sides are averaged down by a whole factor.
//!
//! A step costs in proportion to the pixels that the network sees, and what tells groups of images apart is mostly there
//! at some 32 pixels a side.

use crate::config::{NetworkConfig, ValidModel};
use crate::pixels::{image_tensor, scale_pixels};
use burn::tensor::{Device, Tensor};
use dtkc_item::ImageShape;
use rayon::prelude::*;

/// The side, about, that images are brought to where nobody says how much detail is wanted.
const SIDE: f64 = 32.0;

/// What is left of a shape; incomplete squares at the right and bottom border are dropped.
pub(crate) fn reduced(shape: ImageShape, factor: usize) -> ImageShape {
    ImageShape { height: shape.height / factor, width: shape.width / factor, ..shape }
}

impl NetworkConfig {
    /// `reduce` for images of this size: where it is 0, what brings them to about 32 x 32 pixels, but never so much that
    /// too little is left for the network.
    pub fn reduce_for(&self, input: ImageShape) -> usize {
        match self.reduce {
            0 => {
                let wanted = ((input.height * input.width) as f64).sqrt() / SIDE;
                self.most_reduction(input, wanted.round() as usize).unwrap_or(1)
            }
            given => given,
        }
    }

    /// The largest factor up to `most` that leaves enough for the network; `None` where the images themselves are too
    /// small.
    pub(crate) fn most_reduction(&self, input: ImageShape, most: usize) -> Option<usize> {
        (1..=most.max(1)).rev().find(|&factor| self.shapes(reduced(input, factor)).is_ok())
    }
}

impl ValidModel {
    /// What the first block sees of an image.
    pub fn seen(&self) -> ImageShape {
        reduced(self.config().input, self.config().network.reduce)
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
        let (size, factor) = (self.config().input, self.config().network.reduce);
        if factor == 1 {
            return scale_pixels(images, size);
        }
        assert!(images.len().is_multiple_of(size.len()), "images must be whole images of {size:?}");
        let seen = self.seen();
        let mut values = vec![0.0; images.len() / size.len() * seen.len()];
        let pairs = values.par_chunks_exact_mut(seen.len()).zip(images.par_chunks_exact(size.len()));
        pairs.for_each(|(values, image)| average(image, size, factor, values));
        values
    }

    /// [`input_values`](Self::input_values) as a tensor `[n, height, width, channels]`.
    ///
    /// # Panics
    /// Panics when `images` is no whole number of images.
    pub fn input(&self, images: &[u8], device: &Device) -> Tensor<4> {
        image_tensor(self.input_values(images), self.seen(), device)
    }
}

/// The means of `factor` x `factor` squares of one scaled image. Bytes are added up before they are scaled: sums of whole
/// numbers are exact, and a division for every square is enough.
fn average(image: &[u8], size: ImageShape, factor: usize, values: &mut [f32]) {
    let (low, high) = image.iter().fold((u8::MAX, u8::MIN), |(l, h), &p| (l.min(p), h.max(p)));
    if low >= high {
        return values.fill(0.0);
    }
    let channels = size.channels;
    let seen = reduced(size, factor);
    let area = (factor * factor) as f64;
    let (shift, scale) = (area * f64::from(low), 1.0 / (area * f64::from(high - low)));
    let mut columns = vec![0u32; size.width * channels];
    let stripes = image.chunks_exact(size.width * channels * factor);
    for (stripe, row) in stripes.zip(values.chunks_exact_mut(seen.width * channels)) {
        columns.fill(0);
        for line in stripe.chunks_exact(columns.len()) {
            columns.iter_mut().zip(line).for_each(|(sum, &pixel)| *sum += u32::from(pixel));
        }
        for (square, pixel) in columns.chunks_exact(factor * channels).zip(row.chunks_exact_mut(channels)) {
            for (channel, value) in pixel.iter_mut().enumerate() {
                let sum: u32 = square.iter().skip(channel).step_by(channels).sum();
                *value = ((f64::from(sum) - shift) * scale) as f32;
            }
        }
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

    fn noise(len: usize) -> Vec<u8> {
        (0..len).map(|i| ((i * 37 + i / 91 * 11 + i * i % 17) % 251) as u8).collect()
    }

    /// By definition, in f64: scale, then the mean of every whole square.
    fn by_definition(image: &[u8], size: ImageShape, factor: usize) -> Vec<f64> {
        let (low, high) = (f64::from(*image.iter().min().unwrap()), f64::from(*image.iter().max().unwrap()));
        let at = |y: usize, x: usize, c: usize| f64::from(image[(y * size.width + x) * size.channels + c]);
        let mut means = Vec::new();
        for y in 0..size.height / factor {
            for x in 0..size.width / factor {
                for c in 0..size.channels {
                    let mut sum = 0.0;
                    for (dy, dx) in (0..factor).flat_map(|dy| (0..factor).map(move |dx| (dy, dx))) {
                        sum += (at(y * factor + dy, x * factor + dx, c) - low) / (high - low).max(1.0);
                    }
                    means.push(sum / (factor * factor) as f64);
                }
            }
        }
        means
    }

    #[test]
    fn averages_are_those_of_plain_loops_also_where_squares_are_cut() {
        for (height, width, channels, factor) in [(40, 60, 1, 2), (65, 83, 3, 3), (170, 99, 3, 4), (256, 256, 1, 8)] {
            let size = ImageShape { height, width, channels };
            let model = model(size, factor);
            let images = noise(3 * size.len());
            let found = model.input_values(&images);
            let expected: Vec<f64> =
                images.chunks_exact(size.len()).flat_map(|image| by_definition(image, size, factor)).collect();
            assert_eq!(found.len(), expected.len());
            let far = found.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(far < 1e-7, "{size:?} by {factor}: {far}");
            let seen = model.seen();
            assert_eq!((seen.height, seen.width, seen.channels), (height / factor, width / factor, channels));
        }
    }

    #[test]
    fn a_constant_image_is_zeros_and_a_factor_of_one_changes_no_bit() {
        let size = ImageShape { height: 42, width: 42, channels: 1 };
        assert!(model(size, 2).input_values(&vec![9; size.len()]).iter().all(|&v| v == 0.0));
        let images = noise(2 * size.len());
        let device = Device::flex();
        let same = scale_images(&images, size, &device).into_data();
        assert_eq!(model(size, 1).input(&images, &device).into_data(), same);
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
