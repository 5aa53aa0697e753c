//! Helpers of the tests: seeded tensors and comparisons.
#![allow(dead_code, clippy::unwrap_used)]

use burn::tensor::{Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The CPU device with gradients.
pub fn device() -> Device {
    Device::flex().autodiff()
}

/// Uniform values in [-1, 1).
pub fn uniform(count: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// A tensor of seeded values in [-1, 1).
pub fn random<const D: usize>(shape: [usize; D], seed: u64, device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(uniform(shape.iter().product(), seed), shape), device)
}

/// The values of a tensor.
pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

/// Fails unless every value agrees within `tolerance` times the largest expected magnitude.
pub fn assert_close(actual: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(actual.len(), expected.len(), "{what}: length");
    let scale = expected.iter().fold(1e-3f32, |scale, value| scale.max(value.abs()));
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert!((a - e).abs() <= tolerance * scale, "{what}: value {i} is {a}, expected {e} (scale {scale})");
    }
}

/// The same for tensors.
pub fn assert_tensors<const D: usize>(actual: Tensor<D>, expected: Tensor<D>, tolerance: f32, what: &str) {
    assert_eq!(actual.dims(), expected.dims(), "{what}: shape");
    assert_close(&values(actual), &values(expected), tolerance, what);
}
