//! Items that another network has described: their own vectors, vectors of views of them, what lies inside that network, and
//! what must be known about all of them before.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use dtkc_core::augment::BatchKey;
use dtkc_core::{StepMoments, Tapped, Views};
use dtkc_item::{FeatureShape, Items, TapShape, Taps};

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
    let Items::Features { shape, values } = items else { return Vec::new() };
    let FeatureShape { dim, views, .. } = shape;
    let mut random = Random::new(key.seed, b"features", (key.epoch << 32) ^ key.batch);
    let mut drawn = Vec::with_capacity(items.len() * dim);
    for item in values.chunks_exact(shape.len().max(1)) {
        let row = if *views > 0 { 1 + random.below(*views) } else { 0 };
        drawn.extend_from_slice(&item[row * dim..][..*dim]);
    }
    drawn
}

/// What lies inside the network that described the items, as companion objectives see a network's own blocks: `[n, ..]`,
/// twice below each other where the loss has two views of each item. It is the same for both: only images themselves are
/// looked into. Nothing of it is trained.
pub(crate) fn taps(items: &Items, views: Views, device: &Device) -> Vec<Tapped> {
    let Items::Features { shape, values } = items else { return Vec::new() };
    let (n, mut from) = (items.len(), shape.vectors());
    let mut found = Vec::new();
    for tap in shape.taps.iter() {
        let rows = values.chunks_exact(shape.len().max(1)).flat_map(|item| &item[from..from + tap.len()]);
        let values: Vec<f32> = rows.copied().collect();
        found.push(match tap {
            TapShape::Vector(size) => {
                let rows = Tensor::<2>::from_data(TensorData::new(values, [n, size]), device);
                Tapped::Vectors(for_views(rows, views))
            }
            TapShape::Maps { channels, height, width } => {
                let maps = Tensor::<4>::from_data(TensorData::new(values, [n, channels, height, width]), device);
                Tapped::Maps(for_views(maps.permute([0, 2, 3, 1]), views))
            }
        });
        from += tap.len();
    }
    found
}

fn for_views<const D: usize>(rows: Tensor<D>, views: Views) -> Tensor<D> {
    match views {
        Views::Single => rows,
        Views::Paired => Tensor::cat(vec![rows.clone(), rows], 0),
    }
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

/// The vectors of all items in the order of their set; `None` where they take more than `most` bytes.
pub(crate) fn read_features(
    data: &mut dyn Passes,
    shape: FeatureShape,
    most: usize,
) -> Result<Option<Items>, LearnError> {
    let vectors = FeatureShape { taps: Taps::NONE, ..shape };
    if data.len().saturating_mul(4 * vectors.len()) > most {
        return Ok(None);
    }
    let mut all = vec![0.0; data.len() * vectors.len()];
    for batch in data.batches(Pass::Everything) {
        let batch = batch?;
        let Items::Features { values, .. } = &batch.items else { continue };
        for (&index, item) in batch.indices.iter().zip(values.chunks_exact(shape.len().max(1))) {
            all[index * vectors.len()..][..vectors.len()].copy_from_slice(&item[..vectors.len()]);
        }
    }
    Ok(Some(Items::Features { shape: vectors, values: all }))
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

    const SHAPE: FeatureShape = FeatureShape { dim: 2, views: 2, taps: Taps::NONE };

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

    /// The values of a tap, row by row, and its sizes.
    fn read(tap: &Tapped) -> (Vec<usize>, Vec<f32>) {
        let (sizes, data) = match tap {
            Tapped::Vectors(rows) => (rows.dims().to_vec(), rows.to_data()),
            Tapped::Maps(maps) => (maps.dims().to_vec(), maps.to_data()),
        };
        (sizes, data.iter::<f32>().collect())
    }

    #[test]
    fn what_lies_inside_comes_behind_all_vectors_channels_last() {
        let maps = TapShape::Maps { channels: 2, height: 1, width: 3 };
        let shape = FeatureShape { dim: 1, views: 1, taps: Taps::new(&[TapShape::Vector(2), maps]).unwrap() };
        // Vectors 0 and 1, then 2 and 3, then two channels of three places.
        let items = Items::Features { shape, values: (0..20).map(|v| v as f32).collect() };
        let device = Device::flex();
        let found = taps(&items, Views::Single, &device);
        assert_eq!(read(&found[0]), (vec![2, 2], vec![2., 3., 12., 13.]));
        let expected = vec![4., 7., 5., 8., 6., 9., 14., 17., 15., 18., 16., 19.];
        assert_eq!(read(&found[1]), (vec![2, 1, 3, 2], expected.clone()));
        let twice = taps(&items, Views::Paired, &device);
        assert_eq!(read(&twice[1]), (vec![4, 1, 3, 2], [expected.clone(), expected].concat()));
        assert_eq!(own_vectors(&items), [0., 10.]);
        assert_eq!(drawn_vectors(&items, BatchKey { seed: 1, epoch: 0, batch: 0 }), [1., 11.]);
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
        let alone =
            Items::Features { shape: FeatureShape { dim: 2, views: 0, taps: Taps::NONE }, values: vec![1., 2.] };
        assert_eq!(drawn_vectors(&alone, BatchKey { seed: 1, epoch: 0, batch: 0 }), [1., 2.]);
    }
}
