//! Gradients of every operation against finite differences of its own forward pass.
#![allow(clippy::unwrap_used)]

mod common;

use burn::tensor::{Device, Tensor, TensorData};
use common::{device, uniform, values};
use dtkc_ops::{
    GruOperands, GruStates, Lengths, Padding, batch_norm_relu_pool, conv2d, gru, projector_distances, scale_relu_pool,
};

/// Checks directional derivatives along random directions: `(f(x + s d) - f(x - s d)) / 2 s = <gradient, d>`.
fn check<const D: usize>(
    name: &str,
    shape: [usize; D],
    (step, tolerance): (f32, f64),
    loss: impl Fn(Tensor<D>) -> Tensor<1>,
) {
    let tensor =
        |values: &[f32], device: &Device| Tensor::<D>::from_data(TensorData::new(values.to_vec(), shape), device);
    let x = uniform(shape.iter().product(), 21);
    let at = tensor(&x, &device()).require_grad();
    let grads = loss(at.clone()).backward();
    let gradient = values(at.grad(&grads).unwrap());
    let length = gradient.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    for seed in 0..4 {
        let direction = uniform(x.len(), 100 + seed);
        let moved = |sign: f32| {
            let values: Vec<f32> = x.iter().zip(&direction).map(|(x, d)| x + sign * step * d).collect();
            f64::from(common::values(loss(tensor(&values, &Device::flex())))[0])
        };
        let slope = (moved(1.0) - moved(-1.0)) / (2.0 * f64::from(step));
        let expected: f64 = gradient.iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
        assert!((slope - expected).abs() < tolerance * length, "{name}: {slope}, gradient says {expected} ({length})");
    }
}

fn constant<const D: usize>(shape: [usize; D], seed: u64, like: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(uniform(shape.iter().product(), seed), shape), like)
}

#[test]
fn convolution() {
    // Winograd tiles, direct sums and interleaved rows.
    for (size, kernel, cin, cout) in [(12, 5, 16, 16), (8, 3, 16, 8), (6, 2, 32, 8), (9, 5, 2, 8)] {
        let name = format!("conv2d {size} {kernel} {cin} {cout}");
        check(&name, [2, size, size, cin], (1e-2, 1e-3), |x| {
            let device = x.device();
            let weight = constant([kernel, kernel, cin, cout], 1, &device);
            let y = conv2d(x, weight, constant([cout], 2, &device), Padding::Same, false);
            (y.clone() * constant(y.dims(), 3, &device)).sum()
        });
        check(&name, [kernel, kernel, cin, cout], (1e-2, 1e-3), |weight| {
            let device = weight.device();
            let x = constant([2, size, size, cin], 4, &device);
            let y = conv2d(x, weight, constant([cout], 2, &device), Padding::Valid, false);
            (y.clone() * constant(y.dims(), 3, &device)).sum()
        });
    }
}

/// Large offsets keep ReLU open, and windows of one pixel have no largest value to change: finite differences need a
/// smooth function. Corners are compared with burn in tests/pool.rs.
#[test]
fn normalisation_and_scaling() {
    check("batch norm, x", [3, 6, 6, 9], (1e-3, 2e-3), |x| {
        let device = x.device();
        let beta = constant([9], 2, &device) + 9.0;
        let output = batch_norm_relu_pool(x, constant([9], 1, &device), beta, 1e-3, 1);
        (output.y.clone() * constant(output.y.dims(), 3, &device)).sum()
    });
    check("batch norm, gamma", [9], (1e-2, 2e-3), |gamma| {
        let device = gamma.device();
        let beta = constant([9], 2, &device) + 9.0;
        let output = batch_norm_relu_pool(constant([3, 6, 6, 9], 1, &device), gamma, beta, 1e-3, 1);
        (output.y.clone() * constant(output.y.dims(), 3, &device)).sum()
    });
    check("scale", [3, 6, 6, 9], (1e-2, 2e-3), |x| {
        let device = x.device();
        let y = scale_relu_pool(x, constant([9], 1, &device), constant([9], 2, &device) + 9.0, 1);
        (y.clone() * constant(y.dims(), 3, &device)).sum()
    });
}

#[test]
fn recurrent_layer() {
    let lengths = Lengths::new(&[5, 40, 1, 33]);
    let (inputs, units) = (3, 6);
    let weights = |device: &Device| GruOperands {
        input: constant([2, 3 * units, inputs], 1, device),
        recurrent: constant([2, 3 * units, units], 2, device),
        input_bias: constant([2, 3 * units], 3, device),
        recurrent_bias: constant([2, 3 * units], 4, device),
    };
    let loss = |x: Tensor<2>, weights: GruOperands, states| {
        let y = gru(x, weights, &lengths, states);
        (y.clone() * constant(y.dims(), 5, &y.device())).sum()
    };
    for states in [GruStates::All, GruStates::Last] {
        check(&format!("gru, x, {states:?}"), [lengths.steps(), inputs], (1e-2, 2e-3), |x| {
            let weights = weights(&x.device());
            loss(x, weights, states)
        });
        check(&format!("gru, recurrent, {states:?}"), [2, 3 * units, units], (1e-2, 2e-3), |recurrent| {
            let device = recurrent.device();
            let x = constant([lengths.steps(), inputs], 6, &device);
            loss(x, GruOperands { recurrent, ..weights(&device) }, states)
        });
    }
}

#[test]
fn projectors_with_an_asymmetric_upstream_gradient() {
    for shape in [[6, 3, 24], [6, 8, 12], [6, 12, 8]] {
        check(&format!("projector_distances {shape:?}"), shape, (2e-3, 2e-2), |x| {
            let device = x.device();
            (projector_distances(x) * constant([6, 6], 1, &device)).sum()
        });
    }
}
