//! Rows of numbers against rows of numbers: products, nearest rows, sums. On plain slices and one thread: whoever calls
//! shares the points out, with [`for_each`](crate::for_each) and a split that does not depend on the number of threads.

use crate::cpu::isa::Isa;
use crate::cpu::projector::{Product, product};
use crate::cpu::rows::{Additions, Distances, add, distances};
use crate::scratch;

/// Values of points that are worked on together: they stay in the second-level cache.
const BLOCK: usize = 1 << 16;

/// Rows that many points are multiplied with, put in order for that once.
#[derive(Debug, Clone)]
pub struct Panel {
    isa: Isa,
    width: usize,
    len: usize,
    packed: Vec<f32>,
}

impl Panel {
    /// # Shapes
    /// `rows`: `[len, width]`, row-major.
    ///
    /// # Panics
    /// Panics when `width` is 0 or `rows` holds no whole number of rows.
    pub fn new(rows: &[f32], width: usize) -> Self {
        assert!(width > 0 && rows.len().is_multiple_of(width), "{} values in rows of {width}", rows.len());
        let (isa, len) = (Isa::detect(), rows.len() / width);
        let (lanes, columns) = (isa.lanes(), isa.padded(len));
        let mut packed = vec![0.0; width * columns];
        for (block, rows) in packed.chunks_exact_mut(width * lanes).zip(rows.chunks(width * lanes)) {
            for (lane, row) in rows.chunks_exact(width).enumerate() {
                block.iter_mut().skip(lane).step_by(lanes).zip(row).for_each(|(to, from)| *to = *from);
            }
        }
        Self { isa, width, len, packed }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Products per point: the number of rows and a few zeros.
    pub fn columns(&self) -> usize {
        self.isa.padded(self.len)
    }

    /// The inner product of every point with every row.
    ///
    /// # Shapes
    /// `points`: `[n, width]`; `out`: `[n, columns]`, overwritten.
    ///
    /// # Panics
    /// Panics when `out` has another length.
    pub fn products(&self, points: &[f32], out: &mut [f32]) {
        let (width, columns) = (self.width, self.columns());
        assert_eq!(out.len(), points.len() / width * columns, "products of {} values", points.len());
        if out.is_empty() {
            return;
        }
        let job = Product { a: points, a_stride: width, depth: width, b: &self.packed, out, columns };
        product(self.isa, job);
    }
}

/// Rows of which the nearest to each point is wanted.
#[derive(Debug, Clone)]
pub struct Centres {
    values: Vec<f32>,
    /// Half the squared length of each: the nearest has the largest product less this.
    halves: Vec<f32>,
    panel: Panel,
}

impl Centres {
    /// # Shapes
    /// `values`: `[k, width]`, row-major.
    ///
    /// # Panics
    /// Panics when `width` is 0 or there is no whole row.
    pub fn new(values: &[f32], width: usize) -> Self {
        assert!(!values.is_empty(), "no centres");
        let half = |row: &[f32]| (row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() / 2.0) as f32;
        let panel = Panel::new(values, width);
        Self { values: values.to_vec(), halves: values.chunks_exact(width).map(half).collect(), panel }
    }

    /// The nearest centre of every point (the first of several), and the square of the distance to it.
    ///
    /// Which one is nearest comes from products, in single precision; the distance to it from the differences.
    ///
    /// # Shapes
    /// `points`: `[n, width]`; `labels` and `squares`: `[n]`, overwritten.
    pub fn nearest(&self, points: &[f32], labels: &mut [u32], squares: &mut [f32]) {
        let (width, columns) = (self.panel.width, self.panel.columns());
        let rows = block_rows(width);
        scratch::with(rows * columns, |scores| {
            let parts = points.chunks(rows * width).zip(labels.chunks_mut(rows).zip(squares.chunks_mut(rows)));
            for (points, (labels, squares)) in parts {
                let scores = &mut scores[..labels.len() * columns];
                self.panel.products(points, scores);
                for (label, scores) in labels.iter_mut().zip(scores.chunks_exact(columns)) {
                    *label = self.best(scores);
                }
                let job = Distances { points, width, rows: &self.values, labels, squares };
                distances(self.panel.isa, job);
            }
        });
    }

    fn best(&self, scores: &[f32]) -> u32 {
        let mut best = (f32::NEG_INFINITY, 0);
        for (row, (score, half)) in scores.iter().zip(&self.halves).enumerate() {
            let score = score - half;
            if score > best.0 {
                best = (score, row as u32);
            }
        }
        best.1
    }
}

/// Points that are best worked on together, so that what follows finds them in the cache.
pub fn block_rows(width: usize) -> usize {
    (BLOCK / width.max(1)).clamp(12, 1024)
}

/// Adds every point to the sum of its label, in the order of the points.
///
/// # Shapes
/// `points`: `[n, width]`; `labels`: `[n]`; `sums`: `[k, width]`.
pub fn add_rows(points: &[f32], width: usize, labels: &[u32], sums: &mut [f64]) {
    add(Isa::detect(), Additions { points, width, labels, sums });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..count).map(|_| next()).collect()
    }

    fn square(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for (n, len, width) in [(1, 1, 1), (7, 3, 5), (13, 17, 33), (50, 40, 300)] {
            let (points, rows) = (numbers(n * width, 1), numbers(len * width, 2));
            let panel = Panel::new(&rows, width);
            let mut out = vec![f32::NAN; n * panel.columns()];
            panel.products(&points, &mut out);
            for (point, out) in points.chunks_exact(width).zip(out.chunks_exact(panel.columns())) {
                for (row, found) in rows.chunks_exact(width).zip(out) {
                    let expected: f64 = point.iter().zip(row).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                    assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} {expected}");
                }
                assert!(out[len..].iter().all(|zero| *zero == 0.0));
            }
        }
    }

    #[test]
    fn the_nearest_is_found_and_measured() {
        for (n, k, width) in [(5, 1, 1), (40, 7, 3), (300, 10, 784), (20, 65, 40)] {
            let (points, rows) = (numbers(n * width, 3), numbers(k * width, 4));
            let (mut labels, mut squares) = (vec![u32::MAX; n], vec![f32::NAN; n]);
            Centres::new(&rows, width).nearest(&points, &mut labels, &mut squares);
            for (i, point) in points.chunks_exact(width).enumerate() {
                let all: Vec<f64> = rows.chunks_exact(width).map(|row| square(point, row)).collect();
                let least = all.iter().copied().fold(f64::INFINITY, f64::min);
                assert!(all[labels[i] as usize] < least + 1e-4, "point {i}");
                assert!((f64::from(squares[i]) - all[labels[i] as usize]).abs() < 1e-5 * (1.0 + least));
            }
        }
    }

    #[test]
    fn of_equal_centres_the_first_is_taken() {
        let (mut labels, mut squares) = ([9; 2], [9.0; 2]);
        Centres::new(&[1.0, 2.0, 1.0, 2.0], 2).nearest(&[1.0, 2.0, 0.0, 0.0], &mut labels, &mut squares);
        assert_eq!((labels, squares), ([0, 0], [0.0, 5.0]));
    }

    #[test]
    fn points_are_added_to_their_label() {
        let points: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let mut sums = [0.5; 6];
        add_rows(&points, 2, &[2, 0, 2], &mut sums);
        assert_eq!(sums, [2.5, 3.5, 0.5, 0.5, 4.5, 6.5]);
    }
}
