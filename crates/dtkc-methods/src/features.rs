//! Items that another network has described: their own vectors, vectors of views of them, and what must be known about all
//! of them before.

use std::ops::Range;

use dtkc_core::StepMoments;
use dtkc_core::augment::BatchKey;
use dtkc_item::{FeatureShape, Items};

use crate::LearnError;
use crate::learner::Passes;
use crate::nearest::{Neighbours, Rows};
use crate::places::Pass;
use crate::random::Random;

/// The vectors of the items themselves, one after the other; none for items of another kind.
pub(crate) fn own_vectors(items: &Items) -> Vec<f32> {
    let Items::Features { shape, values } = items else { return Vec::new() };
    values.chunks_exact(shape.len().max(1)).flat_map(|item| &item[..shape.dim]).copied().collect()
}

/// A random view of each item; of one that has none its own vector.
pub(crate) fn drawn_vectors(items: &Items, key: BatchKey) -> Vec<f32> {
    let Items::Features { shape: FeatureShape { dim, views }, values } = items else { return Vec::new() };
    let mut random = Random::new(key.seed, b"features", (key.epoch << 32) ^ key.batch);
    let mut drawn = Vec::with_capacity(items.len() * dim);
    for item in values.chunks_exact(((1 + views) * dim).max(1)) {
        let row = if *views > 0 { 1 + random.below(*views) } else { 0 };
        drawn.extend_from_slice(&item[row * dim..][..*dim]);
    }
    drawn
}

/// Mean of every dimension and one deviation for all: what is alike stays alike, whatever a dimension is worth.
pub(crate) fn vector_moments(data: &mut dyn Passes, dim: usize) -> Result<(Vec<f32>, Vec<f32>), LearnError> {
    let mut moments = StepMoments::new(dim);
    for batch in data.batches(Pass::Everything) {
        moments.add(&own_vectors(&batch?.items));
        if !moments.is_finite() {
            let text = "the set has features that are not finite: make them again with another --backbone-layer";
            return Err(LearnError::Unsuitable(text.into()));
        }
    }
    Ok((moments.means(), vec![moments.overall_deviation(); dim]))
}

/// All items in the order of their set; `None` where they take more than `most` bytes.
pub(crate) fn read_features(
    data: &mut dyn Passes,
    shape: FeatureShape,
    most: usize,
) -> Result<Option<Items>, LearnError> {
    if data.len().saturating_mul(4 * shape.len()) > most {
        return Ok(None);
    }
    let mut all = vec![0.0; data.len() * shape.len()];
    for batch in data.batches(Pass::Everything) {
        let batch = batch?;
        let Items::Features { values, .. } = &batch.items else { continue };
        for (&index, item) in batch.indices.iter().zip(values.chunks_exact(shape.len().max(1))) {
            all[index * shape.len()..][..shape.len()].copy_from_slice(item);
        }
    }
    Ok(Some(Items::Features { shape, values: all }))
}

/// The items' own vectors as rows whose distances say how alike they are.
pub(crate) struct Described {
    values: Vec<f32>,
    width: usize,
}

impl Described {
    /// Of these items.
    pub(crate) fn of(items: &Items, shape: FeatureShape) -> Self {
        Self { values: own_vectors(items), width: shape.dim }
    }

    /// The items that are most like each one.
    pub(crate) fn neighbours(&self, count: usize, stop: &dyn Fn() -> bool) -> Result<Neighbours, LearnError> {
        Neighbours::find(self, count, stop)
    }
}

impl Rows for Described {
    fn len(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, range: Range<usize>, to: &mut [f32]) {
        to.copy_from_slice(&self.values[range.start * self.width..range.end * self.width]);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SHAPE: FeatureShape = FeatureShape { dim: 2, views: 2 };

    fn items() -> Items {
        Items::Features { shape: SHAPE, values: (0..12).map(|v| v as f32).collect() }
    }

    #[test]
    fn own_vectors_come_first() {
        assert_eq!(own_vectors(&items()), [0., 1., 6., 7.]);
        let rows = Described::of(&items(), SHAPE);
        assert_eq!((rows.len(), rows.width()), (2, 2));
        assert_eq!(rows.neighbours(1, &|| false).unwrap().items, [1, 0]);
    }

    #[test]
    fn every_view_is_drawn_and_an_item_itself_is_not() {
        let mut seen = std::collections::BTreeSet::new();
        for batch in 0..50 {
            let drawn = drawn_vectors(&items(), BatchKey { seed: 1, epoch: 0, batch });
            assert_eq!(drawn.len(), 4);
            seen.extend(drawn.chunks_exact(2).map(|row| (row[0] as i32, row[1] as i32)));
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(2, 3), (4, 5), (8, 9), (10, 11)]);
        let alone = Items::Features { shape: FeatureShape { dim: 2, views: 0 }, values: vec![1., 2.] };
        assert_eq!(drawn_vectors(&alone, BatchKey { seed: 1, epoch: 0, batch: 0 }), [1., 2.]);
    }
}
