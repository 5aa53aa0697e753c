//! A few long vectors side by side, in double precision; sums in a fixed order for any number of threads.

use dtkc_ops::for_each;

use crate::random::Random;
use crate::symmetric::eigen;

/// Rows of a part of a sum.
const PART: usize = 2048;
/// A direction whose share of the longest is smaller is rounding.
const LEAST: f64 = 1e-13;

/// `[n, width]`, row-major: a row per item, a vector per column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    width: usize,
    values: Vec<f64>,
}

impl Block {
    pub(super) fn zero(n: usize, width: usize) -> Self {
        Self { width, values: vec![0.0; n * width] }
    }

    pub(super) fn random(n: usize, width: usize, random: &mut Random) -> Self {
        Self { width, values: (0..n * width).map(|_| random.unit() - 0.5).collect() }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn row(&self, item: usize) -> &[f64] {
        &self.values[item * self.width..][..self.width]
    }

    /// Parts of `rows` rows with the number of their first.
    pub(super) fn parts_mut(&mut self, rows: usize) -> impl Iterator<Item = (usize, &mut [f64])> + Send {
        self.values.chunks_mut(rows * self.width).enumerate().map(move |(part, values)| (part * rows, values))
    }

    /// Products of its vectors with those of another, `[width, width]`.
    pub(super) fn products(&self, other: &Self) -> Vec<f64> {
        let width = self.width;
        let size = PART * width;
        let mut parts = vec![vec![0.0; width * width]; self.values.len().div_ceil(size)];
        let work = parts.iter_mut().zip(self.values.chunks(size).zip(other.values.chunks(size)));
        for_each(work, |(sums, (a, b))| {
            for (a, b) in a.chunks_exact(width).zip(b.chunks_exact(width)) {
                for (sums, a) in sums.chunks_exact_mut(width).zip(a) {
                    sums.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
                }
            }
        });
        let mut all = vec![0.0; width * width];
        parts.iter().for_each(|part| all.iter_mut().zip(part).for_each(|(sum, value)| *sum += value));
        // The products of a symmetric matrix are symmetric but for rounding.
        for i in 0..width {
            for j in 0..i {
                let mean = (all[i * width + j] + all[j * width + i]) / 2.0;
                (all[i * width + j], all[j * width + i]) = (mean, mean);
            }
        }
        all
    }

    /// Combinations of its vectors, one per row of `rows`, `[width, width]`.
    pub(super) fn combined(&self, rows: &[f64]) -> Self {
        let width = self.width;
        let mut out = Self::zero(self.values.len() / width.max(1), width);
        let work = out.values.chunks_mut(PART * width).zip(self.values.chunks(PART * width));
        for_each(work, |(to, from)| {
            for (to, from) in to.chunks_exact_mut(width).zip(from.chunks_exact(width)) {
                for (to, row) in to.iter_mut().zip(rows.chunks_exact(width)) {
                    *to = row.iter().zip(from).map(|(a, b)| a * b).sum();
                }
            }
        });
        out
    }

    /// Makes its vectors orthonormal (by the eigenvectors of their products, which lacking directions do not disturb);
    /// directions that it lacks become random ones.
    pub(super) fn orthonormalise(&mut self, random: &mut Random) {
        // The first round leaves the error of the products, the second corrects it; the third is for random directions.
        for _ in 0..3 {
            self.scale_columns();
            let width = self.width;
            let found = eigen(self.products(self), width);
            let largest = found.values.first().copied().unwrap_or(0.0);
            let mut rows = found.vectors;
            let mut lacking = Vec::new();
            for (j, (row, &value)) in rows.chunks_exact_mut(width).zip(&found.values).enumerate() {
                match value > largest * LEAST {
                    true => row.iter_mut().for_each(|entry| *entry /= value.sqrt()),
                    false => lacking.push(j),
                }
            }
            *self = self.combined(&rows);
            for row in self.values.chunks_exact_mut(width) {
                lacking.iter().for_each(|&j| row[j] = random.unit() - 0.5);
            }
        }
    }

    /// Gives every vector the length 1: a filter makes them differ by many powers of ten.
    fn scale_columns(&mut self) {
        let lengths: Vec<f64> = (0..self.width)
            .map(|j| self.values.iter().skip(j).step_by(self.width).map(|v| v * v).sum::<f64>().sqrt())
            .collect();
        for row in self.values.chunks_exact_mut(self.width) {
            row.iter_mut().zip(&lengths).filter(|(_, l)| **l > 0.0).for_each(|(value, length)| *value /= length);
        }
    }

    /// How far this, the image of `block`, is from `value` times it, for one vector.
    pub(super) fn residual(&self, block: &Self, value: f64, column: usize) -> f64 {
        let pairs = self.values.iter().zip(&block.values).skip(column).step_by(self.width);
        pairs.map(|(image, vector)| (image - value * vector).powi(2)).sum::<f64>().sqrt()
    }

    /// Its first vectors, `[n, count]`.
    pub(super) fn columns(&self, count: usize) -> Vec<f64> {
        self.values.chunks_exact(self.width).flat_map(|row| &row[..count]).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_become_orthonormal_even_if_some_are_equal_or_tiny() {
        let mut random = Random::new(1, b"test....", 0);
        let mut block = Block::random(5000, 6, &mut random);
        for row in block.values.chunks_exact_mut(6) {
            row[3] = row[1];
            row[4] = row[0] + 1e-9 * row[4];
            row[5] *= 1e-200;
        }
        block.orthonormalise(&mut random);
        let products = block.products(&block);
        for (at, product) in products.iter().enumerate() {
            let expected = f64::from(u8::from(at / 6 == at % 6));
            assert!((product - expected).abs() < 1e-12, "{products:?}");
        }
    }
}
