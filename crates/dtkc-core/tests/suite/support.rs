//! Small helpers of the tests.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use dtkc_core::kernel::BandwidthRule;
use dtkc_core::loss::MembershipSum;
use dtkc_core::{LossConfig, NamedArray, Values};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The CPU with gradients.
pub fn device() -> Device {
    Device::flex().autodiff()
}

pub fn tensor<const D: usize>(values: &[f64], shape: [usize; D]) -> Tensor<D> {
    let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
    Tensor::from_data(TensorData::new(values, shape), &device())
}

pub fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.detach().into_data().iter::<f64>().collect()
}

pub fn scalar(tensor: Tensor<1>) -> f64 {
    read(tensor)[0]
}

/// Repeatable numbers in [-1, 1).
pub fn noise(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

/// The losses of the published presets and one with every term, by name.
pub fn losses() -> [(&'static str, LossConfig); 4] {
    let paper = LossConfig { lambda: 0.01, ..LossConfig::default() };
    let authors = LossConfig { bandwidth: BandwidthRule::Squared, ..paper.clone() };
    let tk_uco = LossConfig { sigma: 0.3, membership_sum: MembershipSum::Mean, ..authors.clone() };
    let every = LossConfig {
        membership_sum: MembershipSum::Mean,
        consistency: 1.0,
        mutual_information: 0.5,
        balance: 0.5,
        certainty: 0.5,
        self_label: 0.5,
        ..authors.clone()
    };
    [("paper", paper), ("authors", authors), ("tk-uco", tk_uco), ("every term", every)]
}

/// The values of an array of weights.
pub fn floats(array: &mut NamedArray) -> &mut [f32] {
    match &mut array.values {
        Values::F32(values) => values,
        other => panic!("{} holds {other:?}", array.name),
    }
}

/// Memberships from noise.
pub fn membership(n: usize, k: usize, seed: u64) -> Tensor<2> {
    burn::tensor::activation::softmax(tensor(&noise(n * k, seed), [n, k]) * 2.0, 1)
}

pub fn golden<T: DeserializeOwned>(name: &str) -> T {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The largest absolute value, NaN if there is one: `f64::max` would pass over it.
pub fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    let larger = |most: f64, value: f64| if most.is_nan() || value.abs() <= most { most } else { value.abs() };
    values.into_iter().fold(0.0, larger)
}

/// The largest difference, relative to the largest reference value.
pub fn error(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let size = largest(expected.iter().copied()).max(1e-12);
    largest(found.iter().zip(expected).map(|(a, b)| a - b)) / size
}

#[track_caller]
pub fn assert_close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    let error = error(found, expected);
    // Shown with `--nocapture`: how near the limit is.
    println!("{what}: relative error {error:.1e}");
    assert!(error <= tolerance, "{what}: relative error {error:.2e} > {tolerance:.0e}");
}

/// The gradient of every parameter that has one, by its path in the module.
pub fn named_gradients<M: Module>(module: &M, gradients: Gradients) -> BTreeMap<String, Vec<f64>> {
    let mut visitor = Visitor { gradients, path: Vec::new(), found: BTreeMap::new() };
    module.visit(&mut visitor);
    visitor.found
}

struct Visitor {
    gradients: Gradients,
    path: Vec<String>,
    found: BTreeMap<String, Vec<f64>>,
}

impl ModuleVisitor for Visitor {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = param.val().grad(&self.gradients) {
            self.found.insert(self.path.join("."), read(gradient));
        }
    }
}
