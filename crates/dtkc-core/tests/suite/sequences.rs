//! The recurrent network against PyTorch float64 with given weights (scripts/golden/core_sequences.py): scaling, every
//! layer's last states, embedding, memberships, loss, and the gradient of every parameter; and what freezes of it.

use crate::support::{assert_close, device, golden, named_gradients, read};
use dtkc_core::kernel::BandwidthRule;
use dtkc_core::loss::MembershipSum;
use dtkc_core::{
    LossConfig, Model, ModelConfig, Moment, NamedArray, NetworkConfig, Objective, RecurrentConfig, Sequences,
    StepMoments, Tapped, Values, Views,
};
use dtkc_item::ItemShape;
use dtkc_onnx::{GruOutput, Layer};
use dtkc_ops::Lengths;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    name: String,
    lengths: Vec<usize>,
    dim: usize,
    units: usize,
    layers: usize,
    hidden: usize,
    clusters: usize,
    loss: Loss,
    values: Vec<f64>,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    taps: Vec<Vec<f64>>,
    embedding: Vec<f64>,
    membership: Vec<f64>,
    terms: BTreeMap<String, f64>,
    total: f64,
    state: BTreeMap<String, Array>,
}

#[derive(Deserialize)]
struct Loss {
    bandwidth: BandwidthRule,
    sigma: f64,
    lambda: f64,
    membership_sum: MembershipSum,
}

#[derive(Deserialize)]
struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
    gradient: Vec<f64>,
}

impl Case {
    fn steps(&self) -> Vec<f32> {
        self.values.iter().map(|&value| value as f32).collect()
    }

    fn model(&self) -> Model {
        let recurrent = RecurrentConfig { layers: self.layers, units: self.units };
        let network = NetworkConfig { recurrent, hidden: self.hidden, ..NetworkConfig::default() };
        let config = ModelConfig::new(ItemShape::Sequence { dim: self.dim }, self.clusters).with_network(network);
        let mut model = config.check().unwrap().init(&device(), 0);
        let mut moments = StepMoments::new(self.dim);
        moments.add(&self.steps());
        model.set_scaling(moments.means(), moments.deviations());
        let mut state = model.state();
        for array in &mut state {
            if let Some(given) = self.state.get(&array.name) {
                assert_eq!(array.shape, given.shape, "{}", array.name);
                array.values = Values::F32(given.values.iter().map(|&v| v as f32).collect());
            }
        }
        let names: Vec<&str> = state.iter().map(|array| array.name.as_str()).collect();
        assert!(self.state.keys().all(|name| names.contains(&name.as_str())), "{names:?}");
        model.load_state(&state).unwrap();
        model
    }

    fn input(&self, model: &Model) -> Sequences {
        Sequences::new(model.scaled(&self.steps()), self.dim, Lengths::new(&self.lengths), &device())
    }
}

fn cases() -> Vec<Case> {
    golden("sequences")
}

fn floats(state: &[NamedArray], name: &str) -> Vec<f64> {
    NamedArray::find(state, name).unwrap().values.weights().iter().map(|&value| f64::from(value)).collect()
}

#[test]
fn scaling_layers_loss_and_gradients_agree() {
    for case in cases() {
        let (name, model) = (&case.name, case.model());
        let state = model.state();
        assert_close(&format!("{name}: mean"), &floats(&state, "scaling.mean"), &case.mean, 1e-6);
        assert_close(&format!("{name}: deviation"), &floats(&state, "scaling.deviation"), &case.deviation, 1e-6);
        let output = model.forward_train(case.input(&model));
        for (i, (tap, expected)) in output.blocks.iter().zip(&case.taps).enumerate() {
            let Tapped::Vectors(tap) = tap else { panic!("{name}: a layer gives vectors") };
            assert_close(&format!("{name}: layer {}", i + 1), &read(tap.clone()), expected, 1e-5);
        }
        assert_close(&format!("{name}: embedding"), &read(output.embedding.clone()), &case.embedding, 5e-5);
        assert_close(&format!("{name}: membership"), &read(output.membership.clone()), &case.membership, 5e-5);
        let Loss { bandwidth, sigma, lambda, membership_sum } = case.loss;
        let loss = LossConfig { bandwidth, sigma, lambda, membership_sum, ..LossConfig::default() };
        let loss = Objective::new(&loss).unwrap().evaluate(&output, Views::Single, Moment::LATE);
        let values = loss.read();
        assert_close(&format!("{name}: total"), &[values.total], &[case.total], 5e-5);
        assert_eq!(values.terms.len(), case.terms.len());
        for (term, expected) in &case.terms {
            assert_close(&format!("{name}: {term}"), &[values.get(term).unwrap()], &[*expected], 2e-4);
        }
        let found = named_gradients(&model, loss.total.backward());
        for (parameter, array) in &case.state {
            assert_close(&format!("{name}: gradient of {parameter}"), &found[parameter], &array.gradient, 5e-4);
        }
        assert!(!found.keys().any(|name| name.starts_with("scaling")), "the scaling is not trained");
    }
}

#[test]
fn a_sequence_is_answered_by_itself() {
    let case = &cases()[0];
    let model = case.model();
    let whole = read(model.forward_eval(case.input(&model)).membership);
    let (mut start, steps) = (0, model.scaled(&case.steps()));
    for (i, &length) in case.lengths.iter().enumerate() {
        let own = steps[start * case.dim..(start + length) * case.dim].to_vec();
        let own = Sequences::new(own, case.dim, Lengths::new(&[length]), &device());
        let alone = read(model.forward_eval(own).membership);
        assert_close(&format!("sequence {i}"), &alone, &whole[i * case.clusters..][..case.clusters], 1e-5);
        start += length;
    }
}

#[test]
fn it_freezes_with_its_scaling_and_the_last_layer_gives_last_states() {
    let case = &cases()[0];
    let network = case.model().to_network();
    assert_eq!(network.input, ItemShape::Sequence { dim: 3 });
    let names: Vec<String> = network.layers.iter().map(|layer| format!("{layer:?}")).collect();
    assert!(names[0].starts_with("Standardize") && names.last().unwrap() == "Softmax", "{names:?}");
    let [Layer::Gru { keep: first, .. }, Layer::Gru { forward, backward, keep: last }] = &network.layers[1..3] else {
        panic!("two recurrent layers");
    };
    assert_eq!((*first, *last), (GruOutput::Steps, GruOutput::Last));
    let both = &case.state["recurrent.1.recurrent"].values;
    let found: Vec<f64> =
        forward.recurrent.data.iter().chain(&backward.recurrent.data).map(|&v| f64::from(v)).collect();
    assert_close("recurrent weights", &found, both, 1e-7);
    assert_eq!((forward.input.shape.clone(), forward.recurrent.shape.clone()), (vec![12, 8], vec![12, 4]));
}

#[test]
fn first_weights_depend_on_the_seed_alone_and_impossible_sizes_are_refused() {
    let config = || ModelConfig::new(ItemShape::Sequence { dim: 3 }, 4);
    let state = |seed| config().check().unwrap().init(&device(), seed).state();
    assert_eq!(state(1), state(1));
    assert_ne!(state(1), state(2));
    let recurrent = floats(&state(1), "recurrent.0.recurrent");
    // Columns of the state are orthonormal, as Keras draws them.
    for (a, b) in [(0, 0), (3, 3), (0, 7), (12, 31)] {
        let product: f64 = (0..96).map(|row| recurrent[row * 32 + a] * recurrent[row * 32 + b]).sum();
        assert!((product - f64::from(u8::from(a == b))).abs() < 1e-5, "{a} {b} {product}");
    }
    for (layers, units, name) in [(0, 32, "layers"), (2, 0, "units"), (2, 1_000_000, "units")] {
        let network = NetworkConfig { recurrent: RecurrentConfig { layers, units }, ..NetworkConfig::default() };
        let error = config().with_network(network).check().unwrap_err().to_string();
        assert!(error.contains(&format!("network.recurrent.{name}")), "{error}");
    }
    assert!(ModelConfig::new(ItemShape::Sequence { dim: 0 }, 4).check().is_err());
}

#[test]
fn a_dimension_that_never_changes_becomes_zero() {
    let mut model = ModelConfig::new(ItemShape::Sequence { dim: 2 }, 2).check().unwrap().init(&device(), 0);
    let mut moments = StepMoments::new(2);
    moments.add(&[5.0, 1.0, 5.0, 3.0]);
    model.set_scaling(moments.means(), moments.deviations());
    assert_eq!(model.scaled(&[5.0, 1.0, 6.0, 3.0]), [0.0, -1.0, 1.0, 1.0]);
}
