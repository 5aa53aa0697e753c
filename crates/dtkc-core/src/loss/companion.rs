//! Unsupervised companion objectives: the clusters must also separate what each block gives.

use super::divergence::d_cs;
use crate::Tapped;
use crate::kernel::{Bandwidth, BandwidthRule, Unfolding, distances_by, squared_distances};
use burn::tensor::{Tensor, activation};
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

/// Whose rule the companions' bandwidth follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompanionRule {
    /// That of the other kernels of the loss.
    #[default]
    Same,
    /// [`BandwidthRule::Distance`].
    Distance,
    /// [`BandwidthRule::Squared`].
    Squared,
    /// [`BandwidthRule::Nearest`].
    Nearest,
}

/// How companion objectives look at blocks. The defaults are the paper's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompanionConfig {
    /// How their kernels' bandwidth follows from the batch: `same` as in the rest of the loss, or `distance`, `squared`,
    /// `nearest`.
    pub bandwidth: CompanionRule,
    /// Factor of that rule; 0 for that of the other kernels.
    pub sigma: f64,
    /// Part of the other terms' gradient on the blocks that the companions' is kept at, by another weight every few steps; 0
    /// leaves their weight alone.
    pub share: f64,
    /// Leave the memberships alone: companions then shape the blocks only.
    pub detached: bool,
    /// Epochs of training after which they end; 0 keeps them to the end.
    pub until: f64,
    /// Look at the last block only, which costs little.
    pub last: bool,
    /// Weight of the contrast between views: a block's outputs for the two views of an image must be nearer to each other
    /// than to those of other images.
    pub views: f64,
}

impl CompanionConfig {
    /// Rule and factor, given those of the other kernels.
    pub fn bandwidth(&self, other: Bandwidth) -> Bandwidth {
        let rule = match self.bandwidth {
            CompanionRule::Same => other.rule,
            CompanionRule::Distance => BandwidthRule::Distance,
            CompanionRule::Squared => BandwidthRule::Squared,
            CompanionRule::Nearest => BandwidthRule::Nearest,
        };
        Bandwidth { rule, sigma: if self.sigma > 0.0 { self.sigma } else { other.sigma } }
    }
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
        let kernel = match self.distances(output.clone()) {
            Some(distances) => self.bandwidth.kernel(distances),
            None => Tensor::eye(output.dims()[0], &output.device()),
        };
        d_cs(membership, kernel)
    }

    /// The contrast between views at one block: the mean over images and both directions of
    /// `-log softmax_j(-D(x_i, y_j) / b)` at j = i, x the first views' outputs and y the second ones'. Zero for the identity,
    /// which sees no distances.
    ///
    /// # Shapes
    /// - output: `[2 n, d_1, .., d_r]`, second views after first ones in the same order
    /// - result: `[1]`
    pub fn contrast<const D: usize>(&self, output: Tensor<D>) -> Tensor<1> {
        let n = output.dims()[0] / 2;
        let Some(distances) = self.distances(output.clone()) else {
            return Tensor::zeros([1], &output.device());
        };
        let across = distances.narrow(0, 0, n).narrow(1, n, n);
        let logits = across.clone() * (-1.0 / self.bandwidth.of(&across));
        let own = Tensor::eye(n, &output.device());
        let log = |logits: Tensor<2>| (activation::log_softmax(logits, 1) * own.clone()).sum();
        (log(logits.clone()) + log(logits.transpose())) * (-0.5 / n.max(1) as f64)
    }

    /// Squared distances by the kernel's measure; `None` for the identity.
    fn distances<const D: usize>(&self, output: Tensor<D>) -> Option<Tensor<2>> {
        let [n, size] = [output.dims()[0], output.dims()[1..].iter().product()];
        match self.kernel {
            CompanionKernel::Tensor => Some(distances_by(output, self.unfolding)),
            CompanionKernel::Naive => Some(squared_distances(output.reshape([n, size]))),
            CompanionKernel::Identity => None,
        }
    }

    /// The objectives of layers and blocks of a network that has both.
    pub fn evaluate_taps(&self, taps: &[Tapped], membership: &Tensor<2>) -> Vec<Tensor<1>> {
        taps.iter().map(|tap| self.objective_of(tap, membership.clone())).collect()
    }

    /// The objective of one layer or block.
    pub fn objective_of(&self, tap: &Tapped, membership: Tensor<2>) -> Tensor<1> {
        match tap {
            Tapped::Vectors(output) => self.objective(output.clone(), membership),
            Tapped::Maps(output) => self.objective(output.clone(), membership),
        }
    }

    /// The contrast between views at one layer or block.
    pub fn contrast_of(&self, tap: &Tapped) -> Tensor<1> {
        match tap {
            Tapped::Vectors(output) => self.contrast(output.clone()),
            Tapped::Maps(output) => self.contrast(output.clone()),
        }
    }
}
