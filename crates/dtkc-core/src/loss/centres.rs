//! Losses of methods whose clusters are centres in the space of codes.

use burn::tensor::Tensor;

/// Squared distances from codes to centres, by their differences: a code on a centre is at the distance 0.
///
/// # Shapes
/// - code: `[n, d]`
/// - centres: `[k, d]`
/// - result: `[n, k]`
pub fn distances_to_centres(code: Tensor<2>, centres: Tensor<2>) -> Tensor<2> {
    let ([n, d], [k, _]) = (code.dims(), centres.dims());
    let apart = code.reshape([n, 1, d]) - centres.reshape([1, k, d]);
    apart.square().sum_dim(2).reshape([n, k])
}

/// Memberships by Student's t with one degree of freedom: `q_ij = t_ij / sum_j t_ij`, `t_ij = 1 / (1 + ||z_i - c_j||^2)`.
///
/// # Shapes
/// - code: `[n, d]`
/// - centres: `[k, d]`
/// - result: `[n, k]`, rows sum to 1
pub fn student_t(code: Tensor<2>, centres: Tensor<2>) -> Tensor<2> {
    let near = (distances_to_centres(code, centres) + 1.0).recip();
    let all = near.clone().sum_dim(1);
    near / all
}

/// The mean over items of `KL(p_i || q_i) = sum_j p_ij log(p_ij / q_ij)`.
///
/// # Shapes
/// - target, membership: `[n, k]`
/// - result: `[1]`
pub fn divergence_from(target: Tensor<2>, membership: Tensor<2>) -> Tensor<1> {
    let [n, _] = membership.dims();
    let log = |p: Tensor<2>| p.clamp_min(1e-12).log();
    (target.clone() * (log(target) - log(membership))).sum() * (1.0 / n.max(1) as f64)
}
