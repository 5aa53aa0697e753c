//! What turns a small picture into the low frequencies of a part of it: cutting, shrinking and the cosine transform are
//! linear along each side, so one matrix does all three.

use std::f64::consts::PI;

/// The side of the picture that a part is shrunk to before its frequencies are taken.
pub const GRID: usize = 32;

/// Frequencies that are kept along each side.
pub const LOW: usize = 16;

/// `[length, LOW]`: row `x` holds what the pixel at `x` adds to each frequency.
pub type Basis = Vec<[f32; LOW]>;

/// For a side of `length` pixels, of which the parts `before` and `after` are cut off.
pub fn basis(length: usize, before: f64, after: f64) -> Basis {
    let cosines = cosines();
    let mut basis = vec![[0.0; LOW]; length];
    for (place, cosine) in cosines.iter().enumerate() {
        for (pixel, weight) in weights(length, before, after, place) {
            for (sum, value) in basis[pixel].iter_mut().zip(cosine) {
                *sum += (weight * value) as f32;
            }
        }
    }
    basis
}

/// The orthonormal cosine transform (DCT-II) of `GRID` values: row `place` holds its share in each frequency.
fn cosines() -> Vec<[f64; LOW]> {
    let row = |place: usize| {
        std::array::from_fn(|frequency| {
            let scale = if frequency == 0 { 1.0 } else { 2.0 } / GRID as f64;
            let angle = PI * (place as f64 + 0.5) * frequency as f64 / GRID as f64;
            scale.sqrt() * angle.cos()
        })
    };
    (0..GRID).map(row).collect()
}

/// The pixels that place `place` of the shrunk side is made of, with their weights: the antialiased triangle filter that
/// images are resized with everywhere here (and by Pillow), on a part of the side.
fn weights(length: usize, before: f64, after: f64, place: usize) -> Vec<(usize, f64)> {
    let scale = length as f64 * (1.0 - before - after) / GRID as f64;
    let reach = scale.max(1.0);
    let centre = length as f64 * before + (place as f64 + 0.5) * scale;
    let first = (centre - reach + 0.5).max(0.0) as usize;
    let last = ((centre + reach + 0.5) as usize).min(length);
    let weight = |pixel: usize| (1.0 - ((pixel as f64 + 0.5 - centre) / reach).abs()).max(0.0);
    let sum: f64 = (first..last).map(weight).sum();
    (first..last).map(|pixel| (pixel, weight(pixel) / sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_of_the_grid_is_taken_as_it_is() {
        for place in 0..GRID {
            let whole: Vec<_> = weights(GRID, 0.0, 0.0, place).into_iter().filter(|(_, w)| *w > 0.0).collect();
            assert_eq!(whole, [(place, 1.0)]);
        }
    }

    #[test]
    fn what_is_cut_off_has_no_weight() {
        let basis = basis(64, 0.25, 0.0);
        // The filter reaches one shrunk pixel beyond the cut.
        assert!(basis[..14].iter().flatten().all(|weight| *weight == 0.0));
        assert!(basis[17..].iter().all(|row| row[0] > 0.0));
    }
}
