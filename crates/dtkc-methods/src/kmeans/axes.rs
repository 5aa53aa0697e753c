//! Centres as a network: the space that they span, and memberships in it.

use dtkc_onnx::{Layer, Network, Weights};

use crate::symmetric::eigen;
use crate::vectors::Vectors;

/// An axis whose part of the spread of the centres is smaller than this is rounding.
const LEAST_PART: f64 = 1e-10;

/// The space that the centres span: at most k - 1 axes, on which differences of distances to centres do not change.
///
/// It is the embedding, because it is small, its first two axes show the clusters as far apart as two axes can, and what
/// it leaves out of an image is what no cluster depends on. Distances to the centres would not be independent of each
/// other, and the pixels themselves are no description.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axes {
    /// Number of axes, at least 1.
    pub(super) count: usize,
    /// `[width, count]`.
    weight: Vec<f32>,
    /// What the mean of the centres is at, negative: `[count]`.
    bias: Vec<f32>,
    /// `[count, k]`.
    head: Vec<f32>,
    /// `[k]`.
    head_bias: Vec<f32>,
}

impl Axes {
    /// The axes of centres `[k, width]`; a membership falls by e when the squared distance grows by `spread`.
    pub(super) fn new(centres: &[f32], width: usize, spread: f64) -> Self {
        let k = centres.len() / width;
        let (mean, offsets) = offsets(centres, width);
        let product = |a: usize, b: usize| -> f64 {
            offsets[a * width..][..width].iter().zip(&offsets[b * width..][..width]).map(|(a, b)| a * b).sum()
        };
        let mut gram = vec![0.0; k * k];
        for a in 0..k {
            for b in 0..=a {
                let value = product(a, b);
                (gram[a * k + b], gram[b * k + a]) = (value, value);
            }
        }
        let found = eigen(gram, k);
        let total: f64 = found.values.iter().sum();
        let count = found.values.iter().filter(|&&value| value > total * LEAST_PART).count().max(1);
        // Where every image is a centre the spread is nothing, and memberships still must be numbers.
        let scale = spread.max(total * 1e-4 / k as f64);
        let mut axes = Self {
            count,
            weight: vec![0.0; width * count],
            bias: vec![0.0; count],
            head: vec![0.0; count * k],
            head_bias: vec![0.0; k],
        };
        // Equal centres span nothing: one axis of zeros.
        if total <= 0.0 {
            return axes;
        }
        let mut lengths = vec![0.0; k];
        for axis in 0..count {
            let vector = &found.vectors[axis * k..][..k];
            let size = found.values[axis].sqrt();
            let mut at = 0.0;
            for j in 0..width {
                let value = (0..k).map(|c| vector[c] * offsets[c * width + j]).sum::<f64>() / size;
                axes.weight[j * count + axis] = value as f32;
                at += value * mean[j];
            }
            axes.bias[axis] = -at as f32;
            for c in 0..k {
                // Along its axis a centre is at the eigenvector's entry times the size.
                let place = vector[c] * size;
                axes.head[axis * k + c] = (2.0 * place / scale) as f32;
                lengths[c] += place * place;
            }
        }
        axes.head_bias = lengths.iter().map(|length| (-length / scale) as f32).collect();
        axes
    }

    /// Embedding and memberships of one image.
    pub(super) fn answer(&self, image: &[f32], embedding: &mut [f32], membership: &mut [f32]) {
        let mut place: Vec<f64> = self.bias.iter().map(|&bias| f64::from(bias)).collect();
        for (weights, &value) in self.weight.chunks_exact(self.count).zip(image) {
            place.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += f64::from(value) * f64::from(*weight));
        }
        let mut logits: Vec<f64> = self.head_bias.iter().map(|&bias| f64::from(bias)).collect();
        for (weights, place) in self.head.chunks_exact(logits.len()).zip(&place) {
            logits.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += place * f64::from(*weight));
        }
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        logits.iter_mut().for_each(|logit| *logit = (*logit - largest).exp());
        let total: f64 = logits.iter().sum();
        embedding.iter_mut().zip(&place).for_each(|(to, from)| *to = *from as f32);
        membership.iter_mut().zip(&logits).for_each(|(to, from)| *to = (from / total) as f32);
    }

    /// The same as layers.
    pub(super) fn network(&self, vectors: &Vectors) -> Network {
        let (width, k) = (vectors.len(), self.head_bias.len());
        let dense = |sizes: [usize; 2], weight: &[f32], bias: &[f32]| Layer::Dense {
            weight: Weights::new(sizes, weight.to_vec()),
            bias: bias.to_vec(),
        };
        let layers = vec![
            Layer::Flatten,
            dense([width, self.count], &self.weight, &self.bias),
            Layer::Embedding,
            dense([self.count, k], &self.head, &self.head_bias),
            Layer::Softmax,
        ];
        vectors.network(layers)
    }
}

/// The mean of the centres, and the centres less it.
fn offsets(centres: &[f32], width: usize) -> (Vec<f64>, Vec<f64>) {
    let k = (centres.len() / width) as f64;
    let mut mean = vec![0.0; width];
    for centre in centres.chunks_exact(width) {
        mean.iter_mut().zip(centre).for_each(|(sum, &value)| *sum += f64::from(value) / k);
    }
    let less =
        |centre: &[f32]| centre.iter().zip(&mean).map(|(&value, mean)| f64::from(value) - mean).collect::<Vec<_>>();
    let offsets = centres.chunks_exact(width).flat_map(less).collect();
    (mean, offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn memberships_are_those_of_the_distances() {
        let (k, width, spread) = (5, 12, 0.7);
        let mut random = Random::new(1, b"test....", 0);
        let centres: Vec<f32> = (0..k * width).map(|_| random.unit() as f32).collect();
        let axes = Axes::new(&centres, width, spread);
        assert_eq!(axes.count, k - 1);
        for _ in 0..20 {
            let image: Vec<f32> = (0..width).map(|_| random.unit() as f32).collect();
            let square = |c: &[f32]| c.iter().zip(&image).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
            let weights: Vec<f64> = centres.chunks_exact(width).map(|c| (-square(c) / spread).exp()).collect();
            let (mut embedding, mut membership) = (vec![0.0; k - 1], vec![0.0; k]);
            axes.answer(&image, &mut embedding, &mut membership);
            for (found, weight) in membership.iter().zip(&weights) {
                let expected = weight / weights.iter().sum::<f64>();
                assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} {expected}");
            }
        }
    }

    #[test]
    fn the_first_axis_shows_most() {
        // Three centres on a line and one a little beside it.
        let centres = [0.0, 0.0, 0.0, 10.0, 0.0, 0.0, 5.0, 0.0, 0.0, 5.0, 1.0, 0.0];
        let axes = Axes::new(&centres, 3, 1.0);
        assert_eq!(axes.count, 2);
        let at = |image: &[f32]| {
            let (mut embedding, mut membership) = ([0.0; 2], [0.0; 4]);
            axes.answer(image, &mut embedding, &mut membership);
            embedding
        };
        let (left, right) = (at(&centres[..3]), at(&centres[3..6]));
        assert!(((right[0] - left[0]).abs() - 10.0).abs() < 0.05, "{left:?} {right:?}");
    }

    #[test]
    fn equal_centres_have_equal_memberships() {
        let axes = Axes::new(&[0.5; 6], 2, 0.0);
        let (mut embedding, mut membership) = ([9.0; 1], [0.0; 3]);
        axes.answer(&[0.1, 0.9], &mut embedding, &mut membership);
        assert_eq!(embedding, [0.0]);
        assert!(membership.iter().all(|p| (p - 1.0 / 3.0).abs() < 1e-6));
        let image = dtkc_item::ImageShape { height: 1, width: 2, channels: 1 };
        assert_eq!(axes.network(&Vectors::of(image.into(), 0)).clusters(), Ok(3));
    }
}
