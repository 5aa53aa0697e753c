//! Random numbers for what is not a network: first centres, samples, first guesses. The same bits everywhere.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Numbers of one purpose: every purpose and index has a stream of its own.
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    pub(crate) fn new(seed: u64, purpose: &[u8; 8], index: u64) -> Self {
        let mut key = [0; 32];
        for (slot, value) in key.chunks_exact_mut(8).zip([seed, u64::from_le_bytes(*purpose), index]) {
            slot.copy_from_slice(&value.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// Uniform in [0, 1), 53 random bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..n; 0 where n is 0. The bias is below 2^-32 for every n that fits a memory.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, purpose, index| {
            let mut random = Random::new(seed, purpose, index);
            (0..8).map(|_| random.unit()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, b"test....", 0), draw(1, b"test....", 0));
        for other in [draw(2, b"test....", 0), draw(1, b"rest....", 0), draw(1, b"test....", 1)] {
            assert_ne!(other, draw(1, b"test....", 0));
        }
    }

    #[test]
    fn numbers_below_are_even() {
        let mut random = Random::new(3, b"test....", 0);
        let mut counts = [0; 5];
        (0..50_000).for_each(|_| counts[random.below(5)] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
        let mean = (0..50_000).map(|_| random.unit()).sum::<f64>() / 5e4;
        assert!((mean - 0.5).abs() < 5e-3, "{mean}");
    }
}
