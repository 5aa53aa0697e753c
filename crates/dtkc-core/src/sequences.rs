//! Sequences on their way to the network: their scaling, learnt from the data, and a batch of them.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use dtkc_ops::Lengths;

use crate::model::layers::set_constant;
use crate::model::state::values;

/// Sequences as the network takes them: scaled, one after the other, nothing between them.
#[derive(Debug, Clone)]
pub struct Sequences {
    /// `[steps, dim]`.
    pub values: Tensor<2>,
    /// How long they are, at least one step each.
    pub lengths: Lengths,
}

impl Sequences {
    /// From values that `Scaling::apply` scaled.
    ///
    /// # Panics
    /// Panics when the values are not those of so many steps.
    pub fn new(scaled: Vec<f32>, dim: usize, lengths: Lengths, device: &Device) -> Self {
        let values = Tensor::from_data(TensorData::new(scaled, [lengths.steps(), dim]), device);
        Self { values, lengths }
    }
}

/// Mean and deviation of every dimension over the steps of all sequences: part of the model, learnt before its weights.
#[derive(Module, Debug)]
pub(crate) struct Scaling {
    pub(crate) mean: Param<Tensor<1>>,
    pub(crate) deviation: Param<Tensor<1>>,
}

impl Scaling {
    /// `(x - mean) / deviation` for every step.
    pub(crate) fn apply(&self, steps: &[f32]) -> Vec<f32> {
        scale_steps(steps, &values(self.mean.val()), &values(self.deviation.val()))
    }

    pub(crate) fn set(&mut self, mean: Vec<f32>, deviation: Vec<f32>) {
        let device = self.mean.val().device();
        let tensor = |values: Vec<f32>| {
            let len = values.len();
            Tensor::from_data(TensorData::new(values, [len]), &device)
        };
        set_constant(&mut self.mean, tensor(mean));
        set_constant(&mut self.deviation, tensor(deviation));
    }
}

/// `(x - mean) / deviation` for every dimension of every step.
pub fn scale_steps(steps: &[f32], mean: &[f32], deviation: &[f32]) -> Vec<f32> {
    let scale = |(d, value): (usize, &f32)| (value - mean[d]) / deviation[d];
    steps.chunks_exact(mean.len().max(1)).flat_map(|step| step.iter().enumerate().map(scale)).collect()
}

/// Sums over steps, from which a scaling is made.
#[derive(Debug, Clone)]
pub struct StepMoments {
    steps: f64,
    /// The first step: sums of differences from it lose fewer digits where values are far from 0.
    first: Vec<f64>,
    /// Per dimension: the sum, and the sum of squares, of the differences.
    sums: Vec<(f64, f64)>,
}

impl StepMoments {
    /// Nothing seen yet, of `dim` dimensions.
    pub fn new(dim: usize) -> Self {
        Self { steps: 0.0, first: Vec::new(), sums: vec![(0.0, 0.0); dim] }
    }

    /// Adds steps, `dim` values each.
    pub fn add(&mut self, steps: &[f32]) {
        for step in steps.chunks_exact(self.sums.len().max(1)) {
            if self.first.is_empty() {
                self.first = step.iter().map(|&value| f64::from(value)).collect();
            }
            self.steps += 1.0;
            for ((sum, value), first) in self.sums.iter_mut().zip(step).zip(&self.first) {
                let difference = f64::from(*value) - first;
                sum.0 += difference;
                sum.1 += difference * difference;
            }
        }
    }

    /// Whether every value was finite, and their squares too.
    pub fn is_finite(&self) -> bool {
        self.sums.iter().all(|sum| sum.1.is_finite())
    }

    /// The mean of every dimension.
    pub fn means(&self) -> Vec<f32> {
        let mean = |(sum, first): (&(f64, f64), &f64)| (first + sum.0 / self.steps) as f32;
        self.sums.iter().zip(&self.first).map(mean).collect()
    }

    /// Standard deviations; 1 for a dimension that never changes, which is then 0 everywhere.
    pub fn deviations(&self) -> Vec<f32> {
        self.spreads().map(|found| if found > f32::MIN_POSITIVE { found } else { 1.0 }).collect()
    }

    /// One deviation for all dimensions: the root of their mean square; 1 where nothing ever changes.
    pub fn overall_deviation(&self) -> f32 {
        let squares: f64 = self.spreads().map(|spread| f64::from(spread).powi(2)).sum();
        let found = (squares / self.sums.len().max(1) as f64).sqrt() as f32;
        if found > f32::MIN_POSITIVE { found } else { 1.0 }
    }

    fn spreads(&self) -> impl Iterator<Item = f32> {
        self.sums.iter().map(|sum| {
            let mean = sum.0 / self.steps;
            (sum.1 / self.steps - mean * mean).max(0.0).sqrt() as f32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_definition_far_from_zero_too() {
        let mut moments = StepMoments::new(3);
        let steps: Vec<f32> = (0..40).flat_map(|i| [1e6 + (i % 4) as f32, 5.0, (i as f32).sin()]).collect();
        steps.chunks(9).for_each(|part| moments.add(part));
        // NumPy: mean and std of 0, 1, 2, 3 are 1.5 and sqrt(1.25); of sin(0..39) 0.0277104 and 0.7068494.
        let (means, deviations) = (moments.means(), moments.deviations());
        assert_eq!((means[0], means[1], deviations[1]), (1_000_001.5, 5.0, 1.0));
        assert!((deviations[0] - 1.25f32.sqrt()).abs() < 1e-6, "{deviations:?}");
        let sines: Vec<f64> = (0..40).map(|i| f64::from((i as f32).sin())).collect();
        let mean = sines.iter().sum::<f64>() / 40.0;
        let deviation = (sines.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / 40.0).sqrt();
        assert!((f64::from(means[2]) - mean).abs() < 1e-7 && (f64::from(deviations[2]) - deviation).abs() < 1e-7);
        let squares: f32 = [deviations[0], 0.0, deviations[2]].iter().map(|value| value * value).sum();
        assert!((moments.overall_deviation() - (squares / 3.0).sqrt()).abs() < 1e-6);
        let mut same = StepMoments::new(2);
        same.add(&[4.0; 6]);
        assert_eq!(same.overall_deviation(), 1.0);
        assert!(moments.is_finite());
        moments.add(&[f32::NAN, 0.0, 0.0]);
        assert!(!moments.is_finite());
    }
}
