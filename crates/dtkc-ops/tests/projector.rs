//! `projector_distances` against SVD-based values of scripts/golden/ops_golden.py, against the composition of burn's own
//! operations, against finite differences, and on degenerate inputs.
#![allow(clippy::unwrap_used)]

mod common;

use burn::tensor::{Device, Tensor, TensorData};
use common::{assert_close, device, random, uniform, values};
use dtkc_ops::projector_distances;
use serde_json::Value;

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect()
}

fn cases() -> Vec<Value> {
    let golden: Value = serde_json::from_str(include_str!("golden/projector.json")).unwrap();
    golden["cases"].as_array().unwrap().clone()
}

fn input(case: &Value, device: &Device) -> Tensor<3> {
    let shape: Vec<usize> = case["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    Tensor::from_data(TensorData::new(floats(&case["x"]), shape), device).require_grad()
}

/// Distances and the gradient of `sum(upstream * distances)`.
fn run(x: &Tensor<3>, upstream: Vec<f32>) -> (Vec<f32>, Vec<f32>) {
    let n = x.dims()[0];
    let distances = projector_distances(x.clone());
    let upstream = Tensor::<2>::from_data(TensorData::new(upstream, [n, n]), &x.device());
    let grads = (distances.clone() * upstream).sum().backward();
    (values(distances), values(x.grad(&grads).unwrap()))
}

/// The same in f64, where flex runs the composition of burn's own operations.
fn run_reference(x: &[f32], shape: [usize; 3], upstream: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let device = Device::flex().autodiff();
    let wide = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect::<Vec<f64>>();
    let n = shape[0];
    let options = (&device, burn::tensor::DType::F64);
    let x = Tensor::<3>::from_data(TensorData::new(wide(x), shape), options).require_grad();
    let upstream = Tensor::<2>::from_data(TensorData::new(wide(upstream), [n, n]), options);
    let distances = projector_distances(x.clone());
    let grads = (distances.clone() * upstream).sum().backward();
    let narrow = |data: TensorData| data.try_to_vec::<f64>().unwrap().iter().map(|value| *value as f32).collect();
    (narrow(distances.into_data()), narrow(x.grad(&grads).unwrap().into_data()))
}

#[test]
fn distances_agree_with_singular_value_decompositions() {
    for case in cases() {
        let name = case["name"].as_str().unwrap();
        let actual = values(projector_distances(input(&case, &device())));
        assert_close(&actual, &floats(&case["distances"]), 2e-5, name);
    }
}

#[test]
fn gradients_agree_with_central_differences() {
    for case in cases() {
        if case["gradient"].is_null() {
            continue;
        }
        let name = case["name"].as_str().unwrap();
        let (_, gradient) = run(&input(&case, &device()), floats(&case["upstream"]));
        assert_close(&gradient, &floats(&case["gradient"]), 2e-4, name);
    }
}

#[test]
fn both_routes_agree_with_burns_operations() {
    // Stacked rows, written-out projectors, and both sides of the border between them.
    for (seed, shape) in
        [[20, 10, 320], [33, 3, 96], [40, 32, 100], [17, 9, 32], [17, 32, 9], [5, 14, 16], [1, 4, 8], [49, 2, 3]]
            .into_iter()
            .enumerate()
    {
        let x = uniform(shape.iter().product(), seed as u64);
        let upstream = uniform(shape[0] * shape[0], 100 + seed as u64);
        let tensor = Tensor::<3>::from_data(TensorData::new(x.clone(), shape), &device()).require_grad();
        let (distances, gradient) = run(&tensor, upstream.clone());
        let (expected, expected_gradient) = run_reference(&x, shape, &upstream);
        assert_close(&distances, &expected, 1e-5, &format!("{shape:?} distances"));
        assert_close(&gradient, &expected_gradient, 5e-5, &format!("{shape:?} gradient"));
    }
}

#[test]
fn degenerate_inputs_stay_finite() {
    let device = device();
    let relu = random([6, 8, 40], 1, &device).clamp_min(0.0);
    let inputs = [
        ("zeros", Tensor::<3>::zeros([4, 5, 9], &device)),
        ("ones", Tensor::<3>::ones([4, 32, 100], &device)),
        ("tiny", random([4, 5, 9], 2, &device) * 1e-20),
        ("huge", random([4, 5, 9], 3, &device) * 1e12),
        (
            "dead channels",
            relu.clone() * Tensor::<1>::from_floats([1., 0., 1., 1., 0., 0., 1., 1.], &device).reshape([1, 8, 1]),
        ),
        ("duplicates", Tensor::cat(vec![relu.clone(), relu], 0)),
    ];
    for (name, x) in inputs {
        let x = Tensor::<3>::from_data(x.into_data(), &device).require_grad();
        let n = x.dims()[0];
        let (distances, gradient) = run(&x, uniform(n * n, 9));
        assert!(distances.iter().all(|value| value.is_finite() && *value >= 0.0), "{name}: {distances:?}");
        assert!(gradient.iter().all(|value| value.is_finite()), "{name}: {gradient:?}");
        for a in 0..n {
            assert_eq!(distances[a * n + a], 0.0, "{name}: diagonal");
            for b in 0..n {
                assert_eq!(distances[a * n + b], distances[b * n + a], "{name}: symmetric");
            }
        }
    }
}

#[test]
fn equal_matrices_are_at_distance_zero() {
    let device = device();
    for shape in [[3, 10, 320], [3, 32, 100]] {
        let x = random(shape, 4, &device);
        let n = 2 * shape[0];
        let distances = values(projector_distances(Tensor::cat(vec![x.clone(), x], 0)));
        for a in 0..shape[0] {
            assert!(distances[a * n + a + shape[0]] <= 1e-5, "{shape:?}: {}", distances[a * n + a + shape[0]]);
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    /// Only the row space counts: mixing the rows with an invertible matrix changes nothing.
    #[test]
    fn row_operations_change_nothing(n in 2usize..6, r in 1usize..5, extra in 2usize..12, seed in 0u64..1000) {
        let device = Device::flex();
        let x = random([n, r, r + extra], seed, &device);
        // Diagonally dominant, so well conditioned.
        let mix = random([n, r, r], seed + 1, &device) * (0.3 / r as f32)
            + Tensor::<2>::eye(r, &device).reshape([1, r, r]);
        let plain = values(projector_distances(x.clone()));
        let mixed = values(projector_distances(mix.matmul(x)));
        for (a, b) in plain.iter().zip(&mixed) {
            proptest::prop_assert!((a - b).abs() < 1e-2, "{a} {b}");
        }
    }

    #[test]
    fn distances_are_symmetric_bounded_and_not_negative(
        n in 1usize..8, r in 1usize..9, d in 1usize..20, seed in 0u64..1000,
    ) {
        let distances = values(projector_distances(random([n, r, d], seed, &Device::flex())));
        let rank = r.min(d) as f32;
        for a in 0..n {
            for b in 0..n {
                let distance = distances[a * n + b];
                proptest::prop_assert!((0.0..=2.0 * rank + 1e-3).contains(&distance));
                proptest::prop_assert_eq!(distance, distances[b * n + a]);
            }
        }
    }
}
