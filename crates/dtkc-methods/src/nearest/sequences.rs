//! All sequences of a set, and as rows that can be compared: resampled to as many steps each.

use std::ops::Range;

use dtkc_core::augment::resample;
use dtkc_item::Items;

use super::images::seconds_of_all_pairs;
use super::neighbours::{Neighbours, Rows};
use crate::LearnError;
use crate::learner::Passes;
use crate::places::Pass;

/// Steps of the sequences that are compared: enough to tell who is near, and few enough to look at every pair.
const STEPS: usize = 32;
/// Most values of a row that are compared; of sequences with more dimensions fewer steps are.
const MOST_VALUES: usize = 2048;

/// All sequences in the order of their set; `None` where they take more than `most` bytes.
pub(crate) fn read_sequences(data: &mut dyn Passes, dim: usize, most: usize) -> Result<Option<Items>, LearnError> {
    let mut parts: Vec<Vec<f32>> = vec![Vec::new(); data.len()];
    let mut bytes = 0;
    for batch in data.batches(Pass::Everything) {
        let batch = batch?;
        let Some((mut steps, lengths)) = batch.items.steps() else { continue };
        bytes += 4 * steps.len();
        if bytes > most {
            return Ok(None);
        }
        for (&index, length) in batch.indices.iter().zip(lengths) {
            parts[index] = steps.split_off(..length * dim).unwrap_or_default().to_vec();
        }
    }
    let mut offsets = vec![0];
    let mut end = 0;
    offsets.extend(parts.iter().map(|part| {
        end += part.len() / dim;
        end
    }));
    Ok(Some(Items::Sequences { dim, values: parts.concat(), offsets }))
}

/// Sequences as rows whose distances say how alike they are.
pub(crate) struct Resampled {
    values: Vec<f32>,
    width: usize,
}

impl Resampled {
    /// From steps that were scaled.
    pub(crate) fn of(scaled: &[f32], lengths: &[usize], dim: usize) -> Self {
        let steps = compared_steps(dim);
        let mut rest = scaled;
        let row = |&length: &usize| resample(rest.split_off(..length * dim).unwrap_or_default(), dim, steps);
        Self { values: lengths.iter().flat_map(row).collect(), width: steps * dim }
    }

    /// The rows, one after the other.
    pub(crate) fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// The sequences that are most like each one.
    pub(crate) fn neighbours(&self, count: usize, stop: &dyn Fn() -> bool) -> Result<Neighbours, LearnError> {
        Neighbours::find(self, count, stop)
    }
}

impl Rows for Resampled {
    fn len(&self) -> usize {
        self.values.len() / self.width
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, range: Range<usize>, to: &mut [f32]) {
        to.copy_from_slice(&self.values[range.start * self.width..range.end * self.width]);
    }
}

/// Seconds that it takes to compare every pair of `n` sequences of that dimension, about, on two cores.
pub(crate) fn seconds_of_all_sequences(n: usize, dim: usize) -> f64 {
    seconds_of_all_pairs(n, compared_steps(dim) * dim)
}

fn compared_steps(dim: usize) -> usize {
    (MOST_VALUES / dim.max(1)).clamp(1, STEPS)
}
