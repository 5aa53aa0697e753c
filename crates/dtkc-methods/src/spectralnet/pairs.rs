//! Pairs of codes: neighbours and strangers.

use burn::tensor::{Tensor, activation};

use crate::random::Random;

/// The partners of some items: for each a neighbour, and an item drawn from all.
pub(super) struct Partners {
    pub(super) near: Vec<usize>,
    pub(super) far: Vec<usize>,
}

impl Partners {
    /// `neighbours` are `[n, count]`.
    pub(super) fn draw(indices: &[usize], neighbours: &[u32], count: usize, random: &mut Random) -> Self {
        let items = neighbours.len() / count.max(1);
        let near = indices.iter().map(|&i| neighbours[i * count + random.below(count)] as usize).collect();
        let far = indices.iter().map(|_| random.below(items)).collect();
        Self { near, far }
    }
}

/// The mean over pairs of `||a - b||^2` for neighbours and `max(margin - ||a - b||, 0)^2` for strangers.
///
/// # Shapes
/// - own, near, far: `[n, d]`, what the network says about items, a neighbour of each and a stranger to each
/// - result: `[1]`
pub fn contrastive_loss(own: Tensor<2>, near: Tensor<2>, far: Tensor<2>, margin: f64) -> Tensor<1> {
    let [n, _] = own.dims();
    let square = |other: Tensor<2>| (own.clone() - other).square().sum_dim(1);
    // The root has no slope at 0.
    let distance = (square(far) + 1e-12).sqrt();
    let apart = activation::relu(distance * -1.0 + margin).square();
    (square(near).sum() + apart.sum()) * (0.5 / n.max(1) as f64)
}
