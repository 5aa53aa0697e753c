//! Terms that need no kernel: agreement between two views of an image, balance and certainty.

use burn::tensor::{Int, Tensor, TensorData, activation};

/// Symmetric cross-entropy of the memberships of two views, targets detached, mean over images and directions:
/// `-1/(2n) sum_i (t(u_i) . log v_i + t(v_i) . log u_i)`, t the softmax at another temperature.
///
/// # Shapes
/// - first, second: logits `[n, k]` of the two views
/// - result: `[1]`
pub fn consistency(first: Tensor<2>, second: Tensor<2>, temperature: f64) -> Tensor<1> {
    let target = |logits: &Tensor<2>| activation::softmax(logits.clone().detach() * (1.0 / temperature), 1);
    let (to_first, to_second) = (target(&second), target(&first));
    (cross_entropy(to_second, second) + cross_entropy(to_first, first)) * 0.5
}

/// Mean over rows of `-target . log softmax(logits)`.
fn cross_entropy(target: Tensor<2>, logits: Tensor<2>) -> Tensor<1> {
    let [n, _] = logits.dims();
    (target * activation::log_softmax(logits, 1)).sum() * (-1.0 / n.max(1) as f64)
}

/// Mean over rows of `-log softmax(logits)` at a given cluster.
///
/// # Shapes
/// - logits: `[n, k]`
/// - clusters: n numbers below k
/// - result: `[1]`
pub fn cross_entropy_with(logits: Tensor<2>, clusters: &[i32]) -> Tensor<1> {
    let targets = TensorData::new(clusters.to_vec(), [clusters.len(), 1]);
    let targets = Tensor::<2, Int>::from_data(targets, &logits.device());
    activation::log_softmax(logits, 1).gather(1, targets).mean().neg()
}

/// `log k - I`, I the mutual information of the two views' clusters under the batch's joint distribution
/// `P = (U^T V + V^T U) / (2 n)` (invariant information clustering): 0 at best, for agreeing, certain, balanced views.
///
/// # Shapes
/// - first, second: memberships `[n, k]` of the two views
/// - result: `[1]`
pub fn mutual_information(first: Tensor<2>, second: Tensor<2>) -> Tensor<1> {
    let [n, k] = first.dims();
    let joint = first.transpose().matmul(second) * (1.0 / n.max(1) as f64);
    let joint = (joint.clone() + joint.transpose()) * 0.5;
    let marginal = joint.clone().sum_dim(1);
    // The joint distribution is symmetric: both marginals are equal, so I = 2 H(marginal) - H(joint).
    let information = entropy(marginal) * 2.0 - entropy(joint);
    information * -1.0 + (k as f64).ln()
}

/// `log k - H(mean u)`: 0 when the clusters are of equal size.
///
/// # Shapes
/// - membership: `[n, k]`
/// - result: `[1]`
pub fn balance(membership: Tensor<2>) -> Tensor<1> {
    let [_, k] = membership.dims();
    entropy(membership.mean_dim(0)) * -1.0 + (k as f64).ln()
}

/// `1/n sum_i H(u_i)`: 0 when every image is certain of its cluster.
///
/// # Shapes
/// - logits: `[n, k]`
/// - result: `[1]`
pub fn certainty(logits: Tensor<2>) -> Tensor<1> {
    let membership = activation::softmax(logits.clone(), 1);
    cross_entropy(membership, logits)
}

/// Cross-entropy of the second view with the first view's hard labels, over the images whose first view is at least
/// `threshold` certain; 0 without any.
///
/// # Shapes
/// - first, second: logits `[n, k]` of the two views
/// - result: `[1]`
pub fn self_label(first: Tensor<2>, second: Tensor<2>, threshold: f64) -> Tensor<1> {
    let membership = activation::softmax(first.detach(), 1);
    let best = membership.clone().max_dim(1);
    let confident = best.clone().greater_equal_scalar(threshold).float();
    let labels = membership.greater_equal(best).float();
    let count = confident.clone().sum().clamp_min(1.0);
    let fit = labels * activation::log_softmax(second, 1);
    (fit * confident).sum() * -1.0 / count
}

/// `-sum p log p` over all entries, finite with a finite gradient also at p = 0.
fn entropy<const D: usize>(p: Tensor<D>) -> Tensor<1> {
    let log = p.clone().clamp_min(1e-12).log();
    (p * log).sum() * -1.0
}
