//! Large images seen in less detail: before anything else their sides are averaged down by a whole factor.
//!
//! A step costs in proportion to the pixels that the network sees, and what tells groups of images apart is mostly there
//! at some 32 pixels a side.

use crate::pixels::scale_pixels;
use dtkc_item::ImageShape;
use rayon::prelude::*;

/// The side, about, that images are brought to where nobody says how much detail is wanted.
const SIDE: f64 = 32.0;

/// What is left of a shape; incomplete squares at the right and bottom border are dropped.
pub fn reduced(shape: ImageShape, factor: usize) -> ImageShape {
    ImageShape { height: shape.height / factor, width: shape.width / factor, ..shape }
}

/// Factors for images of one size.
#[derive(Debug, Clone, Copy)]
pub struct Reduction(pub ImageShape);

impl Reduction {
    /// What brings the images to about 32 x 32 pixels, but never so much that too little is left.
    pub fn usual(self, is_enough: impl Fn(ImageShape) -> bool) -> usize {
        let wanted = ((self.0.height * self.0.width) as f64).sqrt() / SIDE;
        self.most(wanted.round() as usize, is_enough).unwrap_or(1)
    }

    /// The largest factor up to `limit` that leaves enough; `None` where the images themselves are too small.
    pub fn most(self, limit: usize, is_enough: impl Fn(ImageShape) -> bool) -> Option<usize> {
        (1..=limit.max(1)).rev().find(|&factor| is_enough(reduced(self.0, factor)))
    }
}

/// Bytes to what a network sees: each image scaled to [0, 1] by its own minimum and maximum (a constant one becomes zeros),
/// then averaged down by a factor.
///
/// # Panics
/// Panics when `images` is no whole number of images.
pub fn seen_pixels(images: &[u8], size: ImageShape, factor: usize) -> Vec<f32> {
    if factor == 1 {
        return scale_pixels(images, size);
    }
    assert!(images.len().is_multiple_of(size.len()), "images must be whole images of {size:?}");
    let seen = reduced(size, factor);
    let mut values = vec![0.0; images.len() / size.len() * seen.len()];
    let pairs = values.par_chunks_exact_mut(seen.len()).zip(images.par_chunks_exact(size.len()));
    pairs.for_each(|(values, image)| average(image, size, factor, values));
    values
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
            let images = noise(3 * size.len());
            let found = seen_pixels(&images, size, factor);
            let expected: Vec<f64> =
                images.chunks_exact(size.len()).flat_map(|image| by_definition(image, size, factor)).collect();
            assert_eq!(found.len(), expected.len());
            let far = found.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(far < 1e-7, "{size:?} by {factor}: {far}");
            assert_eq!(reduced(size, factor), ImageShape { height: height / factor, width: width / factor, channels });
        }
    }

    #[test]
    fn a_constant_image_is_zeros_and_a_factor_of_one_changes_no_bit() {
        let size = ImageShape { height: 42, width: 42, channels: 1 };
        assert!(seen_pixels(&vec![9; size.len()], size, 2).iter().all(|&v| v == 0.0));
        let images = noise(2 * size.len());
        assert_eq!(seen_pixels(&images, size, 1), scale_pixels(&images, size));
    }

    #[test]
    fn the_factor_follows_the_size_of_the_images() {
        let usual = |height, width| {
            Reduction(ImageShape { height, width, channels: 3 }).usual(|seen| seen.height.min(seen.width) >= 20)
        };
        let squares = [12, 28, 32, 47, 48, 64, 96, 128, 256, 1024].map(|side| usual(side, side));
        assert_eq!(squares, [1, 1, 1, 1, 2, 2, 3, 4, 8, 32]);
        assert_eq!([usual(256, 64), usual(640, 40), usual(25, 400)], [3, 2, 1]);
    }
}
