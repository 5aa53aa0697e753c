//! `batch_norm_relu_pool` and `scale_relu_pool` against burn's own operations, values and gradients.
#![allow(clippy::unwrap_used)]

mod common;

use burn::tensor::{
    Device, Tensor, activation,
    module::{batch_norm_train, max_pool2d},
    ops::MaxPoolOptions,
};
use common::{assert_tensors, device, random};
use dtkc_ops::{batch_norm_relu_pool, scale_relu_pool};

const SHAPES: [([usize; 4], usize); 8] = [
    ([3, 20, 20, 32], 2),
    ([3, 6, 6, 32], 2),
    ([2, 7, 9, 5], 2),
    ([2, 7, 10, 19], 3),
    ([1, 4, 4, 1], 4),
    ([2, 5, 5, 8], 1),
    ([1, 2, 2, 40], 2),
    ([31, 3, 3, 7], 3),
];

/// burn's own ReLU and pooling of a channels-first tensor.
fn burn_relu_pool(x: Tensor<4>, pool: usize) -> Tensor<4> {
    let options = MaxPoolOptions::new([pool, pool]);
    max_pool2d(activation::relu(x), options).permute([0, 2, 3, 1])
}

/// Inputs away from ties: x, and two positive or negative values per channel.
fn inputs(shape: [usize; 4], device: &Device) -> [Tensor<4>; 1] {
    [random(shape, 11, device).require_grad()]
}

#[test]
fn batch_norm_agrees_with_burn() {
    let device = device();
    for (shape, pool) in SHAPES {
        let what = format!("{shape:?} pool {pool}");
        let [x] = inputs(shape, &device);
        // Negative factors turn the largest value of a window into the smallest.
        let gamma = random([shape[3]], 12, &device).require_grad();
        let beta = random([shape[3]], 13, &device).require_grad();
        let output = batch_norm_relu_pool(x.clone(), gamma.clone(), beta.clone(), 1e-3, pool);
        let expected = batch_norm_train(x.clone().permute([0, 3, 1, 2]), gamma.clone(), beta.clone(), 1e-3);
        let expected_y = burn_relu_pool(expected.output, pool);
        let upstream = random(output.y.dims(), 14, &device);
        let grads = (output.y.clone() * upstream.clone()).sum().backward();
        let expected_grads = (expected_y.clone() * upstream).sum().backward();
        assert_tensors(output.y, expected_y, 1e-5, &format!("{what}: y"));
        assert_tensors(output.mean, expected.mean, 1e-5, &format!("{what}: mean"));
        assert_tensors(output.variance, expected.variance, 1e-5, &format!("{what}: variance"));
        let pair = |tensor: &Tensor<1>| (tensor.grad(&grads).unwrap(), tensor.grad(&expected_grads).unwrap());
        assert_tensors(x.grad(&grads).unwrap(), x.grad(&expected_grads).unwrap(), 2e-5, &format!("{what}: dx"));
        for (name, (actual, expected)) in [("dgamma", pair(&gamma)), ("dbeta", pair(&beta))] {
            assert_tensors(actual, expected, 2e-5, &format!("{what}: {name}"));
        }
    }
}

#[test]
fn scaling_agrees_with_burn() {
    let device = device();
    for (shape, pool) in SHAPES {
        let what = format!("{shape:?} pool {pool}");
        let [x] = inputs(shape, &device);
        let scale = random([shape[3]], 12, &device).require_grad();
        let shift = random([shape[3]], 13, &device).require_grad();
        let y = scale_relu_pool(x.clone(), scale.clone(), shift.clone(), pool);
        let wide = [1, 1, 1, shape[3]];
        let scaled = x.clone() * scale.clone().reshape(wide) + shift.clone().reshape(wide);
        let expected_y = burn_relu_pool(scaled.permute([0, 3, 1, 2]), pool);
        let upstream = random(y.dims(), 14, &device);
        let grads = (y.clone() * upstream.clone()).sum().backward();
        let expected_grads = (expected_y.clone() * upstream).sum().backward();
        assert_tensors(y, expected_y, 1e-5, &format!("{what}: y"));
        assert_tensors(x.grad(&grads).unwrap(), x.grad(&expected_grads).unwrap(), 2e-5, &format!("{what}: dx"));
        let pair = |tensor: &Tensor<1>| (tensor.grad(&grads).unwrap(), tensor.grad(&expected_grads).unwrap());
        for (name, (actual, expected)) in [("dscale", pair(&scale)), ("dshift", pair(&shift))] {
            assert_tensors(actual, expected, 2e-5, &format!("{what}: {name}"));
        }
    }
}

#[test]
fn equal_values_hand_the_gradient_to_one_pixel() {
    let device = device();
    let x = Tensor::<4>::ones([1, 4, 4, 9], &device).require_grad();
    let (scale, shift) = (Tensor::<1>::ones([9], &device), Tensor::<1>::zeros([9], &device));
    let grads = scale_relu_pool(x.clone(), scale, shift, 2).sum().backward();
    let dx = common::values(x.grad(&grads).unwrap());
    assert_eq!(dx.iter().filter(|value| **value == 1.0).count(), 4 * 9);
    assert_eq!(dx.iter().filter(|value| **value == 0.0).count(), 12 * 9);
}

#[test]
fn a_constant_batch_stays_finite() {
    let device = device();
    let x = Tensor::<4>::full([3, 4, 4, 8], 0.7, &device).require_grad();
    let (gamma, beta) = (Tensor::<1>::ones([8], &device), Tensor::<1>::ones([8], &device));
    let output = batch_norm_relu_pool(x.clone(), gamma, beta, 1e-3, 2);
    let grads = output.y.clone().sum().backward();
    assert!(common::values(output.y).iter().all(|value| (value - 1.0).abs() < 1e-4));
    assert!(common::values(output.variance).iter().all(|value| value.abs() < 1e-10));
    assert!(common::values(x.grad(&grads).unwrap()).iter().all(|value| value.is_finite()));
}

#[test]
fn mean_and_variance_carry_no_gradient() {
    let device = device();
    let x = random([2, 4, 4, 3], 1, &device).require_grad();
    let (gamma, beta) = (Tensor::<1>::ones([3], &device), Tensor::<1>::zeros([3], &device));
    let output = batch_norm_relu_pool(x.clone(), gamma, beta, 1e-3, 2);
    let loss = output.y.sum() + output.mean.sum() * 1000.0 + output.variance.sum() * 1000.0;
    let grads = loss.backward();
    let dx = common::values(x.grad(&grads).unwrap());
    assert!(dx.iter().all(|value| value.abs() < 10.0), "{dx:?}");
}

#[test]
fn large_means_do_not_spoil_the_variance() {
    let device = device();
    let x = random([4, 8, 8, 16], 5, &device) * 1e-2 + 100.0;
    let (gamma, beta) = (Tensor::<1>::ones([16], &device), Tensor::<1>::zeros([16], &device));
    let output = batch_norm_relu_pool(x.clone(), gamma, beta, 1e-3, 1);
    let values = common::values(x);
    for c in 0..16 {
        let column = || values.iter().skip(c).step_by(16).map(|value| f64::from(*value));
        let mean = column().sum::<f64>() / 256.0;
        let variance = column().map(|value| (value - mean) * (value - mean)).sum::<f64>() / 256.0;
        let actual = f64::from(common::values(output.variance.clone())[c]);
        assert!((actual - variance).abs() < 1e-2 * variance, "channel {c}: {actual}, expected {variance}");
    }
}
