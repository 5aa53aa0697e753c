//! All images of a set as rows: kept as bytes, scaled when they are looked at.

use std::ops::Range;

use dtkc_core::scale_pixels_into;
use dtkc_item::{Batch, ImageShape, Items};

use super::neighbours::Rows;
use crate::LearnError;
use crate::learner::Passes;
use crate::places::Pass;

/// Products of two numbers that two cores make in a second, with room to spare.
const PRODUCTS_PER_SECOND: f64 = 5e10;

/// Images in the order of their set.
pub(crate) struct Images {
    shape: ImageShape,
    pixels: Vec<u8>,
}

impl Images {
    /// Reads all of them.
    pub(crate) fn read(data: &mut dyn Passes, shape: ImageShape) -> Result<Self, LearnError> {
        let size = shape.len();
        let mut pixels = vec![0; data.len() * size];
        for batch in data.batches(Pass::Everything) {
            let Batch { indices, items } = batch?;
            for (index, image) in indices.into_iter().zip(items.pixels().unwrap_or_default().chunks_exact(size)) {
                pixels[index * size..][..size].copy_from_slice(image);
            }
        }
        Ok(Self { shape, pixels })
    }

    /// Those with these bytes.
    pub(crate) fn of(shape: ImageShape, pixels: Vec<u8>) -> Self {
        Self { shape, pixels }
    }

    /// As plain items.
    pub(crate) fn into_items(self) -> Items {
        Items::Images { shape: self.shape, pixels: self.pixels }
    }

    /// The same images with sides of at most `side` pixels, each the mean of a square of them.
    pub(crate) fn reduced(&self, side: usize) -> Self {
        let ImageShape { height, width, channels } = self.shape;
        let cell = height.max(width).div_ceil(side.max(1)).max(1);
        let shape = ImageShape { height: height.div_ceil(cell), width: width.div_ceil(cell), channels };
        let mut pixels = Vec::with_capacity(self.len() * shape.len());
        let mut sums = vec![0u32; shape.len()];
        for image in self.pixels.chunks_exact(self.shape.len()) {
            sums.fill(0);
            for (at, &value) in image.iter().enumerate() {
                let (pixel, channel) = (at / channels, at % channels);
                let (x, y) = (pixel % width / cell, pixel / width / cell);
                sums[(y * shape.width + x) * channels + channel] += u32::from(value);
            }
            pixels.extend(sums.iter().enumerate().map(|(at, &sum)| {
                let (x, y) = (at / channels % shape.width, at / channels / shape.width);
                let covered = (cell.min(width - x * cell) * cell.min(height - y * cell)) as u32;
                ((sum + covered / 2) / covered) as u8
            }));
        }
        Self { shape, pixels }
    }

    /// The bytes of all of them.
    pub(super) fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// What each of them looks like.
    pub(super) fn shape(&self) -> ImageShape {
        self.shape
    }
}

/// Seconds that it takes to compare every pair of `n` rows of so many values, about, on two cores.
pub(crate) fn seconds_of_all_pairs(n: usize, values: usize) -> f64 {
    (n as f64).powi(2) * values as f64 / PRODUCTS_PER_SECOND
}

impl Rows for Images {
    fn len(&self) -> usize {
        self.pixels.len() / self.shape.len()
    }

    fn width(&self) -> usize {
        self.shape.len()
    }

    fn read(&self, range: Range<usize>, to: &mut [f32]) {
        let size = self.shape.len();
        scale_pixels_into(&self.pixels[range.start * size..range.end * size], self.shape, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduced_images_are_means_of_squares_also_at_an_odd_edge() {
        let shape = ImageShape { height: 3, width: 5, channels: 1 };
        let pixels = vec![0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140];
        let images = Images { shape, pixels };
        let reduced = images.reduced(3);
        // Squares of 2: [0 10 50 60] [20 30 70 80] [40 90] / [100 110] [120 130] [140].
        assert_eq!(reduced.pixels, [30, 50, 65, 105, 125, 140]);
        assert_eq!((reduced.len(), reduced.shape.height, reduced.shape.width), (1, 2, 3));
        assert_eq!(images.reduced(5).pixels, images.pixels);
    }

    #[test]
    fn channels_are_reduced_apart() {
        let shape = ImageShape { height: 2, width: 2, channels: 3 };
        let images = Images { shape, pixels: vec![0, 100, 7, 2, 100, 7, 4, 100, 7, 6, 100, 7] };
        assert_eq!(images.reduced(1).pixels, [3, 100, 7]);
    }
}
