//! The paper's terms over memberships and a kernel.

use super::MembershipSum;
use burn::tensor::{Device, Tensor, TensorData};

/// Added under the square root of the Cauchy-Schwarz ratio.
const RATIO_FLOOR: f64 = 1e-6;

/// The mean Cauchy-Schwarz ratio between the k columns of A in the geometry of K:
/// with `N = A^T K A`, `d_cs(A, K) = 2 / (k (k-1)) * sum_{i<j} N_ij / sqrt(N_ii N_jj + 1e-6)`.
///
/// Between 0 and 1 for non-negative A and a kernel with non-negative entries.
///
/// # Shapes
/// - a: `[n, k]`, k >= 2
/// - kernel: `[n, n]`
/// - result: `[1]`
pub fn d_cs(a: Tensor<2>, kernel: Tensor<2>) -> Tensor<1> {
    let [_, k] = a.dims();
    let products = a.clone().transpose().matmul(kernel.matmul(a));
    let device = products.device();
    let diagonal = (products.clone() * triangle(k, |i, j| i == j, &device)).sum_dim(1);
    let norms = (diagonal.clone().matmul(diagonal.transpose()) + RATIO_FLOOR).sqrt();
    let pairs = (k * (k - 1)) as f64;
    (products / norms * triangle(k, |i, j| i < j, &device)).sum() * (2.0 / pairs)
}

/// A k x k matrix of ones where `keep` says so and zeros elsewhere.
fn triangle(k: usize, keep: impl Fn(usize, usize) -> bool, device: &Device) -> Tensor<2> {
    let mask: Vec<f32> = (0..k * k).map(|at| if keep(at / k, at % k) { 1.0 } else { 0.0 }).collect();
    Tensor::from_data(TensorData::new(mask, [k, k]), device)
}

/// L2: `sum_{i<j} u_i . u_j` over the rows of U, or the mean over these pairs.
///
/// Computed as `(||sum_i u_i||^2 - sum_i ||u_i||^2) / 2`. A single image has no pair and gives 0.
///
/// # Shapes
/// - membership: `[n, k]`
/// - result: `[1]`
pub fn orthogonality(membership: Tensor<2>, sum: MembershipSum) -> Tensor<1> {
    let [n, _] = membership.dims();
    let together = membership.clone().sum_dim(0).square().sum();
    let alone = membership.square().sum();
    let pairs = (n * n.saturating_sub(1) / 2).max(1) as f64;
    let scale = match sum {
        MembershipSum::Sum => 0.5,
        MembershipSum::Mean => 0.5 / pairs,
    };
    (together - alone) * scale
}

/// M: closeness of every membership to every corner of the simplex, `m_ij = exp(-||u_i - e_j||^2)`.
///
/// # Shapes
/// - membership, result: `[n, k]`
pub fn simplex_closeness(membership: Tensor<2>) -> Tensor<2> {
    // ||u - e_j||^2 = ||u||^2 + 1 - 2 u_j
    let norms = membership.clone().square().sum_dim(1);
    (membership * 2.0 - norms - 1.0).exp()
}
