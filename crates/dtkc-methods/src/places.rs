//! Every seed and every order of items that has a purpose, all derived from the seed of the run.
//!
//! Data order, initial weights and augmentation each draw from a generator of their own, so that a change
//! in how many numbers one of them draws does not move the others, and so that any of them can be rebuilt
//! from its position alone when a run is resumed: no generator has hidden state that must be saved.

use dtkc_core::augment::BatchKey;
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

/// Seed of the initial weights of a restart.
pub fn weights(seed: u64, restart: usize) -> u64 {
    derive(seed, Purpose::Weights, &[restart as u64])
}

/// The random views of one step of a restart.
pub fn views(seed: u64, restart: usize, stage: usize, epoch: usize, batch: usize) -> BatchKey {
    let (restart, stage) = (restart as u64, stage as u64);
    // The first stage has the seed that there was before there were stages.
    let seed = match stage {
        0 => derive(seed, Purpose::Augmentation, &[restart]),
        _ => derive(seed, Purpose::Augmentation, &[restart, stage]),
    };
    BatchKey { seed, epoch: epoch as u64, batch: batch as u64 }
}

/// The fixed views of a batch on which restarts are compared.
pub fn comparison_views(seed: u64, batch: usize) -> BatchKey {
    BatchKey { seed: derive(seed, Purpose::Comparison, &[]), epoch: 0, batch: batch as u64 }
}

/// One pass over the items in an order of its own.
///
/// The loader shuffles by the seed of the run and the number of an epoch. These are all the numbers that are used, so
/// that no two purposes share an order by accident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// An epoch of training.
    Training {
        /// Restart, from 0.
        restart: usize,
        /// Stage, from 0.
        stage: usize,
        /// Epoch of the stage, from 0.
        epoch: usize,
    },
    /// An epoch of one of the short runs that try a number of clusters.
    Trial {
        /// First or second run.
        attempt: usize,
        /// Epoch, from 0.
        epoch: usize,
    },
    /// The batches on which restarts are compared.
    Comparison,
    /// All items, for statistics, assignments and whatever a method wants to know about the whole set.
    Everything,
    /// The items on which the numbers of clusters are compared.
    Sample,
}

impl Pass {
    /// The loader's number of this order.
    pub fn epoch(self) -> u64 {
        match self {
            Pass::Training { restart, stage, epoch } => {
                ((restart as u64) << 32) | ((stage as u64) << 28) | epoch as u64
            }
            Pass::Trial { attempt, epoch } => (1 << 61) | ((attempt as u64) << 40) | epoch as u64,
            Pass::Comparison => 1 << 62,
            Pass::Everything => (1 << 62) + 2,
            Pass::Sample => (1 << 62) + 4,
        }
    }
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

    #[test]
    fn no_two_passes_share_an_order() {
        let mut seen = std::collections::HashSet::new();
        for a in [0, 1, 2, 19] {
            for epoch in [0, 1, 99_999] {
                assert!(seen.insert(Pass::Trial { attempt: a, epoch }.epoch()));
                for stage in 0..3 {
                    assert!(seen.insert(Pass::Training { restart: a, stage, epoch }.epoch()));
                }
            }
        }
        for pass in [Pass::Comparison, Pass::Everything, Pass::Sample] {
            assert!(seen.insert(pass.epoch()));
        }
    }
}
