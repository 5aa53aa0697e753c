//! Sequences for a model: which it takes, and how those of a batch are put side by side.

use std::ops::Range;

use dtkc_item::ItemError;
use dtkc_onnx::Largest;

/// A run keeps up to so many values of the size of the largest one: those of ONNX Runtime's GRU, measured.
pub(crate) const VALUES_AT_ONCE: u64 = 8;

/// What running one sequence may take at most, whatever was asked for.
const MOST_BYTES: u64 = 2 << 30;

/// The sequences that a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceSpec {
    /// Values per time step.
    pub dim: usize,
    /// The most steps of one.
    pub max_steps: usize,
}

impl SequenceSpec {
    /// The sequences of up to `max_steps` steps of a model with these values, as far as its memory stays bounded.
    pub(crate) fn new(dim: usize, max_steps: usize, largest: Largest) -> Self {
        let most = usize::try_from(MOST_BYTES / run_bytes(largest, 1)).unwrap_or(usize::MAX);
        Self { dim, max_steps: max_steps.min(most).max(1) }
    }

    /// Says why a sequence cannot be used: another dimension, no steps, too many of them, values that are no numbers.
    pub fn check(&self, dim: usize, values: &[f32]) -> Result<(), ItemError> {
        if dim != self.dim {
            return Err(ItemError::other_dimension(dim, self.dim));
        }
        self.check_steps(values.len() / dim)?;
        ItemError::missing_values(values, dim).map_or(Ok(()), Err)
    }

    /// The part of [`SequenceSpec::check`] for which the values need not be there yet.
    pub fn check_steps(&self, steps: usize) -> Result<(), ItemError> {
        match steps {
            0 => Err(ItemError::no_steps()),
            steps if steps > self.max_steps => {
                let limit = self.max_steps;
                let text = format_args!(
                    "the sequence has {steps} steps, more than the limit of {limit}; shorten it, or raise the limit with --max-steps"
                );
                Err(ItemError::new("too_long", text))
            }
            _ => Ok(()),
        }
    }
}

/// Bytes that a run of so many steps takes inside the model.
pub(crate) fn run_bytes(largest: Largest, steps: usize) -> u64 {
    let values = (steps as u64).saturating_mul(largest.step as u64).saturating_add(largest.item as u64);
    values.saturating_mul(VALUES_AT_ONCE * size_of::<f32>() as u64)
}

/// Sequences of similar length, so that little has to be filled up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Which ones.
    pub members: Vec<usize>,
    /// Steps of the longest.
    pub time: usize,
}

/// Sorts sequences into groups: in each the longest is at most twice as long as the shortest, and there are as many as
/// `most` says for its length, at least one. `offsets` say where each begins, and the end.
pub(crate) fn groups(offsets: &[usize], most: impl Fn(usize) -> usize) -> Vec<Group> {
    let length = |member: usize| offsets[member + 1] - offsets[member];
    let mut order: Vec<usize> = (0..offsets.len().saturating_sub(1)).collect();
    order.sort_by_key(|&member| std::cmp::Reverse(length(member)));
    let mut groups: Vec<Group> = Vec::new();
    for member in order {
        match groups.last_mut() {
            Some(group) if 2 * length(member) >= group.time && group.members.len() < most(group.time) => {
                group.members.push(member);
            }
            _ => groups.push(Group { members: vec![member], time: length(member) }),
        }
    }
    groups
}

/// A group side by side, as a model takes it.
#[derive(Debug, Default)]
pub(crate) struct Padded {
    /// `[members, time, dim]`, zeros behind each end.
    pub values: Vec<f32>,
    /// Steps of each.
    pub lengths: Vec<i64>,
    /// Steps of the longest.
    pub time: usize,
    /// Values per step.
    pub dim: usize,
}

impl Padded {
    /// Puts the members of a group side by side, in the memory that is there.
    pub fn fill(&mut self, group: &Group, dim: usize, values: &[f32], offsets: &[usize]) {
        (self.time, self.dim) = (group.time, dim);
        self.values.clear();
        self.lengths.clear();
        let each = group.time * dim;
        for (place, &member) in group.members.iter().enumerate() {
            let Range { start, end } = offsets[member]..offsets[member + 1];
            self.values.extend_from_slice(&values[start * dim..end * dim]);
            self.values.resize((place + 1) * each, 0.0);
            self.lengths.push((end - start) as i64);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn offsets(lengths: &[usize]) -> Vec<usize> {
        std::iter::once(0)
            .chain(lengths.iter().scan(0, |end, length| {
                *end += length;
                Some(*end)
            }))
            .collect()
    }

    #[test]
    fn sequences_of_similar_length_are_put_together() {
        let found = groups(&offsets(&[5, 100, 9, 60, 4, 50, 10]), |time| 220 / time);
        let group = |members: &[usize], time| Group { members: members.to_vec(), time };
        assert_eq!(found, [group(&[1, 3], 100), group(&[5], 50), group(&[6, 2, 0], 10), group(&[4], 4)]);
        assert_eq!(groups(&[0], |_| 10), []);
        // One that is longer than all that may be run at once is alone.
        assert_eq!(groups(&offsets(&[7, 7]), |_| 0), [group(&[0], 7), group(&[1], 7)]);
    }

    #[test]
    fn every_sequence_is_in_one_group_and_padding_is_bounded() {
        let lengths: Vec<usize> = (0..500).map(|i| 1 + (i * i * 7919) % 300).collect();
        let found = groups(&offsets(&lengths), |time| 4000 / time);
        let mut members: Vec<usize> = found.iter().flat_map(|group| group.members.clone()).collect();
        members.sort_unstable();
        assert_eq!(members, (0..500).collect::<Vec<_>>());
        for Group { members, time } in &found {
            assert!(members.len() * time <= 4000);
            assert!(members.iter().all(|&member| (time.div_ceil(2)..=*time).contains(&lengths[member])));
        }
    }

    #[test]
    fn members_are_filled_up_with_zeros() {
        let values: Vec<f32> = (1..=8).map(|v| v as f32).collect();
        let mut padded = Padded { values: vec![9.0; 50], ..Padded::default() };
        padded.fill(&Group { members: vec![1, 0], time: 3 }, 2, &values, &[0, 1, 4]);
        assert_eq!(padded.values, [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!((padded.lengths.as_slice(), padded.time, padded.dim), (&[3, 1][..], 3, 2));
    }

    #[test]
    fn what_cannot_be_used_is_told_with_both_numbers() {
        let spec = SequenceSpec { dim: 2, max_steps: 3 };
        let told = |dim: usize, values: &[f32]| {
            spec.check(dim, values).map_err(|error| (error.code.into_owned(), error.message)).unwrap_err()
        };
        assert_eq!(spec.check(2, &[0.0; 6]), Ok(()));
        assert_eq!(told(3, &[0.0; 3]).1, "the sequence has 3 values a step and the model takes 2");
        assert_eq!(told(1, &[0.0; 3]).1, "the sequence has 1 value a step and the model takes 2");
        assert_eq!(told(2, &[]).0, "no_steps");
        assert!(told(2, &[0.0; 8]).1.starts_with("the sequence has 4 steps, more than the limit of 3;"));
        assert!(told(2, &[0.0, f32::INFINITY]).1.contains("dimension 2 of step 1"));
    }

    #[test]
    fn memory_is_bounded_however_wide_a_step_is() {
        let wide = SequenceSpec::new(65_536, usize::MAX, Largest { item: 1, step: 65_536 });
        assert!(run_bytes(Largest { item: 1, step: 65_536 }, wide.max_steps) <= MOST_BYTES);
        assert!(wide.max_steps >= 1000);
        assert_eq!(SequenceSpec::new(3, 1000, Largest { item: 1, step: 64 }).max_steps, 1000);
    }
}
