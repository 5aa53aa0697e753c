//! How long the sequences of a set are, as far as a forecast needs it.

use serde::{Deserialize, Serialize};

/// Sequences whose lengths are kept one by one.
const KEPT: usize = 10;

/// Time steps of a set of sequences.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepCounts {
    /// Those of all sequences together.
    pub all: usize,
    /// Those of the longest sequences, one by one, the longest first; all others are at most as long as the last.
    pub longest: Vec<usize>,
}

impl StepCounts {
    /// From the length of every sequence.
    pub fn of(lengths: &[usize]) -> Self {
        let mut longest = lengths.to_vec();
        longest.sort_unstable_by(|a, b| b.cmp(a));
        longest.truncate(KEPT);
        Self { all: lengths.iter().sum(), longest }
    }

    /// The most steps that so many sequences can have together, about: a few long ones do not count for all.
    pub fn most(&self, sequences: usize) -> usize {
        let known: usize = self.longest.iter().take(sequences).sum();
        let others = sequences.saturating_sub(self.longest.len());
        (known + others * self.longest.last().copied().unwrap_or(0)).min(self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_sequence_counts_once() {
        let mut lengths = vec![100; 500];
        lengths[77] = 1_000_000;
        let counts = StepCounts::of(&lengths);
        assert_eq!((counts.all, counts.longest[0], counts.longest.len()), (1_049_900, 1_000_000, 10));
        assert_eq!([1, 2, 120].map(|n| counts.most(n)), [1_000_000, 1_000_100, 1_011_900]);
        assert_eq!(counts.most(10_000), 1_049_900, "no more than there are");
        assert_eq!(StepCounts::of(&[3, 9]).most(5), 12);
    }
}
