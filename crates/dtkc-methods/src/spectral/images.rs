//! All images of a set as rows: kept as bytes, scaled when they are looked at.

use std::ops::Range;

use dtkc_core::scale_pixels_into;
use dtkc_item::{Batch, ImageShape};

use super::neighbours::Rows;
use crate::LearnError;
use crate::learner::Passes;
use crate::places::Pass;

/// Most images: every pair is looked at, and twice as many take four times as long.
pub const MOST_IMAGES: usize = 500_000;
/// Products of two numbers that two cores make in a second, with room to spare.
const PRODUCTS_PER_SECOND: f64 = 5e10;
/// Seconds that are worth a word before they begin.
const LONG: f64 = 20.0;

/// Images in the order of their set.
pub(super) struct Images {
    shape: ImageShape,
    pixels: Vec<u8>,
}

impl Images {
    /// Reads all of them, and says how long it will take to compare them.
    pub(super) fn read(data: &mut dyn Passes, shape: ImageShape) -> Result<Self, LearnError> {
        let (n, size) = (data.len(), shape.len());
        let seconds = (n as f64).powi(2) * size as f64 / PRODUCTS_PER_SECOND;
        if n > MOST_IMAGES {
            return Err(LearnError::Unsuitable(format!(
                "spectral clustering compares every pair of images, and {n} would take about {} on two cores: use at most \
                 {MOST_IMAGES} (`dtkc-data subset`), or --method kmeans, dec or dtkc",
                duration(seconds)
            )));
        }
        if seconds > LONG {
            data.say(&format!("comparing every pair of {n} images takes about {} on two cores", duration(seconds)));
        }
        let mut pixels = vec![0; n * size];
        for batch in data.batches(Pass::Everything) {
            let Batch { indices, items } = batch?;
            for (index, image) in indices.into_iter().zip(items.pixels().unwrap_or_default().chunks_exact(size)) {
                pixels[index * size..][..size].copy_from_slice(image);
            }
        }
        Ok(Self { shape, pixels })
    }
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

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} hours", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_readable() {
        let found = [56.4, 600.0, 7200.0, 400_000.0].map(duration);
        assert_eq!(found, ["56 seconds", "10 minutes", "2 hours", "5 days"]);
    }
}
