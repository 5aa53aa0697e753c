//! Numbers of the loss.

use super::companion::{CompanionConfig, CompanionKernel, Companions};
use crate::ConfigError;
use crate::kernel::{Bandwidth, BandwidthRule, Unfolding};
use serde::{Deserialize, Serialize};

/// What L2 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MembershipSum {
    /// The sum over all pairs of images, as in the paper; it outweighs the other terms.
    Sum,
    /// The mean over all pairs of images.
    Mean,
}

/// Weights and numbers of the loss; a weight of 0 turns its term off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// How the kernels' bandwidth follows from the batch.
    pub bandwidth: BandwidthRule,
    /// Factor of the median in that rule.
    pub sigma: f64,
    /// The companions' kernel: `tensor`, `naive` (Gaussian on the values in a row) or `identity`.
    pub kernel: CompanionKernel,
    /// How the companions' tensor kernel unfolds: `short` (the paper) or `plain` (the authors' code).
    pub unfolding: Unfolding,
    /// How the companion objectives look at blocks.
    pub companions: CompanionConfig,
    /// Sum or mean in L2.
    pub membership_sum: MembershipSum,
    /// Weight of L1.
    pub separation: f64,
    /// Weight of L2.
    pub orthogonality: f64,
    /// Weight of L3.
    pub simplex: f64,
    /// Weight lambda of the companion objectives; 0 is DDC.
    pub lambda: f64,
    /// Weight of the symmetric cross-entropy between the two views of an image.
    pub consistency: f64,
    /// Temperature of that term's targets: 1 leaves them, less sharpens them.
    pub consistency_temperature: f64,
    /// Weight of log k minus the mutual information between the memberships of two views.
    pub mutual_information: f64,
    /// Weight of the same for the fine clusters of a second output layer (`network.fine`), if there is one.
    pub overclustering: f64,
    /// Weight of log k minus the entropy of the mean membership: 0 for clusters of equal size.
    pub balance: f64,
    /// Weight of the mean entropy of an image's membership: 0 for certain memberships.
    pub certainty: f64,
    /// Weight of the cross-entropy of the second view with the confident labels of the first.
    pub self_label: f64,
    /// Least membership of a label that counts as confident.
    pub self_label_threshold: f64,
    /// Epoch at which self-labelling starts.
    pub self_label_start: f64,
    /// Epochs over which the weights of the terms between views grow from 0; 0 gives them at once.
    pub ramp: f64,
}

impl Default for LossConfig {
    /// The paper's terms without companion objectives; every other term is off.
    fn default() -> Self {
        Self {
            bandwidth: BandwidthRule::Distance,
            sigma: 0.15,
            kernel: CompanionKernel::Tensor,
            unfolding: Unfolding::Short,
            companions: CompanionConfig::default(),
            membership_sum: MembershipSum::Sum,
            separation: 1.0,
            orthogonality: 1.0,
            simplex: 1.0,
            lambda: 0.0,
            consistency: 0.0,
            consistency_temperature: 1.0,
            mutual_information: 0.0,
            overclustering: 1.0,
            balance: 0.0,
            certainty: 0.0,
            self_label: 0.0,
            self_label_threshold: 0.95,
            self_label_start: 0.0,
            ramp: 0.0,
        }
    }
}

impl LossConfig {
    /// Rule and factor of the kernels.
    pub fn bandwidth(&self) -> Bandwidth {
        Bandwidth { rule: self.bandwidth, sigma: self.sigma }
    }

    /// The companion objectives.
    pub fn companions(&self) -> Companions {
        let bandwidth = self.companions.bandwidth(self.bandwidth());
        Companions { kernel: self.kernel, bandwidth, unfolding: self.unfolding }
    }

    /// Whether any companion objective has a weight.
    pub fn has_companions(&self) -> bool {
        self.lambda > 0.0 || self.companions.views > 0.0
    }

    /// Whether a term compares two views of every image.
    pub fn needs_pairs(&self) -> bool {
        let between_views = [self.consistency, self.mutual_information, self.self_label, self.companions.views];
        between_views.iter().any(|&weight| weight > 0.0)
    }

    /// Refuses numbers that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        // Terms that can train a network by themselves; overclustering alone leaves the clusters untouched.
        let terms = [
            ("separation", self.separation),
            ("orthogonality", self.orthogonality),
            ("simplex", self.simplex),
            ("lambda", self.lambda),
            ("companions.views", self.companions.views),
            ("consistency", self.consistency),
            ("mutual_information", self.mutual_information),
            ("balance", self.balance),
            ("certainty", self.certainty),
            ("self_label", self.self_label),
        ];
        let others = [
            ("overclustering", self.overclustering),
            ("self_label_start", self.self_label_start),
            ("ramp", self.ramp),
            ("companions.sigma", self.companions.sigma),
            ("companions.share", self.companions.share),
            ("companions.until", self.companions.until),
        ];
        for (name, value) in terms.into_iter().chain(others) {
            within(name, value, 0.0..=1e6, "between 0 and 1e6")?;
        }
        within("sigma", self.sigma, 1e-6..=1e6, "between 1e-6 and 1e6")?;
        within("consistency_temperature", self.consistency_temperature, 1e-3..=1e3, "between 0.001 and 1000")?;
        within("self_label_threshold", self.self_label_threshold, 0.0..=1.0, "between 0 and 1")?;
        match terms.iter().all(|(_, weight)| *weight == 0.0) {
            true => Err(ConfigError::Conflict("every weight of the loss is 0: there is nothing to train".into())),
            false => Ok(()),
        }
    }
}

fn within(
    name: &str,
    value: f64,
    allowed: std::ops::RangeInclusive<f64>,
    range: &'static str,
) -> Result<(), ConfigError> {
    match allowed.contains(&value) {
        true => Ok(()),
        false => Err(ConfigError::Range { name: format!("loss.{name}"), value, range }),
    }
}
