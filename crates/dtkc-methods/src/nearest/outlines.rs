//! Images as their outlines: how strong edges of each direction are in each part of an image.
//!
//! Two images of one class are rarely dark in the same pixels, but their edges run in the same directions at about the same
//! places. Five nearest neighbours have the same label more often by outlines than by pixels (REPRODUCING.md). An edge from
//! dark to light counts as one from light to dark, so that an inverted image keeps its outlines.

use std::f32::consts::PI;
use std::ops::Range;

use dtkc_core::scale_pixels_into;
use dtkc_item::ImageShape;
use dtkc_ops::for_each;

use super::neighbours::Rows;

/// Parts of an image along each side.
const PARTS: usize = 8;
/// Directions of edges, over half a turn.
const DIRECTIONS: usize = 8;
/// Values of an image.
pub(crate) const WIDTH: usize = PARTS * PARTS * DIRECTIONS;
/// Share of the mean energy of all parts that is added to that of each one: an empty part must not make much of little.
const FLOOR: f32 = 0.1;
/// Images that one thread takes at a time.
const TOGETHER: usize = 64;

/// The outlines of all images of a set, `[n, WIDTH]`, each of length 1; all zero for an image without edges.
pub(crate) struct Outlines(Vec<f32>);

impl Outlines {
    /// Of images of this shape, row-major and channels-last.
    pub(crate) fn of(pixels: &[u8], shape: ImageShape) -> Self {
        let size = shape.len();
        let mut values = vec![0.0; pixels.len() / size * WIDTH];
        for_each(pixels.chunks(TOGETHER * size).zip(values.chunks_mut(TOGETHER * WIDTH)), |(pixels, values)| {
            let mut image = vec![0.0; size];
            for (pixels, values) in pixels.chunks_exact(size).zip(values.chunks_exact_mut(WIDTH)) {
                scale_pixels_into(pixels, shape, &mut image);
                sum_edges(&image, shape, values);
                even_out(values);
            }
        });
        Self(values)
    }

    /// The rows, one after the other.
    pub(crate) fn into_values(self) -> Vec<f32> {
        self.0
    }
}

impl Rows for Outlines {
    fn len(&self) -> usize {
        self.0.len() / WIDTH
    }

    fn width(&self) -> usize {
        WIDTH
    }

    fn read(&self, range: Range<usize>, to: &mut [f32]) {
        to.copy_from_slice(&self.0[range.start * WIDTH..range.end * WIDTH]);
    }
}

/// Adds the strength of every pixel's edge to the two nearest directions and the four nearest parts, by how near they are.
fn sum_edges(image: &[f32], shape: ImageShape, values: &mut [f32]) {
    let ImageShape { height, width, .. } = shape;
    let (columns, rows) = (shares(width), shares(height));
    for (y, rows) in rows.iter().enumerate() {
        for (x, columns) in columns.iter().enumerate() {
            let (dx, dy) = edge(image, shape, x, y);
            let strength = dx.hypot(dy);
            if strength == 0.0 {
                continue;
            }
            let turn = dy.atan2(dx).rem_euclid(PI) / PI * DIRECTIONS as f32;
            let (first, part) = (turn as usize % DIRECTIONS, turn.fract());
            for &(row, by_row) in rows {
                for &(column, by_column) in columns {
                    let cell = &mut values[(row * PARTS + column) * DIRECTIONS..][..DIRECTIONS];
                    let strength = strength * by_row * by_column;
                    cell[first] += strength * (1.0 - part);
                    cell[(first + 1) % DIRECTIONS] += strength * part;
                }
            }
        }
    }
}

/// The change of brightness at a pixel, in the channel in which it is largest.
fn edge(image: &[f32], shape: ImageShape, x: usize, y: usize) -> (f32, f32) {
    let ImageShape { height, width, channels } = shape;
    let at = |x: usize, y: usize, channel: usize| image[(y * width + x) * channels + channel];
    let (left, right) = (x.saturating_sub(1), (x + 1).min(width - 1));
    let (above, below) = (y.saturating_sub(1), (y + 1).min(height - 1));
    let change = |c: usize| (at(right, y, c) - at(left, y, c), at(x, below, c) - at(x, above, c));
    (0..channels).map(change).fold(
        (0.0, 0.0),
        |best: (f32, f32), next| {
            if next.0.hypot(next.1) > best.0.hypot(best.1) { next } else { best }
        },
    )
}

/// For every pixel along a side, the two parts whose middles are nearest, with weights that fall linearly with the distance;
/// beyond the outermost middles there is only one part, and what is missing is lost.
fn shares(side: usize) -> Vec<Vec<(usize, f32)>> {
    let share = |pixel: usize| {
        let place = (pixel as f32 + 0.5) * PARTS as f32 / side as f32 - 0.5;
        let (low, part) = (place.floor(), place - place.floor());
        let both = [(low, 1.0 - part), (low + 1.0, part)];
        let inside = |&(part, weight): &(f32, f32)| (0.0..PARTS as f32).contains(&part) && weight > 0.0;
        both.into_iter().filter(inside).map(|(part, weight)| (part as usize, weight)).collect()
    };
    (0..side).map(share).collect()
}

/// Brings every part to about the same length, takes roots, so that a strong edge does not drown the others, and brings all
/// of it to the length 1.
fn even_out(values: &mut [f32]) {
    let energy = |part: &[f32]| part.iter().map(|v| v * v).sum::<f32>();
    let mean = energy(values) / (PARTS * PARTS) as f32;
    if mean <= 0.0 {
        return;
    }
    for part in values.chunks_exact_mut(DIRECTIONS) {
        let length = (energy(part) + FLOOR * mean).sqrt();
        part.iter_mut().for_each(|value| *value = (*value / length).sqrt());
    }
    let length = energy(values).sqrt();
    values.iter_mut().for_each(|value| *value /= length);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: ImageShape = ImageShape { height: 16, width: 12, channels: 2 };

    #[rustfmt::skip]
    const GOLDEN: [(usize, f32); 14] = [
        (0, 0.0193456), (37, 0.02738995), (74, 0.01584667), (111, 0.03595139),
        (148, 0.04365092), (185, 0.0), (222, 0.07077305), (259, 0.07026049),
        (296, 0.01371928), (333, 0.06432716), (370, 0.04910921), (407, 0.04074328),
        (444, 0.04941657), (481, 0.06196798),
    ];

    fn image(invert: bool) -> Vec<u8> {
        let value = |at: usize| (at * at * 7 + at * 13) % 251;
        (0..SHAPE.len()).map(|at| value(at) as u8).map(|v| if invert { 250 - v } else { v }).collect()
    }

    #[test]
    fn values_are_those_of_numpy() {
        // scripts/golden/outlines_golden.py
        let found = Outlines::of(&image(false), SHAPE).0;
        for (at, expected) in GOLDEN {
            assert!((found[at] - expected).abs() < 2e-5, "{at}: {} {expected}", found[at]);
        }
        assert!((found.iter().map(|v| v * v).sum::<f32>() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn an_inverted_image_keeps_its_outlines_and_an_empty_one_has_none() {
        let [plain, inverted] = [false, true].map(|invert| Outlines::of(&image(invert), SHAPE).0);
        assert!(plain.iter().zip(&inverted).all(|(a, b)| (a - b).abs() < 1e-4));
        assert!(Outlines::of(&vec![9; SHAPE.len()], SHAPE).0.iter().all(|&value| value == 0.0));
    }

    #[test]
    fn images_smaller_than_the_parts_have_outlines_too() {
        let shape = ImageShape { height: 3, width: 1, channels: 1 };
        let found = Outlines::of(&[0, 0, 255, 1, 2, 3], shape);
        assert_eq!(found.len(), 2);
        assert!(found.0.iter().all(|value| value.is_finite()) && found.0.iter().any(|&value| value > 0.0));
    }
}
