//! The loss of methods whose clusters are centres among codes.

use burn::tensor::Tensor;
use dtkc_core::kernel::{Bandwidth, BandwidthRule, Unfolding};
use dtkc_core::loss::Collector;
use dtkc_core::{CompanionKernel, Companions, ConfigError, Tapped};
use serde::{Deserialize, Serialize};

/// Weights of the terms, and the companion objectives that go with any of these methods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodeLoss {
    /// Weight of what makes clusters.
    pub clustering: f64,
    /// Weight of the difference between images and what is decoded from their codes.
    pub reconstruction: f64,
    /// Weight lambda of the companion objectives on the layers before the code; 0 for none.
    pub lambda: f64,
    /// The companions' kernel: `tensor`, `naive` or `identity`.
    pub kernel: CompanionKernel,
    /// How its bandwidth follows from the batch.
    pub bandwidth: BandwidthRule,
    /// Factor of the median in that rule.
    pub sigma: f64,
    /// How the tensor kernel unfolds.
    pub unfolding: Unfolding,
}

impl Default for CodeLoss {
    fn default() -> Self {
        Self {
            clustering: 1.0,
            reconstruction: 0.0,
            lambda: 0.0,
            kernel: CompanionKernel::Tensor,
            bandwidth: BandwidthRule::Squared,
            sigma: 0.15,
            unfolding: Unfolding::Short,
        }
    }
}

impl CodeLoss {
    /// Refuses numbers that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let rows = [
            ("clustering", self.clustering, 0.0..=1e6, "between 0 and 1e6"),
            ("reconstruction", self.reconstruction, 0.0..=1e6, "between 0 and 1e6"),
            ("lambda", self.lambda, 0.0..=1e6, "between 0 and 1e6"),
            ("sigma", self.sigma, 1e-6..=1e6, "between 1e-6 and 1e6"),
        ];
        for (name, value, allowed, range) in rows {
            if !allowed.contains(&value) {
                return Err(ConfigError::Range { name: format!("loss.{name}"), value, range });
            }
        }
        match self.clustering > 0.0 {
            true => Ok(()),
            false => Err(ConfigError::Conflict("loss.clustering is 0: nothing would make clusters".into())),
        }
    }

    /// Adds the companion objectives, where they have a weight.
    pub(crate) fn add_companions(&self, terms: &mut Collector, taps: &[Tapped], membership: &Tensor<2>) {
        if self.lambda == 0.0 {
            return;
        }
        let bandwidth = Bandwidth { rule: self.bandwidth, sigma: self.sigma };
        let companions = Companions { kernel: self.kernel, bandwidth, unfolding: self.unfolding };
        for (i, value) in companions.evaluate_taps(taps, membership).into_iter().enumerate() {
            terms.add(&format!("companion_{}", i + 1), self.lambda, || value);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named() {
        CodeLoss::default().check().unwrap();
        let fails = |loss: CodeLoss| loss.check().unwrap_err().to_string();
        assert!(fails(CodeLoss { lambda: -1.0, ..CodeLoss::default() }).contains("loss.lambda = -1"));
        assert!(fails(CodeLoss { sigma: f64::NAN, ..CodeLoss::default() }).contains("loss.sigma"));
        assert!(fails(CodeLoss { clustering: 0.0, ..CodeLoss::default() }).contains("nothing would make clusters"));
    }
}
