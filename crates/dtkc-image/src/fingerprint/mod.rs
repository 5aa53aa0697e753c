//! What an image looks like, in few bytes: copies that differ in size, compression, brightness or small cuts at the edges
//! have nearly the same bits.
//!
//! A perceptual hash as is common (pHash: the signs of low frequencies of a small gray picture, against their median),
//! with two changes. It is taken of the whole image and of seven parts of it, so that the whole of a cut copy meets the
//! same part of its original. And a frequency must exceed the median by [`QUIET`]: what is next to nothing is noise, and
//! its sign would be another in every copy.

mod basis;

use dtkc_item::{Color, ImageSpec, ItemError, Resize};

use self::basis::{Basis, LOW, basis};
use crate::color::rgb_to_gray;
use crate::fit::{Fitter, Picture};

/// The side of the small gray picture. The image is squeezed into it, whatever the model's rule of resizing is.
const SIDE: usize = 64;

/// How much of each side a view leaves out: left, top, right, bottom.
const CUTS: [[f64; 4]; VIEWS] = [
    [0.0; 4],
    [0.03; 4],
    [0.06; 4],
    [0.09; 4],
    [0.06, 0.0, 0.0, 0.0],
    [0.0, 0.06, 0.0, 0.0],
    [0.0, 0.0, 0.06, 0.0],
    [0.0, 0.0, 0.0, 0.06],
];

/// What a frequency must exceed the median by, in the units of an orthonormal transform of gray values from 0 to 255.
const QUIET: f32 = 2.0;

/// Gray values deviate less than this from their mean where nothing is to be seen.
const FLAT: f64 = 2.0;

/// Parts of an image that are hashed: the first is the whole.
pub const VIEWS: usize = 8;

/// The signs of 16 x 16 frequencies. The first word holds the lowest 8 x 8, which change least.
pub type Hash = [u64; 4];

/// What an image looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Pixels per row, upright.
    pub width: u32,
    /// Rows, upright.
    pub height: u32,
    /// Bytes of the encoded image; 0 where it was not encoded.
    pub bytes: u64,
    /// The mean gray value.
    pub mean: u8,
    /// Whether there is nothing to be seen; the hashes are zero then.
    pub flat: bool,
    /// The hashes of the whole image and of parts of it.
    pub views: [Hash; VIEWS],
}

/// Takes fingerprints. Owns its tables and buffers: keep one per thread.
#[derive(Debug)]
pub struct Fingerprinter {
    /// The tables of the parts that occur along a side.
    bases: Vec<([f64; 2], Basis)>,
    small: Vec<u8>,
    gray: Vec<u8>,
}

impl Default for Fingerprinter {
    fn default() -> Self {
        let mut bases: Vec<([f64; 2], Basis)> = Vec::new();
        for [left, top, right, bottom] in CUTS {
            for cut in [[left, right], [top, bottom]] {
                if bases.iter().all(|(known, _)| *known != cut) {
                    bases.push((cut, basis(SIDE, cut[0], cut[1])));
                }
            }
        }
        Self { bases, small: Vec::new(), gray: Vec::new() }
    }
}

impl Fingerprinter {
    /// What a picture of that colour is brought to first.
    pub(crate) fn spec(color: Color) -> ImageSpec {
        ImageSpec { height: SIDE, width: SIDE, color, resize: Resize::Stretch }
    }

    /// The fingerprint of a picture, which took so many bytes.
    pub(crate) fn of(
        &mut self,
        picture: &Picture<'_>,
        bytes: u64,
        fitter: &mut Fitter,
    ) -> Result<Fingerprint, ItemError> {
        let spec = Self::spec(picture.color);
        self.small.resize(spec.bytes(), 0);
        fitter.fit(picture, &spec, &mut self.small)?;
        if picture.color == Color::Rgb {
            rgb_to_gray(&self.small, &mut self.gray);
        } else {
            self.gray.clone_from(&self.small);
        }
        let (height, width) = picture.upright();
        let (mean, deviation) = moments(&self.gray);
        let flat = deviation < FLAT;
        let views = if flat { [[0; 4]; VIEWS] } else { self.views() };
        Ok(Fingerprint { width: width as u32, height: height as u32, bytes, mean: mean.round() as u8, flat, views })
    }

    fn views(&self) -> [Hash; VIEWS] {
        let rows: Vec<Vec<[f32; LOW]>> = self.bases.iter().map(|(_, basis)| along_rows(&self.gray, basis)).collect();
        let place = |cut: [f64; 2]| self.bases.iter().position(|(known, _)| *known == cut).unwrap_or(0);
        CUTS.map(|[left, top, right, bottom]| {
            let columns = &self.bases[place([top, bottom])].1;
            bits(&along_columns(&rows[place([left, right])], columns), QUIET)
        })
    }
}

/// Mean and standard deviation.
fn moments(gray: &[u8]) -> (f64, f64) {
    let (sum, squares) = gray.iter().fold((0u64, 0u64), |(sum, squares), &v| {
        let v = u64::from(v);
        (sum + v, squares + v * v)
    });
    let n = gray.len().max(1) as f64;
    let mean = sum as f64 / n;
    (mean, (squares as f64 / n - mean * mean).max(0.0).sqrt())
}

/// The frequencies of every row of a square picture.
fn along_rows(gray: &[u8], basis: &Basis) -> Vec<[f32; LOW]> {
    let row = |pixels: &[u8]| {
        let mut sums = [0.0; LOW];
        for (&pixel, weights) in pixels.iter().zip(basis) {
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += f32::from(pixel) * weight;
            }
        }
        sums
    };
    gray.chunks_exact(basis.len()).map(row).collect()
}

/// Those of the columns of that: `[vertical][horizontal]`.
fn along_columns(rows: &[[f32; LOW]], basis: &Basis) -> [[f32; LOW]; LOW] {
    let mut sums = [[0.0; LOW]; LOW];
    for (row, weights) in rows.iter().zip(basis) {
        for (sums, weight) in sums.iter_mut().zip(weights) {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value * weight;
            }
        }
    }
    sums
}

/// Which frequencies exceed the median by more than `quiet`. The lowest 8 x 8 come first, row by row, then the rest.
fn bits(frequencies: &[[f32; LOW]; LOW], quiet: f32) -> Hash {
    let mut sorted = *frequencies.as_flattened().as_array::<{ LOW * LOW }>().unwrap_or(&[0.0; LOW * LOW]);
    sorted.sort_unstable_by(f32::total_cmp);
    let limit = f32::midpoint(sorted[LOW * LOW / 2 - 1], sorted[LOW * LOW / 2]) + quiet;
    let (mut hash, mut low, mut high) = ([0u64; 4], 0, 64);
    for (v, row) in frequencies.iter().enumerate() {
        for (u, value) in row.iter().enumerate() {
            let place = if v < 8 && u < 8 { &mut low } else { &mut high };
            hash[*place / 64] |= u64::from(*value > limit) << (*place % 64);
            *place += 1;
        }
    }
    hash
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
