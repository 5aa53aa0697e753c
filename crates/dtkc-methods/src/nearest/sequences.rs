//! All sequences of a set, and as rows that can be compared: resampled to as many steps each.
//!
//! Values alone say which voice spoke as much as which word: two items of one kind may differ in the level and range of their
//! dimensions and in nothing else. Where a sequence goes relative to itself knows nothing of that, but loses what level and range
//! tell. Both side by side are near only where neither objects (REPRODUCING.md has what each is worth).

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
const MOST_VALUES: usize = 4096;
/// The same values twice: as they are, and relative to the sequence itself.
const FORMS: usize = 2;
/// Added to a deviation within a sequence, so that a dimension that hardly moves does not become noise. The deviation of all
/// steps of the set is 1.
const LEAST_DEVIATION: f32 = 0.1;

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
        let row = |&length: &usize| {
            let mut row = resample(rest.split_off(..length * dim).unwrap_or_default(), dim, steps);
            row.extend(relative(&row, dim));
            row
        };
        Self { values: lengths.iter().flat_map(row).collect(), width: FORMS * steps * dim }
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
    seconds_of_all_pairs(n, FORMS * compared_steps(dim) * dim)
}

fn compared_steps(dim: usize) -> usize {
    (MOST_VALUES / (FORMS * dim.max(1))).clamp(1, STEPS)
}

/// Every dimension with its own mean and deviation over the sequence taken out.
fn relative(row: &[f32], dim: usize) -> Vec<f32> {
    let mut moved = row.to_vec();
    for at in 0..dim {
        let values = || row.iter().skip(at).step_by(dim);
        let count = values().len().max(1) as f32;
        let mean = values().sum::<f32>() / count;
        let deviation = (values().map(|value| (value - mean).powi(2)).sum::<f32>() / count).sqrt();
        moved
            .iter_mut()
            .skip(at)
            .step_by(dim)
            .for_each(|value| *value = (*value - mean) / (deviation + LEAST_DEVIATION));
    }
    moved
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_sequence_and_the_sequence_relative_to_itself() {
        // x = [0, 1, 2, 5]: (x - x.mean()) / (x.std() + .1) in NumPy; a dimension that never moves is 0.
        let found = relative(&[0.0, 7.0, 1.0, 7.0, 2.0, 7.0, 5.0, 7.0], 2);
        let expected = [-1.014_801_5, 0.0, -0.507_400_8, 0.0, 0.0, 0.0, 1.522_202_3, 0.0];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
        let rows = Resampled::of(&[0.0, 1.0, 2.0, 5.0, 3.0, 3.0], &[4, 2], 1);
        assert_eq!((rows.len(), rows.width()), (2, FORMS * STEPS));
        assert_eq!(rows.values[..STEPS], resample(&[0.0, 1.0, 2.0, 5.0], 1, STEPS)[..]);
        assert_eq!(rows.values[FORMS * STEPS..], [vec![3.0; STEPS], vec![0.0; STEPS]].concat()[..]);
    }

    #[test]
    fn another_voice_is_nearer_than_another_word() {
        // A rise, the same rise at another level and range, and a fall at the level of the first.
        let wave = |level: f32, range: f32| (0..20).map(move |t| level + range * (t as f32 / 19.0 - 0.5));
        let steps: Vec<f32> = wave(0.0, 1.0).chain(wave(0.8, 1.6)).chain(wave(0.0, -1.0)).collect();
        let near = Resampled::of(&steps, &[20; 3], 1).neighbours(1, &|| false).unwrap();
        assert_eq!((near.of(0), near.of(2)), (&[1][..], &[0][..]));
    }
}
