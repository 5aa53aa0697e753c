//! The same bits whatever the number of threads, and from one repeat to the next.
#![allow(clippy::unwrap_used)]

mod common;

use burn::tensor::{Device, Tensor};
use common::{random, values};
use dtkc_ops::{Padding, batch_norm_relu_pool, conv2d, projector_distances, set_threads, threads};

/// A small network with every operation: its outputs and all gradients.
fn step(device: &Device) -> Vec<Vec<f32>> {
    let x = random([13, 20, 20, 1], 1, device).require_grad();
    let weights = [random([5, 5, 1, 16], 2, device).require_grad(), random([5, 5, 16, 20], 3, device).require_grad()];
    let biases = [random([16], 4, device).require_grad(), random([20], 5, device).require_grad()];
    let gamma = random([20], 6, device).require_grad();
    let beta = random([20], 7, device).require_grad();
    let y = conv2d(x.clone(), weights[0].clone(), biases[0].clone(), Padding::Valid, true);
    let y = conv2d(y, weights[1].clone(), biases[1].clone(), Padding::Valid, false);
    let y = batch_norm_relu_pool(y, gamma.clone(), beta.clone(), 1e-3, 2).y;
    let [n, h, w, c] = y.dims();
    // Both routes: 6 x 120 from stacked rows, 20 x 36 from projectors written out.
    let stacked = projector_distances(y.clone().reshape([n, h, w * c]));
    let dense = projector_distances(y.clone().reshape([n, h * w, c]));
    let distances = stacked + dense;
    let grads = (distances.clone() * random([n, n], 8, device)).sum().backward();
    let mut all = vec![values(y), values(distances), values(x.grad(&grads).unwrap())];
    all.extend(weights.iter().map(|weight| values(weight.grad(&grads).unwrap())));
    let vectors: [&Tensor<1>; 4] = [&biases[0], &biases[1], &gamma, &beta];
    all.extend(vectors.iter().map(|vector| values(vector.grad(&grads).unwrap())));
    all
}

#[test]
fn threads_and_repeats_do_not_change_a_bit() {
    let device = Device::flex().autodiff();
    set_threads(1);
    assert_eq!(threads(), 1);
    let expected = step(&device);
    assert!(expected.iter().flatten().all(|value| value.is_finite()));
    for count in [1, 2, 3, 8, 2, 1, 0] {
        set_threads(count);
        for (index, (actual, expected)) in step(&device).iter().zip(&expected).enumerate() {
            let same = actual.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same && actual.len() == expected.len(), "{count} threads, result {index}");
        }
    }
}
