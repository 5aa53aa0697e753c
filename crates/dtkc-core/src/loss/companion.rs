//! Unsupervised companion objectives: the clusters must also separate what each block gives.

use super::divergence::d_cs;
use crate::Tapped;
use crate::kernel::{Bandwidth, Unfolding, distances_by, squared_distances};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// The kernel on what a block gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompanionKernel {
    /// The tensor kernel, which sees the subspaces that a tensor's unfoldings span; for vectors the Gaussian one.
    #[default]
    Tensor,
    /// The Gaussian kernel on the values in a row, whatever their rank: a product of kernels on single values.
    Naive,
    /// Every item is like itself alone: what is left is the overlap of the clusters.
    Identity,
}

/// The companion objectives. They attach to any network that yields block outputs and memberships: outputs of rank
/// 2 (vectors) get the Gaussian kernel, higher ranks the tensor kernel.
///
/// ```
/// use burn::tensor::{Device, Tensor, Distribution, activation::softmax};
/// use dtkc_core::{CompanionKernel, Companions};
/// use dtkc_core::kernel::{Bandwidth, BandwidthRule, Unfolding};
///
/// let device = Device::flex();
/// let blocks = [Tensor::<4>::random([8, 5, 5, 3], Distribution::Default, &device)];
/// let membership = softmax(Tensor::<2>::random([8, 4], Distribution::Default, &device), 1);
/// let bandwidth = Bandwidth { rule: BandwidthRule::Squared, sigma: 0.15 };
/// let companions = Companions { kernel: CompanionKernel::Tensor, bandwidth, unfolding: Unfolding::Short };
/// let terms = companions.evaluate(&blocks, &membership);
/// assert_eq!(terms.len(), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Companions {
    /// The kernel.
    pub kernel: CompanionKernel,
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
        let [n, size] = [output.dims()[0], output.dims()[1..].iter().product()];
        let kernel = match self.kernel {
            CompanionKernel::Tensor => self.bandwidth.kernel(distances_by(output, self.unfolding)),
            CompanionKernel::Naive => self.bandwidth.kernel(squared_distances(output.reshape([n, size]))),
            CompanionKernel::Identity => Tensor::eye(n, &output.device()),
        };
        d_cs(membership, kernel)
    }

    /// The objectives of layers and blocks of a network that has both.
    pub fn evaluate_taps(&self, taps: &[Tapped], membership: &Tensor<2>) -> Vec<Tensor<1>> {
        let objective = |tap: &Tapped| match tap {
            Tapped::Vectors(output) => self.objective(output.clone(), membership.clone()),
            Tapped::Maps(output) => self.objective(output.clone(), membership.clone()),
        };
        taps.iter().map(objective).collect()
    }
}
