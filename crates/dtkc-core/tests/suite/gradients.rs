//! Gradients against finite differences of our own forward pass.
//!
//! The values are f32, so a difference is good to about 1e-3; the golden tests are sharper, but these also cover
//! sizes, ranks and settings that the golden files do not hold.

use crate::support::{device, membership, noise, read, scalar, tensor};
use burn::tensor::{Tensor, activation};
use dtkc_core::kernel::{Bandwidth, BandwidthRule, distances};
use dtkc_core::loss::{d_cs, simplex_closeness};

const STEP: f64 = 4e-3;

/// Compares the slope along random directions with a central difference of fourth order.
fn check<const D: usize>(what: &str, values: &[f64], shape: [usize; D], f: impl Fn(Tensor<D>) -> Tensor<1>) {
    let x = tensor(values, shape).require_grad();
    let gradient = read(x.grad(&f(x.clone()).backward()).unwrap());
    assert!(gradient.iter().all(|g| g.is_finite()));
    let size = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    for seed in 0..4 {
        let direction = noise(values.len(), 100 + seed);
        let norm = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
        let direction: Vec<f64> = direction.iter().map(|d| d / norm).collect();
        let at = |by: f64| {
            let moved: Vec<f64> = values.iter().zip(&direction).map(|(v, d)| v + by * d).collect();
            scalar(f(tensor(&moved, shape)))
        };
        let step = STEP * (values.len() as f64).sqrt();
        let slope = (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step);
        let expected: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
        // Rounding of the values, divided by the step.
        let rounding = 4e-7 / step;
        assert!((slope - expected).abs() < 0.01 * size + rounding, "{what}: {slope} but {expected} (norm {size})");
    }
}

/// A kernel with the bandwidth of another matrix: finite differences must not move the bandwidth.
fn fixed_kernel<const D: usize>(x: Tensor<D>, b: f64) -> Tensor<2> {
    (distances(x) * (-1.0 / b)).exp()
}

#[test]
fn companion_objectives_of_real_block_sizes() {
    let u = membership(12, 5, 3);
    let bandwidth = Bandwidth { rule: BandwidthRule::Squared, sigma: 0.3 };
    for (name, shape) in [("block 1", [12, 10, 10, 32]), ("block 2", [12, 3, 3, 32]), ("long block", [12, 2, 9, 5])] {
        let values = noise(shape.iter().product(), 5);
        let b = bandwidth.of(&distances(tensor::<4>(&values, shape)));
        check(name, &values, shape, |x| d_cs(u.clone(), fixed_kernel(x, b)) * 10.0);
    }
}

#[test]
fn rectified_outputs_with_zeros() {
    let u = membership(9, 3, 4);
    let values: Vec<f64> = noise(9 * 6 * 6 * 8, 8).iter().map(|v| (v + 0.4).max(0.0)).collect();
    let b = Bandwidth { rule: BandwidthRule::Squared, sigma: 0.3 }.of(&distances(tensor::<4>(&values, [9, 6, 6, 8])));
    check("rectified", &values, [9, 6, 6, 8], |x| d_cs(u.clone(), fixed_kernel(x, b)) * 10.0);
}

#[test]
fn separation_and_simplex_through_the_softmax() {
    let kernel = Bandwidth { rule: BandwidthRule::Distance, sigma: 0.4 }
        .kernel(distances(tensor::<2>(&noise(10 * 7, 1), [10, 7])));
    check("separation", &noise(10 * 4, 2), [10, 4], |logits| d_cs(activation::softmax(logits, 1), kernel.clone()));
    check("simplex", &noise(10 * 4, 2), [10, 4], |logits| {
        d_cs(simplex_closeness(activation::softmax(logits, 1)), kernel.clone())
    });
}

#[test]
fn the_bandwidth_is_not_differentiated() {
    let bandwidth = Bandwidth { rule: BandwidthRule::Squared, sigma: 0.15 };
    let (u, values) = (membership(8, 3, 1), noise(8 * 5, 6));
    let run = |kernel: &dyn Fn(Tensor<2>) -> Tensor<2>| {
        let x = tensor::<2>(&values, [8, 5]).require_grad();
        let gradients = d_cs(u.clone(), kernel(distances(x.clone()))).backward();
        read(x.grad(&gradients).unwrap())
    };
    let b = bandwidth.of(&distances(tensor::<2>(&values, [8, 5])));
    let fixed = run(&|d| (d * (-1.0 / b)).exp());
    assert_eq!(run(&|d| bandwidth.kernel(d)), fixed);
    assert!(device().is_autodiff());
}
