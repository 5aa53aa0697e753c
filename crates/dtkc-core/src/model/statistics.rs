//! Batch-norm statistics over a whole pass of data.

use super::layers::{Norm, set_constant};
use super::state::values;
use super::{Model, Output};
use burn::tensor::{Tensor, TensorData};

/// Mean and biased variance of one batch norm's input over one batch, without gradient.
#[derive(Debug, Clone)]
pub struct BatchStatistics {
    /// `[channels]`.
    pub mean: Tensor<1>,
    /// `[channels]`, biased.
    pub variance: Tensor<1>,
}

/// Mean and variance of every batch norm over a pass of data, to replace running averages that lag.
///
/// Feed it the [`Output`] of [`Model::forward_train`] for every batch of clean images (use [`Module::valid`] first:
/// no gradients are needed), then [`apply`](Self::apply). Batches of different sizes count by their size; the pooled
/// variance includes how far batch means differ, so that the result for the first batch norm is that of one huge
/// batch.
///
/// [`Module::valid`]: burn::module::Module::valid
#[derive(Debug, Clone, Default)]
pub struct StatisticsPass {
    images: f64,
    /// Per batch norm, per channel: sums over images of the mean and of the mean square.
    sums: Vec<Vec<(f64, f64)>>,
}

impl StatisticsPass {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a batch.
    pub fn add(&mut self, output: &Output) {
        self.add_batch(output.len(), &output.statistics);
    }

    /// Adds the statistics of a batch of so many images.
    pub(crate) fn add_batch(&mut self, images: usize, statistics: &[BatchStatistics]) {
        let weight = images as f64;
        self.images += weight;
        self.sums.resize_with(statistics.len(), Vec::new);
        for (sums, batch) in self.sums.iter_mut().zip(statistics) {
            let (mean, variance) = (values(batch.mean.clone()), values(batch.variance.clone()));
            sums.resize(mean.len(), (0.0, 0.0));
            for (slot, (mean, variance)) in sums.iter_mut().zip(mean.into_iter().zip(variance)) {
                let (mean, variance) = (f64::from(mean), f64::from(variance));
                slot.0 += weight * mean;
                slot.1 += weight * (variance + mean * mean);
            }
        }
    }

    /// Number of images seen.
    pub fn images(&self) -> usize {
        self.images as usize
    }

    /// Replaces the model's running statistics; does nothing when no image was seen.
    pub fn apply(&self, model: &mut Model) {
        self.apply_to(model.norms_mut());
    }

    pub(crate) fn apply_to(&self, norms: Vec<&mut Norm>) {
        if self.images == 0.0 {
            return;
        }
        for (norm, sums) in norms.into_iter().zip(&self.sums) {
            let device = norm.mean.val().device();
            let mean: Vec<f64> = sums.iter().map(|s| s.0 / self.images).collect();
            let variance = sums.iter().zip(&mean).map(|(s, m)| (s.1 / self.images - m * m).max(0.0) as f32).collect();
            let mean = mean.into_iter().map(|m| m as f32).collect();
            let tensor = |values: Vec<f32>| {
                let len = values.len();
                Tensor::from_data(TensorData::new(values, [len]), &device)
            };
            set_constant(&mut norm.mean, tensor(mean));
            set_constant(&mut norm.variance, tensor(variance));
        }
    }
}
