//! Projectors on the row spaces of a batch of matrices: distances between them and the gradient of those.

mod dense;
mod stacked;

use crate::{
    buffer::Buffer,
    cpu::{
        isa::Isa,
        projector::{Factor, Finish, factor, finish},
    },
    parallel::{for_each, part_len},
    scratch,
};

/// Sizes of a batch of matrices, and how their overlaps are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) n: usize,
    /// The smaller side of a matrix.
    pub(crate) rows: usize,
    /// The larger side of a matrix.
    pub(crate) columns: usize,
    /// `columns` rounded up to whole blocks.
    pub(crate) stride: usize,
    /// Whether the matrices come with their larger side first.
    pub(crate) transposed: bool,
}

impl Sizes {
    /// Of a batch `[n, r, d]`.
    pub(crate) fn new(isa: Isa, [n, r, d]: [usize; 3]) -> Sizes {
        let columns = r.max(d);
        Sizes { n, rows: r.min(d), columns, stride: isa.padded(columns), transposed: r > d }
    }

    /// Values of one matrix.
    fn len(&self) -> usize {
        self.rows * self.columns
    }

    /// Values of one matrix with padded rows.
    fn padded_len(&self) -> usize {
        self.rows * self.stride
    }

    /// Multiplications per pair of matrices, forward and backward, from the stacked rows.
    fn stacked_cost(&self) -> usize {
        3 * self.n * self.n * self.rows * self.rows * self.columns / 2
    }

    /// The same from the projectors written out, times 1.6: measured, these loops run at about 60 % of the speed.
    fn dense_cost(&self) -> usize {
        let entries = self.columns * self.columns / 2;
        (3 * self.n * self.rows * entries + 3 * self.n * self.n * entries / 2) / 5 * 8
    }

    fn is_stacked(&self) -> bool {
        self.stacked_cost() <= self.dense_cost()
    }

    /// See [`crate::projector_memory`].
    pub(crate) fn memory(&self) -> ProjectorMemory {
        let rows = self.n * self.padded_len();
        let (held, scratch) = match self.is_stacked() {
            true => (rows + (self.n * self.rows).pow(2), 2 * rows),
            false => (2 * rows, 2 * rows + dense::BATCH.min(self.n * self.stride * self.stride / 2)),
        };
        // The Cholesky factors are in double precision.
        let factors = 2 * self.n * self.rows * self.rows;
        ProjectorMemory { held: 4 * (held + factors) as u64, scratch: 4 * scratch as u64 }
    }
}

/// Bytes that [`projector_distances`](crate::projector_distances) takes on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectorMemory {
    /// From the forward pass to the end of the backward pass.
    pub held: u64,
    /// In the backward pass, used again by the next one.
    pub scratch: u64,
}

/// How the overlaps are computed, with what the backward pass of that needs.
#[derive(Debug)]
enum Route {
    /// From the inner products of all rows.
    Stacked(Buffer),
    /// From the projectors written out; the rows in panels of columns.
    Dense(Buffer),
}

/// Orthonormal rows of every matrix, and what the backward pass needs.
#[derive(Debug)]
pub(crate) struct Projectors {
    isa: Isa,
    sizes: Sizes,
    /// `[n][rows][stride]`.
    v: Buffer,
    /// Cholesky factors `[n][rows][rows]`.
    l: Vec<f64>,
    route: Route,
    distances: Vec<f32>,
}

impl Projectors {
    /// Factors every matrix of `x` and computes all distances.
    pub(crate) fn new(isa: Isa, shape: [usize; 3], x: &[f32]) -> Projectors {
        let sizes = Sizes::new(isa, shape);
        let mut v = Buffer::take(sizes.n * sizes.padded_len());
        let mut l = vec![0.0; sizes.n * sizes.rows * sizes.rows];
        let part = part_len(sizes.n);
        let jobs = x.chunks(part * sizes.len()).zip(v.chunks_mut(part * sizes.padded_len()));
        for_each(jobs.zip(l.chunks_mut(part * sizes.rows * sizes.rows)), |((x, v), l)| {
            scratch::with_double(sizes.len() + sizes.rows, |scratch| {
                let matrices = x.chunks_exact(sizes.len()).zip(v.chunks_exact_mut(sizes.padded_len()));
                for ((x, v), l) in matrices.zip(l.chunks_exact_mut(sizes.rows * sizes.rows)) {
                    let (transposed, columns, stride) = (sizes.transposed, sizes.columns, sizes.stride);
                    factor(isa, Factor { x, transposed, columns, l, v, stride, scratch: &mut *scratch });
                }
            });
        });
        let (overlaps, route) = if sizes.is_stacked() {
            let (overlaps, products) = stacked::overlaps(isa, sizes, &v);
            (overlaps, Route::Stacked(products))
        } else {
            let panels = dense::panels(isa, sizes, &v);
            (dense::overlaps(isa, sizes, &panels), Route::Dense(panels))
        };
        Projectors { isa, sizes, v, l, route, distances: distances(&overlaps, sizes.n) }
    }

    /// `||P_a - P_b||_F^2` as `[n][n]`.
    pub(crate) fn distances(&self) -> &[f32] {
        &self.distances
    }

    /// Gradient to the matrices, from the gradient of the distances, which need not be symmetric.
    ///
    /// With `M = dLoss / d tr(P_a P_b)` and `S_a = sum_b (M_ab + M_ba) P_b` it is `2 L^-T V S_a (I - P_a)`.
    pub(crate) fn gradient(&self, upstream: &[f32], dx: &mut [f32]) {
        let sizes = self.sizes;
        let (others, own) = coefficients(&self.distances, upstream, sizes.n);
        if others.iter().all(|&other| other == 0.0) {
            return dx.fill(0.0);
        }
        scratch::with(sizes.n * sizes.padded_len(), |sums| {
            match &self.route {
                Route::Stacked(products) => stacked::sums(self.isa, sizes, (&self.v, products), &others, sums),
                Route::Dense(panels) => dense::sums(self.isa, sizes, panels, &others, sums),
            }
            self.finish(sums, &own, dx);
        });
    }

    /// The part of the gradient that concerns one matrix alone.
    fn finish(&self, sums: &mut [f32], own: &[f64], dx: &mut [f32]) {
        let sizes = self.sizes;
        let (length, padded, square) = (sizes.len(), sizes.padded_len(), sizes.rows * sizes.rows);
        let part = part_len(sizes.n);
        let single_len = (sizes.stride + 3 * sizes.rows) * self.isa.padded(sizes.rows);
        let jobs = dx.chunks_mut(part * length).zip(sums.chunks_mut(part * padded)).enumerate();
        for_each(jobs, |(index, (dx, sums))| {
            scratch::with(single_len, |single| {
                scratch::with_double(length + square, |double| {
                    let matrices = dx.chunks_exact_mut(length).zip(sums.chunks_exact_mut(padded));
                    for (a, (dx, upstream)) in (index * part..).zip(matrices) {
                        let job = Finish {
                            l: &self.l[a * square..][..square],
                            v: &self.v[a * padded..][..padded],
                            upstream,
                            own: own[a],
                            stride: sizes.stride,
                            columns: sizes.columns,
                            dx,
                            transposed: sizes.transposed,
                            double: &mut *double,
                            single: &mut *single,
                        };
                        finish(self.isa, job);
                    }
                });
            });
        });
    }
}

/// `t_aa + t_bb - 2 t_ab`, at least 0.
fn distances(overlaps: &[f32], n: usize) -> Vec<f32> {
    let mut distances = Vec::with_capacity(n * n);
    for a in 0..n {
        for b in 0..n {
            let distance = overlaps[a * n + a] + overlaps[b * n + b] - 2.0 * overlaps[a * n + b];
            // A comparison with `max` would hide a NaN of the input.
            distances.push(if distance < 0.0 { 0.0 } else { distance });
        }
    }
    distances
}

/// Gradients of a distance below this count as none. A narrow kernel has such everywhere, and products with them are denormal
/// numbers, with which a step takes five times as long. What they would change drowns in an optimiser's epsilon (1e-8).
const NONE: f32 = 1e-24;

/// `C_ab = M_ab + M_ba` for `a != b`, with zeros on the diagonal, and `C_aa` apart.
fn coefficients(distances: &[f32], upstream: &[f32], n: usize) -> (Vec<f32>, Vec<f64>) {
    let mut own = vec![0.0; n];
    let mut others = vec![0.0; n * n];
    for a in 0..n {
        for b in 0..n {
            let gradient = upstream[a * n + b];
            // Nothing flows through a distance that was clamped, or through the diagonal.
            if a == b || distances[a * n + b] <= 0.0 || gradient.abs() < NONE {
                continue;
            }
            others[a * n + b] -= 2.0 * gradient;
            others[b * n + a] -= 2.0 * gradient;
            own[a] += 2.0 * f64::from(gradient);
            own[b] += 2.0 * f64::from(gradient);
        }
    }
    (others, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_gives_the_same_distances_and_gradients() {
        for shape in [[9, 4, 40], [9, 20, 24], [9, 24, 20]] {
            let count = shape.iter().product();
            let x: Vec<f32> = (0..count).map(|i| ((i * 7919 + 13) % 1009) as f32 / 500.0 - 1.0).collect();
            let upstream: Vec<f32> = (0..81).map(|i| ((i * 31) % 17) as f32 / 8.0 - 1.0).collect();
            let run = |isa| {
                let projectors = Projectors::new(isa, shape, &x);
                let mut dx = vec![f32::NAN; count];
                projectors.gradient(&upstream, &mut dx);
                (projectors.distances().to_vec(), dx)
            };
            let (distances, gradient) = run(Isa::detect());
            let largest = gradient.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
            for isa in Isa::available() {
                let (other_distances, other_gradient) = run(isa);
                let pairs = distances.iter().zip(&other_distances);
                assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-4), "{isa:?} {shape:?}");
                let pairs = gradient.iter().zip(&other_gradient);
                assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-4 * largest), "{isa:?} {shape:?}");
            }
        }
    }

    #[test]
    fn gradients_that_are_next_to_nothing_are_nothing() {
        let shape = [9, 4, 40];
        let x: Vec<f32> = (0..9 * 160).map(|i| ((i * 7919 + 13) % 1009) as f32 / 500.0 - 1.0).collect();
        let projectors = Projectors::new(Isa::detect(), shape, &x);
        let gradient = |upstream: &[f32]| {
            let mut dx = vec![f32::NAN; x.len()];
            projectors.gradient(upstream, &mut dx);
            dx
        };
        assert!(gradient(&[1e-38; 81]).iter().all(|&value| value == 0.0));
        // Beside others they change nothing, and what is no number is not hidden.
        let some: Vec<f32> = (0..81).map(|i| if i % 3 == 0 { 0.5 } else { 0.0 }).collect();
        let with_tiny: Vec<f32> = some.iter().map(|&value| if value == 0.0 { 3e-39 } else { value }).collect();
        assert_eq!(gradient(&some), gradient(&with_tiny));
        assert!(gradient(&[1e-20; 81]).iter().any(|&value| value != 0.0));
        assert!(gradient(&[f32::NAN; 81]).iter().any(|value| value.is_nan()));
    }

    #[test]
    fn memory_is_that_of_the_buffers() {
        // 120 matrices of 10 x 320 by stacked rows: 120 x 10 x 320 + 1200^2 values, and factors of 120 x 10 x 10 doubles.
        let stacked = Sizes::new(Isa::detect(), [120, 10, 320]).memory();
        assert_eq!(stacked, ProjectorMemory { held: 4 * (384_000 + 1_440_000 + 24_000), scratch: 4 * 768_000 });
        // 120 matrices of 32 x 768 written out: twice 120 x 32 x 768 values.
        let dense = Sizes::new(Isa::detect(), [120, 768, 32]).memory();
        assert_eq!(dense.held, 4 * (2 * 2_949_120 + 245_760));
        let projectors = Projectors::new(Isa::detect(), [9, 4, 48], &[0.5; 9 * 4 * 48]);
        assert!(projectors.v.len() * 4 <= projectors.sizes.memory().held as usize);
    }

    #[test]
    fn the_routes_are_chosen_by_their_cost() {
        let sizes = |r, d| Sizes::new(Isa::detect(), [120, r, d]);
        // Height and width of both blocks of the paper's network by stacked rows, channels by written-out projectors.
        for (r, d) in [(10, 320), (3, 96)] {
            assert!(sizes(r, d).stacked_cost() < sizes(r, d).dense_cost(), "{r} {d}");
        }
        for (r, d) in [(100, 32), (9, 32)] {
            assert!(sizes(r, d).stacked_cost() > sizes(r, d).dense_cost(), "{r} {d}");
        }
    }
}
