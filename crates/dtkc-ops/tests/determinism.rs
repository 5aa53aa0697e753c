//! The same bits whatever the number of threads, and from one repeat to the next.
#![allow(clippy::unwrap_used)]

mod common;

use burn::tensor::{Device, Tensor};
use common::{random, values};
use dtkc_ops::{
    GruOperands, GruStates, Lengths, Padding, batch_norm_relu_pool, conv2d, gru, projector_distances, set_threads,
    threads,
};

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

/// Two recurrent layers over sequences of several groups and blocks: the outputs and all gradients.
fn recurrent(device: &Device) -> Vec<Vec<f32>> {
    let lengths = Lengths::new(&(0..37).map(|i| 1 + i * 29 % 71).collect::<Vec<_>>());
    let x = random([lengths.steps(), 5], 11, device).require_grad();
    let weights = |inputs: usize, seed| GruOperands {
        input: random([2, 60, inputs], seed, device).require_grad(),
        recurrent: random([2, 60, 20], seed + 1, device).require_grad(),
        input_bias: random([2, 60], seed + 2, device).require_grad(),
        recurrent_bias: random([2, 60], seed + 3, device).require_grad(),
    };
    let layers = [weights(5, 21), weights(40, 31)];
    let y = gru(x.clone(), layers[0].clone(), &lengths, GruStates::All);
    let last = gru(y.clone(), layers[1].clone(), &lengths, GruStates::Last);
    let grads = (last.clone() * random([37, 40], 41, device)).sum().backward();
    let mut all = vec![values(y), values(last), values(x.grad(&grads).unwrap())];
    for layer in &layers {
        all.extend([&layer.input, &layer.recurrent].map(|weight| values(weight.grad(&grads).unwrap())));
        all.extend([&layer.input_bias, &layer.recurrent_bias].map(|bias| values(bias.grad(&grads).unwrap())));
    }
    all
}

#[test]
fn threads_and_repeats_do_not_change_a_bit() {
    let device = Device::flex().autodiff();
    set_threads(1);
    assert_eq!(threads(), 1);
    let all = |device: &Device| [step(device), recurrent(device)].concat();
    let expected = all(&device);
    assert!(expected.iter().flatten().all(|value| value.is_finite()));
    for count in [1, 2, 3, 8, 2, 1, 0] {
        set_threads(count);
        for (index, (actual, expected)) in all(&device).iter().zip(&expected).enumerate() {
            let same = actual.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same && actual.len() == expected.len(), "{count} threads, result {index}");
        }
    }
}
