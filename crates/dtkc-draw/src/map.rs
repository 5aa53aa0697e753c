//! Time to the right, dimensions upwards, values as colours.

use super::Scales;
use super::tile::{Rgb, Tile};

/// From dark to bright, evenly to the eye (points of matplotlib's viridis).
const COLORS: [Rgb; 9] = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];

/// Draws one sequence. A colour is the rank of a value among those of its dimension: whatever the values are like, all
/// colours are used, and no dimension outshines the others.
pub fn draw(tile: &mut Tile, values: &[f32], dim: usize, (height, width): (usize, usize), scales: &Scales) {
    let steps = values.len() / dim;
    let across = scales.steps.unwrap_or(steps).max(1);
    for x in 0..width {
        let (from, to) = cut(x, width, across);
        if from >= steps {
            break;
        }
        let block = &values[from * dim..to.min(steps) * dim];
        for y in 0..height {
            let places = cut(height - 1 - y, height, dim);
            if let Some(value) = mean(block, dim, places) {
                let sample = &scales.samples[(places.0 + places.1.min(dim)) / 2];
                tile.set(x, y, color(rank(sample, value)));
            }
        }
    }
}

/// The part of `count` things that pixel `at` of `pixels` shows: at least one.
fn cut(at: usize, pixels: usize, count: usize) -> (usize, usize) {
    let from = at * count / pixels;
    (from, ((at + 1) * count / pixels).max(from + 1))
}

fn mean(block: &[f32], dim: usize, (from, to): (usize, usize)) -> Option<f32> {
    let mut found = (0f64, 0u32);
    for step in block.chunks_exact(dim) {
        for value in step[from..to.min(dim)].iter().filter(|value| value.is_finite()) {
            found = (found.0 + f64::from(*value), found.1 + 1);
        }
    }
    (found.1 > 0).then(|| (found.0 / f64::from(found.1)) as f32)
}

/// The share of values that are less, those that are equal counted half.
fn rank(sample: &[f32], value: f32) -> f32 {
    let less = sample.partition_point(|&other| other < value);
    let not_more = sample.partition_point(|&other| other <= value);
    (less + not_more) as f32 / (2 * sample.len()).max(1) as f32
}

fn color(share: f32) -> Rgb {
    let place = share.clamp(0.0, 1.0) * (COLORS.len() - 1) as f32;
    let (low, high) = (COLORS[place as usize], COLORS[(place as usize + 1).min(COLORS.len() - 1)]);
    let part = place.fract();
    std::array::from_fn(|i| (f32::from(low[i]) * (1.0 - part) + f32::from(high[i]) * part).round() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_shows_something_and_everything_is_shown() {
        for (pixels, count) in [(5, 3), (3, 5), (4, 4), (7, 1)] {
            let mut next = 0;
            for at in 0..pixels {
                let (from, to) = cut(at, pixels, count);
                assert!(from <= next && to > from && to <= count, "{pixels} {count} {at}");
                next = to;
            }
            assert_eq!(next, count);
        }
    }

    #[test]
    fn colours_are_ranks() {
        let sample = [1.0, 2.0, 2.0, 100.0];
        assert_eq!((rank(&sample, 0.0), rank(&sample, 2.0), rank(&sample, 1e9)), (0.0, 0.5, 1.0));
        assert_eq!((color(0.0), color(1.0), rank(&[], 1.0)), (COLORS[0], COLORS[8], 0.0));
    }
}
