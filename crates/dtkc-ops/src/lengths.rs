//! How long the sequences of a batch are.

use std::ops::Range;
use std::sync::Arc;

/// The lengths of the sequences of a batch whose steps lie one after the other, sequence after sequence: `[steps, values]`.
/// There is no padding that could leak into a result. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lengths {
    /// Where each sequence begins, and the end.
    offsets: Arc<[usize]>,
}

impl Lengths {
    /// Sequences of so many steps each.
    pub fn new(lengths: &[usize]) -> Self {
        let mut end = 0;
        let ends = lengths.iter().map(|length| {
            end += length;
            end
        });
        Self { offsets: std::iter::once(0).chain(ends).collect() }
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Steps of all sequences together.
    pub fn steps(&self) -> usize {
        self.offsets[self.len()]
    }

    /// The steps of one sequence among those of all.
    pub fn range(&self, sequence: usize) -> Range<usize> {
        self.offsets[sequence]..self.offsets[sequence + 1]
    }

    /// The length of every sequence.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.offsets.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// The sequences, the longest first, equal ones in their order.
    pub(crate) fn longest_first(&self) -> Vec<usize> {
        let lengths: Vec<usize> = self.iter().collect();
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|&sequence| std::cmp::Reverse(lengths[sequence]));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_become_ranges() {
        let lengths = Lengths::new(&[2, 0, 3]);
        assert_eq!((lengths.len(), lengths.steps(), lengths.is_empty()), (3, 5, false));
        assert_eq!([0, 1, 2].map(|i| lengths.range(i)), [0..2, 2..2, 2..5]);
        assert_eq!(lengths.longest_first(), [2, 0, 1]);
        assert_eq!(lengths.iter().collect::<Vec<_>>(), [2, 0, 3]);
        assert!(Lengths::new(&[]).is_empty() && Lengths::new(&[]).steps() == 0);
    }
}
