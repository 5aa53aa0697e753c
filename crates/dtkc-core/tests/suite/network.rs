//! Whole networks against PyTorch float64 with given weights (scripts/golden/core_golden.py).

use crate::support::{assert_close, device, golden, named_gradients, read};
use burn::module::Module;
use burn::tensor::Tensor;
use dtkc_core::{
    LossConfig, Model, ModelConfig, Moment, NamedArray, NetworkConfig, Objective, Output, Tapped, Values, Views,
    scale_images,
};
use dtkc_item::ImageShape;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    name: String,
    height: usize,
    width: usize,
    channels: usize,
    clusters: usize,
    network: NetworkConfig,
    loss: LossConfig,
    images: Vec<u8>,
    state: BTreeMap<String, Array>,
    train: Expected,
    eval: Expected,
    statistics: Vec<Statistics>,
    terms: BTreeMap<String, f64>,
    total: f64,
}

#[derive(Deserialize)]
struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
    gradient: Option<Vec<f64>>,
}

#[derive(Deserialize)]
struct Expected {
    blocks: Vec<Vec<f64>>,
    embedding: Vec<f64>,
    membership: Vec<f64>,
    /// Memberships in the fine clusters: in training, of a network with a second output layer.
    fine: Option<Vec<f64>>,
}

#[derive(Deserialize)]
struct Statistics {
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Case {
    fn size(&self) -> ImageShape {
        ImageShape { height: self.height, width: self.width, channels: self.channels }
    }

    fn model(&self) -> Model {
        let config = ModelConfig::new(self.size(), self.clusters).with_network(self.network.clone());
        let mut model = config.check().unwrap().init(&device(), 0);
        let values = |array: &Array| Values::F32(array.values.iter().map(|&v| v as f32).collect());
        let state: Vec<NamedArray> = self
            .state
            .iter()
            .map(|(name, array)| NamedArray { name: name.clone(), shape: array.shape.clone(), values: values(array) })
            .collect();
        model.load_state(&state).unwrap();
        model
    }

    fn images(&self) -> Tensor<4> {
        scale_images(&self.images, self.size(), &device())
    }

    fn compare(&self, mode: &str, output: &Output, expected: &Expected) {
        let name = &self.name;
        for (i, (found, expected)) in output.blocks.iter().zip(&expected.blocks).enumerate() {
            let Tapped::Maps(found) = found else { panic!("{name}: a block gives maps") };
            assert_close(&format!("{name}, {mode}: block {}", i + 1), &read(found.clone()), expected, 1e-5);
        }
        let embedding = read(output.embedding.clone());
        assert_close(&format!("{name}, {mode}: embedding"), &embedding, &expected.embedding, 2e-5);
        let membership = read(output.membership.clone());
        assert_close(&format!("{name}, {mode}: membership"), &membership, &expected.membership, 2e-5);
        assert_eq!(output.fine.is_some(), expected.fine.is_some(), "{name}, {mode}: fine clusters");
        if let (Some(found), Some(expected)) = (&output.fine, &expected.fine) {
            assert_close(&format!("{name}, {mode}: fine clusters"), &read(found.clone()), expected, 2e-5);
        }
    }
}

fn cases() -> Vec<Case> {
    golden("network")
}

#[test]
fn forward_agrees_in_both_modes() {
    for case in cases() {
        let model = case.model();
        let train = model.forward_train(case.images());
        case.compare("train", &train, &case.train);
        assert_eq!(train.statistics.len(), case.statistics.len());
        for (found, expected) in train.statistics.iter().zip(&case.statistics) {
            assert_close("batch mean", &read(found.mean.clone()), &expected.mean, 1e-5);
            assert_close("batch variance", &read(found.variance.clone()), &expected.variance, 1e-5);
        }
        let eval = model.forward_eval(case.images());
        case.compare("eval", &eval, &case.eval);
        assert!(eval.statistics.is_empty());
        case.compare("eval without autodiff", &model.valid().forward_eval(case.images().inner()), &case.eval);
    }
}

#[test]
fn loss_and_the_gradient_of_every_parameter_agree() {
    for case in cases() {
        let model = case.model();
        let objective = Objective::new(&case.loss).unwrap();
        let views = if case.loss.needs_pairs() { Views::Paired } else { Views::Single };
        let loss = objective.evaluate(&model.forward_train(case.images()), views, Moment::LATE);
        let values = loss.read();
        assert_close(&format!("{}: total", case.name), &[values.total], &[case.total], 2e-5);
        let names: Vec<&str> = values.terms.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.len(), case.terms.len(), "{names:?}");
        for (name, expected) in &case.terms {
            // The projectors of the companion objectives carry a ridge of 1e-5 of the mean eigenvalue.
            let tolerance = if name.starts_with("companion") { 5e-4 } else { 2e-5 };
            assert_close(&format!("{}: {name}", case.name), &[values.get(name).unwrap()], &[*expected], tolerance);
        }
        compare_gradients(&case, &model, &loss.total);
    }
}

fn compare_gradients(case: &Case, model: &Model, total: &Tensor<1>) {
    let found = named_gradients(model, total.backward());
    for (name, array) in &case.state {
        // A bias in front of batch norm has no effect: its true gradient is zero, ours is rounding.
        let expected = match &array.gradient {
            Some(gradient) if gradient.iter().any(|g| g.abs() > 1e-7) => gradient,
            Some(_) => {
                assert!(found[name].iter().all(|g| g.abs() < 1e-4), "{name}: {:?}", found[name]);
                continue;
            }
            None => {
                assert!(!found.contains_key(name), "{name} must have no gradient");
                continue;
            }
        };
        assert_close(&format!("{}: gradient of {name}", case.name), &found[name], expected, 3e-4);
    }
}

#[test]
fn fine_clusters_count_between_views_only() {
    for case in cases().iter().filter(|case| case.network.fine > 0) {
        let model = case.model();
        let objective = Objective::new(&case.loss).unwrap();
        let loss = objective.evaluate(&model.forward_train(case.images()), Views::Single, Moment::LATE);
        assert_eq!(loss.read().get("overclustering"), None);
        let gradients = named_gradients(&model, loss.total.backward());
        assert!(!gradients.keys().any(|name| name.starts_with("fine")), "{:?}", gradients.keys());
    }
}

#[test]
fn overclustering_grows_with_the_terms_between_views() {
    for case in cases().iter().filter(|case| case.network.fine > 0) {
        let config = LossConfig { ramp: 8.0, ..case.loss.clone() };
        let between = [
            ("consistency", config.consistency),
            ("mutual_information", config.mutual_information),
            ("overclustering", config.overclustering),
            ("self_label", config.self_label),
        ];
        let between: f64 = between.iter().filter_map(|(name, weight)| Some(weight * case.terms.get(*name)?)).sum();
        let output = case.model().forward_train(case.images());
        let quarter = Objective::new(&config)
            .unwrap()
            .evaluate(&output, Views::Paired, Moment { epoch: 2.0, companions: 1.0 })
            .read();
        assert_close(&format!("{}: ramp", case.name), &[quarter.total], &[case.total - 0.75 * between], 5e-5);
        assert_close("unweighted", &[quarter.get("overclustering").unwrap()], &[case.terms["overclustering"]], 2e-5);
    }
}
