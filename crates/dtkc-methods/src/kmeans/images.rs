//! Items as points: made block by block, so that a batch is never held as numbers.

use dtkc_item::{Batch, Items};
use dtkc_ops::{Centres, add_rows, block_rows, for_each};

use super::points::{check_clusters, parts};
use super::sums::Sums;
use crate::LearnError;
use crate::learner::Passes;
use crate::places::Pass;
use crate::random::Random;
use crate::vectors::Vectors;

/// Bytes that the images which first centres are chosen from may take as numbers.
const SEEDING_BYTES: usize = 256 << 20;

/// What one look at some images found.
pub(super) struct Look {
    pub(super) labels: Vec<u32>,
    /// Squared distance to the nearest centre.
    pub(super) squares: Vec<f32>,
    pub(super) sums: Sums,
}

impl Look {
    /// Finds the nearest of `centres` for every item, shared between threads.
    pub(super) fn at(items: &Items, vectors: &Vectors, centres: &[f32]) -> Self {
        let (n, width) = (items.len(), vectors.len());
        let (mut labels, mut squares) = (vec![0; n], vec![0.0; n]);
        let rows = n.div_ceil(parts(centres.len())).max(1);
        let mut sums = vec![Sums::new(centres.len() / width, width); n.div_ceil(rows).max(1)];
        let centres = Centres::new(centres, width);
        let work = sums.iter_mut().zip(labels.chunks_mut(rows).zip(squares.chunks_mut(rows))).enumerate();
        for_each(work, |(part, (sums, (labels, squares)))| {
            let (mut first, rows) = (part * rows, block_rows(width));
            let mut values = vec![0.0; rows.min(labels.len()) * width];
            for (labels, squares) in labels.chunks_mut(rows).zip(squares.chunks_mut(rows)) {
                let values = &mut values[..labels.len() * width];
                vectors.write(items, first..first + labels.len(), values);
                first += labels.len();
                sums.take_block(values, &centres, labels, squares);
            }
        });
        Self { labels, squares, sums: Sums::total(sums) }
    }
}

/// What must be known about all images before the first centres can be chosen.
pub(super) struct Survey {
    /// Mean over the pixels of their variance between images.
    pub(super) variance: f64,
    /// Some images, or all, in the order of the set: `[n, width]`.
    pub(super) sample: Vec<f32>,
}

impl Survey {
    /// One pass. At most `most` images are kept, all of equal chance.
    pub(super) fn make(
        data: &mut dyn Passes,
        vectors: &Vectors,
        clusters: usize,
        most: usize,
        seed: u64,
    ) -> Result<Self, LearnError> {
        let (n, width) = (data.len(), vectors.len());
        check_clusters(clusters, n)?;
        let most = most.min(SEEDING_BYTES / (4 * width)).max(clusters).min(n);
        let places = places(n, most, seed);
        let mut sample = vec![0.0; most * width];
        let (mut sums, mut squares) = (vec![0.0; width], 0.0);
        for batch in data.batches(Pass::Everything) {
            let Batch { indices, items } = batch?;
            let values = vectors.values(&items);
            add_rows(&values, width, &vec![0; indices.len()], &mut sums);
            squares += values.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>();
            for (index, image) in indices.into_iter().zip(values.chunks_exact(width)) {
                if let Some(place) = place(&places, index) {
                    sample[place * width..][..width].copy_from_slice(image);
                }
            }
        }
        let count = n as f64;
        let means = sums.iter().map(|sum| (sum / count).powi(2)).sum::<f64>();
        Ok(Self { variance: (squares / count - means).max(0.0) / width as f64, sample })
    }
}

/// Which items are kept, in order; `None` where all are.
fn places(n: usize, most: usize, seed: u64) -> Option<Vec<u32>> {
    if most >= n {
        return None;
    }
    let mut random = Random::new(seed, b"sample..", 0);
    let mut items: Vec<u32> = (0..n as u32).collect();
    for at in 0..most {
        let other = at + random.below(n - at);
        items.swap(at, other);
    }
    items.truncate(most);
    items.sort_unstable();
    Some(items)
}

/// Where an item is kept.
fn place(places: &Option<Vec<u32>>, index: usize) -> Option<usize> {
    match places {
        None => Some(index),
        Some(places) => places.binary_search(&(index as u32)).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_different_items_in_order() {
        assert_eq!(places(5, 5, 1), None);
        let found = places(1000, 100, 1).unwrap_or_default();
        assert_eq!(found.len(), 100);
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]) && found[99] < 1000);
        assert!(found[50].abs_diff(500) < 200, "{}", found[50]);
        assert_ne!(places(1000, 100, 2), Some(found.clone()));
        assert_eq!(place(&Some(found.clone()), found[7] as usize), Some(7));
        assert_eq!(place(&None, 7), Some(7));
    }
}
