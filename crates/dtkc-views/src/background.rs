//! What lies outside of an image: found from its border.

use crate::config::Fill;
use dtkc_item::ImageShape;

/// How far apart the values of a background may lie, of the image's own range.
const SPREAD: f32 = 0.1;

/// What a place outside of the image reads.
pub(crate) enum Outside {
    /// One value for each channel.
    Value(Vec<f32>),
    /// The nearest pixel.
    Edge,
    /// The image mirrored at its border.
    Reflect,
}

impl Outside {
    /// What `fill` means for this image.
    pub(crate) fn of(fill: Fill, image: &[f32], size: ImageShape) -> Outside {
        match fill {
            Fill::Zero => Outside::Value(vec![0.0; size.channels]),
            Fill::Edge => Outside::Edge,
            Fill::Reflect => Outside::Reflect,
            Fill::Auto => background(image, size).map_or(Outside::Reflect, Outside::Value),
        }
    }
}

/// The value that half of the border shares, for each channel, if there is one.
fn background(image: &[f32], size: ImageShape) -> Option<Vec<f32>> {
    let mut ring = Vec::with_capacity(2 * (size.height + size.width));
    (0..size.channels).map(|channel| shared(border(image, size, channel, &mut ring))).collect()
}

/// One channel of the border's pixels, each once.
fn border<'a>(image: &[f32], size: ImageShape, channel: usize, ring: &'a mut Vec<f32>) -> &'a mut [f32] {
    let (row, last) = (size.width * size.channels, size.width - 1);
    ring.clear();
    for (y, pixels) in image.chunks_exact(row).enumerate() {
        let step = if y == 0 || y + 1 == size.height { 1 } else { last.max(1) };
        ring.extend(pixels.iter().skip(channel).step_by(step * size.channels));
    }
    ring
}

/// The middle of the shortest stretch that holds half of the values, unless that is too long.
///
/// Half is enough: strokes of a large digit cross a third of its border. And the shortest half, unlike the median of
/// all, does not move towards the ink then, so that black stays exactly black.
fn shared(values: &mut [f32]) -> Option<f32> {
    let half = values.len().div_ceil(2);
    values.sort_unstable_by(f32::total_cmp);
    let length = |stretch: &[f32]| stretch[half - 1] - stretch[0];
    let shortest = values.windows(half).min_by(|a, b| length(a).total_cmp(&length(b)))?;
    (length(shortest) <= SPREAD).then(|| shortest[(half - 1) / 2])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(image: &[f32], height: usize, width: usize, channels: usize) -> Option<Vec<f32>> {
        background(image, ImageShape { height, width, channels })
    }

    #[test]
    fn the_border_has_each_pixel_once() {
        for (height, width) in [(1, 1), (1, 4), (4, 1), (2, 2), (2, 5), (5, 2), (3, 3), (4, 6)] {
            let size = ImageShape { height, width, channels: 2 };
            let image: Vec<f32> = (0..size.len()).map(|i| i as f32).collect();
            let outer = |at: &usize| {
                let (x, y) = (at / 2 % width, at / 2 / width);
                x == 0 || y == 0 || x + 1 == width || y + 1 == height
            };
            for channel in 0..2 {
                let expected: Vec<f32> =
                    (0..size.len()).filter(|i| i % 2 == channel).filter(outer).map(|i| i as f32).collect();
                assert_eq!(border(&image, size, channel, &mut Vec::new()), expected, "{height}x{width}");
            }
        }
    }

    #[test]
    fn ink_on_less_than_half_of_the_border_does_not_move_the_background() {
        // By hand: the half of ten values is five.
        assert_eq!(shared(&mut [0.0, 1.0, 0.0, 0.9, 0.0, 0.8, 0.0, 0.7, 0.05, 0.6]), Some(0.0));
        assert_eq!(shared(&mut [1.0, 0.2, 0.98, 0.5, 0.97, 0.1, 0.99]), Some(0.98));
        assert_eq!(shared(&mut [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), None);
        assert_eq!(shared(&mut [0.3]), Some(0.3));
    }

    #[test]
    fn every_channel_must_have_a_background() {
        let red = |green: fn(usize) -> f32| -> Vec<f32> { (0..36).flat_map(|i| [0.9, green(i)]).collect() };
        assert_eq!(of(&red(|_| 0.2), 6, 6, 2), Some(vec![0.9, 0.2]));
        assert_eq!(of(&red(|i| i as f32 / 35.0), 6, 6, 2), None);
    }
}
