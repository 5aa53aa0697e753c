//! Unsupervised companion objectives: the clusters must also separate what each block gives.

use super::divergence::d_cs;
use crate::kernel::{Bandwidth, Unfolding, distances_by};
use burn::tensor::Tensor;

/// The companion objectives. They attach to any network that yields block outputs and memberships: outputs of rank
/// 2 (vectors) get the Gaussian kernel, higher ranks the tensor kernel.
///
/// ```
/// use burn::tensor::{Device, Tensor, Distribution, activation::softmax};
/// use dtkc_core::Companions;
/// use dtkc_core::kernel::{Bandwidth, BandwidthRule, Unfolding};
///
/// let device = Device::flex();
/// let blocks = [Tensor::<4>::random([8, 5, 5, 3], Distribution::Default, &device)];
/// let membership = softmax(Tensor::<2>::random([8, 4], Distribution::Default, &device), 1);
/// let companions = Companions { bandwidth: Bandwidth { rule: BandwidthRule::Squared, sigma: 0.15 }, unfolding: Unfolding::Short };
/// let terms = companions.evaluate(&blocks, &membership);
/// assert_eq!(terms.len(), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Companions {
    /// Bandwidth of the kernels.
    pub bandwidth: Bandwidth,
    /// How tensors are unfolded.
    pub unfolding: Unfolding,
}

impl Companions {
    /// One objective per block, `Lco_l = d_cs(U, K_l)`.
    ///
    /// # Shapes
    /// - outputs: `[n, d_1, .., d_r]` each
    /// - membership: `[n, k]`
    /// - results: `[1]` each
    pub fn evaluate<const D: usize>(&self, outputs: &[Tensor<D>], membership: &Tensor<2>) -> Vec<Tensor<1>> {
        outputs.iter().map(|output| self.objective(output.clone(), membership.clone())).collect()
    }

    /// The objective of one block, for networks whose blocks differ in rank.
    pub fn objective<const D: usize>(&self, output: Tensor<D>, membership: Tensor<2>) -> Tensor<1> {
        d_cs(membership, self.bandwidth.kernel(distances_by(output, self.unfolding)))
    }
}
