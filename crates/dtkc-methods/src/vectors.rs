//! Items as vectors, for methods that know nothing else: an image's pixels scaled by its own range, a sequence scaled by its
//! set and resampled, a vector of another network scaled by its set.

use std::ops::Range;

use dtkc_core::augment::resample;
use dtkc_core::{NamedArray, Values, scale_pixels_into, scale_steps};
use dtkc_item::{FeatureShape, ImageShape, ItemShape, Items};
use dtkc_onnx::{Layer, Network};

use crate::features::vector_moments;
use crate::learner::Passes;
use crate::sequences::step_moments;
use crate::{LearnError, Task, arrays};

/// Steps of a resampled sequence, at least and at most: as many as sequences have on average in between.
const FEWEST_STEPS: usize = 8;
const MOST_STEPS: usize = 64;
/// Most values of a vector; sequences with more dimensions get fewer steps.
const MOST_VALUES: usize = 4096;

/// How the items of a set become vectors of one length.
#[derive(Debug, Clone)]
pub(crate) struct Vectors {
    input: ItemShape,
    /// Of an image itself; steps by dimensions of a resampled sequence.
    shape: ImageShape,
    scaling: Option<Scaling>,
}

/// The scaling of sequences, per dimension.
#[derive(Debug, Clone)]
struct Scaling {
    mean: Vec<f32>,
    deviation: Vec<f32>,
}

impl Vectors {
    /// For the items of a task.
    pub(crate) fn new(task: &Task) -> Self {
        Self::of(task.input, task.length)
    }

    /// For items like these; sequences have `length` steps on average.
    pub(crate) fn of(input: ItemShape, length: usize) -> Self {
        let (shape, scaling) = match input {
            ItemShape::Image(shape) => (shape, None),
            ItemShape::Sequence { dim } => {
                let most = (MOST_VALUES / dim.max(1)).clamp(2, MOST_STEPS);
                let height = length.clamp(FEWEST_STEPS.min(most), most);
                let scaling = Scaling { mean: vec![0.0; dim], deviation: vec![1.0; dim] };
                (ImageShape { height, width: dim, channels: 1 }, Some(scaling))
            }
            ItemShape::Features(FeatureShape { dim, .. }) => {
                let scaling = Scaling { mean: vec![0.0; dim], deviation: vec![1.0; dim] };
                (ImageShape { height: 1, width: dim, channels: 1 }, Some(scaling))
            }
        };
        Self { input, shape, scaling }
    }

    /// A vector's values in rows and columns.
    pub(crate) fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Values of a vector.
    pub(crate) fn len(&self) -> usize {
        self.shape.len()
    }

    /// Learns the scaling of sequences or features.
    pub(crate) fn learn(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        match self.input {
            ItemShape::Image(_) => {}
            ItemShape::Sequence { dim } => {
                let moments = step_moments(data, dim)?;
                self.scaling = Some(Scaling { mean: moments.means(), deviation: moments.deviations() });
            }
            ItemShape::Features(shape) => {
                let (mean, deviation) = vector_moments(data, shape.dim)?;
                self.scaling = Some(Scaling { mean, deviation });
            }
        }
        Ok(())
    }

    /// Writes the vectors of some items.
    pub(crate) fn write(&self, items: &Items, range: Range<usize>, to: &mut [f32]) {
        match (items, &self.scaling) {
            (Items::Images { shape, pixels }, _) => {
                scale_pixels_into(&pixels[range.start * shape.len()..range.end * shape.len()], *shape, to);
            }
            (Items::Sequences { dim, values, offsets }, Some(scaling)) => {
                for (item, to) in range.zip(to.chunks_exact_mut(self.len())) {
                    let steps = &values[offsets[item] * dim..offsets[item + 1] * dim];
                    to.copy_from_slice(&resample(
                        &scale_steps(steps, &scaling.mean, &scaling.deviation),
                        *dim,
                        self.shape.height,
                    ));
                }
            }
            (Items::Features { shape, values }, Some(scaling)) => {
                for (item, to) in range.zip(to.chunks_exact_mut(self.len())) {
                    let own = &values[item * shape.len()..][..shape.dim];
                    to.copy_from_slice(&scale_steps(own, &scaling.mean, &scaling.deviation));
                }
            }
            // Whoever has this has refused items of another kind.
            (Items::Sequences { .. } | Items::Features { .. }, None) => to.fill(0.0),
        }
    }

    /// The vectors of all items.
    pub(crate) fn values(&self, items: &Items) -> Vec<f32> {
        let mut values = vec![0.0; items.len() * self.len()];
        self.write(items, 0..items.len(), &mut values);
        values
    }

    /// A network of layers that begin with [`Layer::Flatten`]; the scaling and the resampling are put before them.
    pub(crate) fn network(&self, layers: Vec<Layer>) -> Network {
        let mut all = Vec::new();
        if let Some(Scaling { mean, deviation }) = &self.scaling {
            all.push(Layer::Standardize { mean: mean.clone(), deviation: deviation.clone() });
            if self.input.dim().is_some() {
                all.push(Layer::Resample { steps: self.shape.height });
            }
        }
        // Features are vectors already.
        let is_flat = matches!(self.input, ItemShape::Features(_));
        all.extend(layers.into_iter().skip_while(|layer| is_flat && matches!(layer, Layer::Flatten)));
        Network { input: self.input, layers: all }
    }

    /// What belongs to the weights of a model.
    pub(crate) fn save(&self) -> Vec<NamedArray> {
        let list = |name, values: &Vec<f32>| NamedArray::list(name, Values::F32(values.clone()));
        let both = |scaling: &Scaling| vec![list(MEAN, &scaling.mean), list(DEVIATION, &scaling.deviation)];
        self.scaling.as_ref().map(both).unwrap_or_default()
    }

    /// Takes [`save`](Self::save) back.
    pub(crate) fn restore(&mut self, saved: &[NamedArray]) -> Result<(), LearnError> {
        if let Some(dim) = self.scaling.as_ref().map(|scaling| scaling.mean.len()) {
            let (mean, deviation) = (arrays::f32s(saved, MEAN, Some(dim))?, arrays::f32s(saved, DEVIATION, Some(dim))?);
            self.scaling = Some(Scaling { mean, deviation });
        }
        Ok(())
    }

    /// Arrays without those of [`save`](Self::save).
    pub(crate) fn others(arrays: &[NamedArray]) -> Vec<NamedArray> {
        arrays.iter().filter(|array| array.name != MEAN && array.name != DEVIATION).cloned().collect()
    }
}

const MEAN: &str = "scaling.mean";
const DEVIATION: &str = "scaling.deviation";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_the_mean_length_and_the_dimensions() {
        let steps = |dim, length| Vectors::of(ItemShape::Sequence { dim }, length).shape().height;
        assert_eq!([steps(3, 120), steps(13, 40), steps(1, 1), steps(1000, 50), steps(60_000, 50)], [64, 40, 8, 4, 2]);
    }

    #[test]
    fn sequences_are_scaled_resampled_and_come_back_from_a_checkpoint() {
        let mut vectors = Vectors::of(ItemShape::Sequence { dim: 2 }, 8);
        vectors.scaling = Some(Scaling { mean: vec![1.0, 0.0], deviation: vec![2.0, 1.0] });
        let items = Items::Sequences { dim: 2, values: vec![9., 9., 1., 0., 15., 7.], offsets: vec![0, 1, 3] };
        let found = vectors.values(&items);
        // The first is one step: everywhere the same. The second is a line from (0, 0) to (7, 7).
        let line: Vec<f32> = (0..8).flat_map(|i| [i as f32, i as f32]).collect();
        assert_eq!(found[..16], [4.0f32, 9.0].repeat(8));
        assert!(found[16..].iter().zip(&line).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
        let mut other = Vectors::of(ItemShape::Sequence { dim: 2 }, 8);
        other.restore(&vectors.save()).unwrap();
        assert_eq!(other.values(&items), found);
        let names: Vec<String> =
            vectors.network(vec![Layer::Flatten]).layers.iter().map(|l| format!("{l:?}")).collect();
        assert!(names[0].starts_with("Standardize") && names[1] == "Resample { steps: 8 }" && names[2] == "Flatten");
    }
}
