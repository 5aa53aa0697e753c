//! Kernels between the images of a batch: Gaussian for vectors, the tensor kernel for anything of higher rank.
//!
//! Both are `K = exp(-D / b)` for a matrix D of squared distances and a bandwidth b that is taken from the batch and
//! not differentiated.

use burn::tensor::{Device, Tensor, TensorData, activation};
use serde::{Deserialize, Serialize};

/// Smallest bandwidth; only batches of (nearly) equal images get there.
pub const LEAST_BANDWIDTH: f64 = 1e-9;

/// Which of the nearest others [`BandwidthRule::Nearest`] goes by; the item itself comes first.
const NEAREST: usize = 5;

/// How the bandwidth follows from the median over all n x n entries, the diagonal included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BandwidthRule {
    /// `K = exp(-D / (2 s^2))`, s = sigma * median(sqrt D): the paper's text.
    Distance,
    /// `K = exp(-D / (sigma * median D))`: the authors' code.
    Squared,
    /// `K = exp(-D / (sigma * r))`, r the median over items of the squared distance to their fifth nearest other: with
    /// sigma near 1 a few others count for every item, however the distances are spread.
    Nearest,
}

/// What becomes of an unfolding X (D_m x D_-m) that has more rows than columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unfolding {
    /// It is transposed, as the paper says, and compared like every other.
    #[default]
    Short,
    /// It is left as it is, as in the authors' code. Its row space is then everything, so that it tells nothing and only
    /// adds the constant 2 (D_m - D_-m) to every squared distance.
    Plain,
}

/// A rule and its factor, "15 % of the median" being sigma = 0.15.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidth {
    /// The rule.
    pub rule: BandwidthRule,
    /// The factor.
    pub sigma: f64,
}

impl Bandwidth {
    /// The number b of `exp(-D / b)`, at least [`LEAST_BANDWIDTH`].
    ///
    /// # Shapes
    /// - distances: `[n, n]`
    pub fn of(&self, distances: &Tensor<2>) -> f64 {
        let mut values: Vec<f32> = distances.clone().detach().into_data().iter::<f32>().collect();
        if self.rule == BandwidthRule::Nearest {
            values = nearest(&mut values, distances.dims()[1]);
        }
        let Some((low, high)) = middle(&mut values) else { return LEAST_BANDWIDTH };
        let b = match self.rule {
            BandwidthRule::Distance => {
                let s = self.sigma * (low.sqrt() + high.sqrt()) / 2.0;
                2.0 * s * s
            }
            BandwidthRule::Squared | BandwidthRule::Nearest => self.sigma * (low + high) / 2.0,
        };
        // `max` drops a NaN; the kernel of non-finite distances is non-finite all the same.
        b.max(LEAST_BANDWIDTH)
    }

    /// `exp(-D / b)`.
    ///
    /// # Shapes
    /// - distances, output: `[n, n]`
    pub fn kernel(&self, distances: Tensor<2>) -> Tensor<2> {
        let b = self.of(&distances);
        (distances * (-1.0 / b)).exp()
    }
}

/// For each row of distances with a zero to itself the one to its fifth nearest other, or the farthest there is.
fn nearest(distances: &mut [f32], columns: usize) -> Vec<f32> {
    let rank = NEAREST.min(columns.saturating_sub(1));
    let row = |row: &mut [f32]| *row.select_nth_unstable_by(rank, f32::total_cmp).1;
    distances.chunks_exact_mut(columns.max(1)).map(row).collect()
}

/// The two middle values, the same one twice for an odd count; their mean is the median.
fn middle(values: &mut [f32]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let half = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (left, &mut high, _) = values.select_nth_unstable_by(half, f32::total_cmp);
    let low = if odd { high } else { left.iter().copied().max_by(f32::total_cmp).unwrap_or(high) };
    Some((f64::from(low), f64::from(high)))
}

/// Squared distances between the images' outputs, of any rank.
///
/// Vectors (rank 2 with the batch) have the Euclidean distance `||x_a - x_b||^2`. Tensors of rank r are unfolded
/// along each of their modes m to a matrix X (D_m x D_-m), transposed where D_m > D_-m, and compared by the
/// orthogonal projectors P on their row spaces: `D_ab = sum_m ||P_a - P_b||_F^2`.
///
/// # Shapes
/// - outputs: `[n, d_1, .., d_r]`
/// - result: `[n, n]`, symmetric, >= 0, zero on the diagonal
pub fn distances<const D: usize>(outputs: Tensor<D>) -> Tensor<2> {
    distances_by(outputs, Unfolding::Short)
}

/// [`distances`] with a choice of what becomes of unfoldings that have more rows than columns.
pub fn distances_by<const D: usize>(outputs: Tensor<D>, unfolding: Unfolding) -> Tensor<2> {
    let dims = outputs.dims();
    let size: usize = dims[1..].iter().product();
    match D {
        0..=2 => squared_distances(outputs.reshape([dims[0], size])),
        _ => {
            let is_plain = |mode: usize| unfolding == Unfolding::Plain && dims[mode] * dims[mode] > size;
            let constant: usize =
                (1..D).filter(|&mode| is_plain(mode)).map(|mode| 2 * (dims[mode] - size / dims[mode])).sum();
            let modes = (1..D).filter(|&mode| !is_plain(mode));
            let sum = modes.map(|mode| dtkc_ops::projector_distances(unfold(outputs.clone(), mode)));
            let sum = sum.reduce(|a, b| a + b);
            let sum = sum.unwrap_or_else(|| Tensor::zeros([dims[0], dims[0]], &outputs.device()));
            if constant > 0 { sum + constant as f64 } else { sum }
        }
    }
}

/// One unfolding per image: `[n, D_m, D_-m]`, or its transpose where that gives the same distances and is free.
fn unfold<const D: usize>(outputs: Tensor<D>, mode: usize) -> Tensor<3> {
    let dims = outputs.dims();
    let rest: usize = (1..D).filter(|&m| m != mode).map(|m| dims[m]).product();
    if mode == D - 1 && dims[mode] != rest {
        return outputs.reshape([dims[0], rest, dims[mode]]);
    }
    let mut axes = [0; D];
    axes[1] = mode;
    for (slot, m) in axes[2..].iter_mut().zip((1..D).filter(|&m| m != mode)) {
        *slot = m;
    }
    outputs.permute(axes).reshape([dims[0], dims[mode], rest])
}

/// Squared Euclidean distances between rows; the diagonal is exactly zero and has no gradient.
///
/// # Shapes
/// - x: `[n, d]`
/// - result: `[n, n]`
pub fn squared_distances(x: Tensor<2>) -> Tensor<2> {
    let [n, _] = x.dims();
    let norms = x.clone().square().sum_dim(1);
    let products = x.clone().matmul(x.transpose());
    let distances = norms.clone() + norms.transpose() - products * 2.0;
    // ReLU, not a clamp: a distance that rounds below zero must not have a gradient.
    let mask = off_diagonal(n, &distances.device());
    activation::relu(distances * mask)
}

fn off_diagonal(n: usize, device: &Device) -> Tensor<2> {
    let mut mask = vec![1.0f32; n * n];
    mask.iter_mut().step_by(n + 1).for_each(|v| *v = 0.0);
    Tensor::from_data(TensorData::new(mask, [n, n]), device)
}
