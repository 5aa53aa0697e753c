//! `gru` against PyTorch's nn.GRU in f64 (scripts/golden/gru_golden.py), values and gradients: the fast body in f32 and the
//! one of burn's own operations in f64.
#![allow(clippy::unwrap_used)]

mod common;

use burn::tensor::{DType, Tensor, TensorData};
use common::{device, random, values};
use dtkc_ops::{GruOperands, GruStates, Lengths, gru};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn leaf<const D: usize>(value: &Value, shape: [usize; D], dtype: DType) -> Tensor<D> {
    let data = TensorData::new(numbers(value), shape).convert_dtype(dtype);
    Tensor::from_data(data, (&device(), dtype)).require_grad()
}

fn close<const D: usize>(found: Tensor<D>, expected: &Value, tolerance: f64, what: &str) {
    let found: Vec<f64> = found.into_data().iter::<f64>().collect();
    let expected = numbers(expected);
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1e-2f64, |scale, value| scale.max(value.abs()));
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert!((found - expected).abs() <= tolerance * scale, "{what}: value {i} is {found}, expected {expected}");
    }
}

fn check(case: &Value, dtype: DType, tolerance: f64) {
    let size = |name: &str| case[name].as_u64().unwrap() as usize;
    let (inputs, units) = (size("inputs"), size("units"));
    let lengths: Vec<usize> =
        case["lengths"].as_array().unwrap().iter().map(|l| l.as_u64().unwrap() as usize).collect();
    let lengths = Lengths::new(&lengths);
    for (name, states) in [("steps", GruStates::All), ("last", GruStates::Last)] {
        let x = leaf(&case["x"], [lengths.steps(), inputs], dtype);
        let weights = GruOperands {
            input: leaf(&case["input"], [2, 3 * units, inputs], dtype),
            recurrent: leaf(&case["recurrent"], [2, 3 * units, units], dtype),
            input_bias: leaf(&case["input_bias"], [2, 3 * units], dtype),
            recurrent_bias: leaf(&case["recurrent_bias"], [2, 3 * units], dtype),
        };
        let what = |part: &str| format!("{}, {name}, {dtype:?}: {part}", case["name"]);
        let y = gru(x.clone(), weights.clone(), &lengths, states);
        let upstream = TensorData::new(numbers(&case[name]["upstream"]), y.dims()).convert_dtype(dtype);
        let upstream = Tensor::<2>::from_data(upstream, (&device(), dtype));
        let grads = (y.clone() * upstream).sum().backward();
        close(y, &case[name]["values"], tolerance, &what("values"));
        let expected = &case[name]["gradients"];
        close(x.grad(&grads).unwrap(), &expected["x"], tolerance, &what("x"));
        close(weights.input.grad(&grads).unwrap(), &expected["input"], tolerance, &what("input"));
        close(weights.recurrent.grad(&grads).unwrap(), &expected["recurrent"], tolerance, &what("recurrent"));
        close(weights.input_bias.grad(&grads).unwrap(), &expected["input_bias"], tolerance, &what("input bias"));
        close(weights.recurrent_bias.grad(&grads).unwrap(), &expected["recurrent_bias"], tolerance, &what("bias"));
    }
}

fn cases() -> Vec<Value> {
    let golden: Value = serde_json::from_str(include_str!("golden/gru.json")).unwrap();
    golden["cases"].as_array().unwrap().clone()
}

#[test]
fn the_fast_layer_agrees_with_pytorch() {
    cases().iter().for_each(|case| check(case, DType::F32, 1e-5));
}

#[test]
fn the_composed_layer_agrees_with_pytorch() {
    cases().iter().for_each(|case| check(case, DType::F64, 1e-8));
}

fn weights(inputs: usize, units: usize) -> GruOperands {
    GruOperands {
        input: random([2, 3 * units, inputs], 1, &device()),
        recurrent: random([2, 3 * units, units], 2, &device()),
        input_bias: random([2, 3 * units], 3, &device()),
        recurrent_bias: random([2, 3 * units], 4, &device()),
    }
}

#[test]
fn a_sequence_does_not_depend_on_its_neighbours() {
    let lengths = [5, 1, 40, 33, 7, 5, 2, 90, 3, 3, 64, 12, 1, 8];
    let steps: usize = lengths.iter().sum();
    let (x, weights) = (random([steps, 3], 7, &device()), weights(3, 20));
    let all = values(gru(x.clone(), weights.clone(), &Lengths::new(&lengths), GruStates::Last));
    let mut start = 0;
    for (i, &length) in lengths.iter().enumerate() {
        let own = x.clone().narrow(0, start, length);
        let alone = values(gru(own, weights.clone(), &Lengths::new(&[length]), GruStates::Last));
        assert_eq!(alone, all[i * 40..][..40], "sequence {i}");
        start += length;
    }
}

#[test]
fn what_is_not_a_number_is_not_hidden_and_stays_in_its_sequence() {
    let (lengths, mut x) = (Lengths::new(&[4, 6]), common::uniform(20, 5));
    x[15] = f32::NAN;
    let x = Tensor::<2>::from_data(TensorData::new(x, [10, 2]), &device());
    let last = values(gru(x, weights(2, 3), &lengths, GruStates::Last));
    assert!(last[..6].iter().all(|value| value.is_finite()) && last[6..].iter().all(|value| value.is_nan()));
}
