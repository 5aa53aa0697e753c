//! One seed per purpose, all derived from the seed of the run.
//!
//! Data order, initial weights and augmentation each draw from a generator of their own, so that a change
//! in how many numbers one of them draws does not move the others, and so that any of them can be rebuilt
//! from its position alone when a run is resumed: no generator has hidden state that must be saved.

use sha2::{Digest, Sha256};

/// What a derived seed is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Initial weights of a restart.
    Weights,
    /// Augmentation of one training step.
    Augmentation,
    /// Order of the images.
    Order,
    /// The fixed batches on which restarts are compared.
    Comparison,
    /// Samples drawn for a score, for example the silhouette.
    Sample,
}

impl Purpose {
    fn label(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::Augmentation => "augmentation",
            Self::Order => "order",
            Self::Comparison => "comparison",
            Self::Sample => "sample",
        }
    }
}

/// A seed for `purpose`, different for every list of `indices` (restart, epoch, step).
pub fn derive(seed: u64, purpose: Purpose, indices: &[u64]) -> u64 {
    let mut hash = Sha256::new();
    hash.update(purpose.label().as_bytes());
    hash.update(seed.to_le_bytes());
    for index in indices {
        hash.update(index.to_le_bytes());
    }
    let digest = hash.finalize();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_purpose_and_position_has_its_own_seed() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..3 {
            for purpose in [Purpose::Weights, Purpose::Augmentation, Purpose::Order, Purpose::Comparison] {
                for restart in 0..3 {
                    for step in 0..3 {
                        assert!(seen.insert(derive(seed, purpose, &[restart, step])));
                    }
                }
            }
        }
    }

    #[test]
    fn the_value_does_not_change_between_versions() {
        // From Python: int.from_bytes(hashlib.sha256(b"weights" + (7).to_bytes(8, "little")
        // + (2).to_bytes(8, "little")).digest()[:8], "little")
        assert_eq!(derive(7, Purpose::Weights, &[2]), 16276707106071724458);
    }
}
