//! One step of each deep method against PyTorch in float64 (scripts/golden/methods_golden.py).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use dtkc_core::augment::BatchKey;
use dtkc_core::{AutoencoderConfig, AutoencoderKind, BlockConfig, NamedArray, Values};
use dtkc_item::{Batch, ImageShape, ItemShape, Items};
use dtkc_methods::kmeans::Points;
use dtkc_methods::learner::{Passes, StepClock, StepPlace, StepResult};
use dtkc_methods::optimizer::OptimConfig;
use dtkc_methods::places::Pass;
use dtkc_methods::spectralnet::{affinities, contrastive_loss, orthonormal, orthonormaliser, spectral_loss};
use dtkc_methods::{LearnError, Learner, MethodTable, Task, TrainPlan, dcn, dec};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    rate: f64,
    dense: Case,
    conv: Case,
    pieces: Pieces,
}

#[derive(Deserialize)]
struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
}

#[derive(Deserialize)]
struct Case {
    height: usize,
    width: usize,
    pixels: Vec<u8>,
    weights: BTreeMap<String, Array>,
    centres: Array,
    codes: Array,
    memberships: Array,
    targets: Array,
    pretraining: Step,
    dec: Step,
    idec: Step,
    dec_companions: Option<Step>,
    dcn: Option<DcnStep>,
}

#[derive(Deserialize)]
struct Step {
    loss: f64,
    terms: BTreeMap<String, f64>,
    after: BTreeMap<String, Array>,
}

#[derive(Deserialize)]
struct DcnStep {
    #[serde(flatten)]
    step: Step,
    labels: Vec<u32>,
    centres: Array,
    given: Vec<u32>,
}

#[derive(Deserialize)]
struct Pieces {
    own: Array,
    near: Array,
    far: Array,
    contrast: f64,
    contrast_slopes: Vec<Array>,
    points: Array,
    ties: Array,
    outputs: Array,
    spectral_loss: f64,
    spectral_slope: Array,
    layer: Array,
    orthonormal_loss: f64,
    orthonormal_slope: Array,
}

fn golden() -> Golden {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/methods.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[track_caller]
fn close(what: &str, found: &[f64], expected: &[f64]) {
    near(what, found, expected, 1e-3);
}

/// Equal within what 32 bits can hold of sums whose parts are at least of this size.
#[track_caller]
fn near(what: &str, found: &[f64], expected: &[f64], least: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected.iter().fold(least, |most, v| most.max(v.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 3e-6 * size, "{what}: {a} instead of {b}");
    }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}

impl Array {
    fn named(&self, name: &str) -> NamedArray {
        let values = Values::F32(self.narrow());
        NamedArray { name: name.into(), shape: self.shape.clone(), values }
    }

    fn narrow(&self) -> Vec<f32> {
        self.values.iter().map(|&v| v as f32).collect()
    }

    fn tensor(&self) -> Tensor<2> {
        let data = TensorData::new(self.narrow(), [self.shape[0], self.shape[1]]);
        Tensor::from_data(data, &Device::flex().autodiff()).require_grad()
    }
}

impl Case {
    fn shape(&self) -> ImageShape {
        ImageShape { height: self.height, width: self.width, channels: 1 }
    }

    fn network(&self) -> AutoencoderConfig {
        let dense = AutoencoderConfig { hidden: vec![5, 4], code: 2, ..AutoencoderConfig::default() };
        let block = BlockConfig { filters: 3, kernel: 3, convs: 1, ..BlockConfig::default() };
        match self.height {
            2 => dense,
            _ => AutoencoderConfig { kind: AutoencoderKind::Convolutional, blocks: vec![block], ..dense },
        }
    }

    fn items(&self) -> usize {
        self.pixels.len() / self.shape().len()
    }

    fn batch(&self) -> Batch {
        let items = Items::Images { shape: self.shape(), pixels: self.pixels.clone() };
        Batch { indices: (0..self.items()).collect(), items }
    }

    fn task(&self) -> Task {
        Task {
            input: ItemShape::Image(self.shape()),
            clusters: 3,
            plan: TrainPlan::default(),
            device: Device::flex(),
            pretrained: None,
            length: 0,
            restart: 0,
            common: Default::default(),
        }
    }

    fn weights(&self) -> Vec<NamedArray> {
        self.weights.iter().map(|(name, array)| array.named(name)).collect()
    }
}

/// The whole set is one batch.
struct Whole<'a>(&'a Case);

impl Passes for Whole<'_> {
    fn len(&self) -> usize {
        self.0.items()
    }

    fn shape(&self) -> ItemShape {
        ItemShape::Image(self.0.shape())
    }

    fn batches(&mut self, _: Pass) -> Box<dyn Iterator<Item = Result<Batch, LearnError>> + '_> {
        Box::new(std::iter::once(Ok(self.0.batch())))
    }

    fn comparison(&mut self) -> Box<dyn Iterator<Item = Result<(Batch, BatchKey), LearnError>> + '_> {
        Box::new(std::iter::empty())
    }
}

fn step(learner: &mut dyn Learner, case: &Case, stage: usize) -> StepResult {
    let place = StepPlace { stage, epoch: 0.0, epochs: 1, views: BatchKey { seed: 1, epoch: 0, batch: 0 } };
    learner.step(&case.batch(), &place, &mut StepClock::start())
}

#[track_caller]
fn compare(what: &str, learner: &dyn Learner, found: &StepResult, expected: &Step) {
    assert!(found.applied, "{what}");
    // A divergence is the small difference of sums of memberships.
    near(&format!("{what}: loss"), &[found.loss.total], &[expected.loss], 0.1);
    for (name, value) in &expected.terms {
        near(&format!("{what}: {name}"), &[found.loss.get(name).unwrap()], &[*value], 0.1);
    }
    let weights = learner.weights();
    for (name, after) in &expected.after {
        let found = NamedArray::find(&weights, name).unwrap_or_else(|| panic!("{what}: {name}"));
        assert_eq!(found.shape, after.shape, "{what}: {name}");
        close(&format!("{what}: {name}"), &wide(found.values.weights()), &after.values);
    }
}

fn dec_settings(case: &Case, rate: f64) -> dec::Settings {
    let mut settings = dec::Settings { network: case.network(), ..dec::Settings::default() };
    settings.optim = OptimConfig::sgd(rate, 0.0);
    settings.pretraining.optim = OptimConfig::sgd(rate, 0.0);
    settings
}

fn dec_step(case: &Case, settings: &dec::Settings, expected: &Step, what: &str) {
    let mut learner = dec::DecLearner::new(settings, &case.task(), 0).unwrap();
    let mut weights = case.weights();
    weights.push(case.centres.named("centres"));
    learner.set_weights(&weights).unwrap();
    let answers = learner.answers(&case.batch().items);
    close("codes", &wide(&answers.embedding), &case.codes.values);
    close("memberships", &wide(&answers.membership), &case.memberships.values);
    learner.enter(2, &mut Whole(case)).unwrap();
    assert!(learner.is_refresh_due(2));
    learner.refresh(&mut Whole(case)).unwrap();
    assert!(!learner.is_refresh_due(2));
    let progress = learner.progress();
    let targets = NamedArray::find(&progress, "targets.values").unwrap();
    close("targets", &wide(targets.values.weights()), &case.targets.values);
    let found = step(&mut learner, case, 2);
    compare(what, &learner, &found, expected);
}

#[test]
fn a_step_of_dec_idec_and_dbc_is_that_of_pytorch() {
    let golden = golden();
    for (case, name) in [(&golden.dense, "dense"), (&golden.conv, "conv")] {
        let mut settings = dec_settings(case, golden.rate);
        dec_step(case, &settings, &case.dec, &format!("{name} dec"));
        if let Some(expected) = &case.dec_companions {
            let mut with = settings.clone();
            with.loss.lambda = 0.5;
            dec_step(case, &with, expected, &format!("{name} dec with companions"));
        }
        (settings.loss.clustering, settings.loss.reconstruction) = (0.1, 1.0);
        dec_step(case, &settings, &case.idec, &format!("{name} idec"));
    }
}

#[test]
fn a_step_of_pretraining_is_that_of_pytorch() {
    let golden = golden();
    for (case, name) in [(&golden.dense, "dense"), (&golden.conv, "conv")] {
        let settings = dec_settings(case, golden.rate);
        let mut learner = dec::DecLearner::new(&settings, &case.task(), 0).unwrap();
        let mut weights = case.weights();
        weights.push(case.centres.named("centres"));
        learner.set_weights(&weights).unwrap();
        let found = step(&mut learner, case, 0);
        compare(&format!("{name} pretraining"), &learner, &found, &case.pretraining);
    }
}

#[test]
fn a_step_of_dcn_is_that_of_pytorch() {
    let golden = golden();
    let case = &golden.dense;
    let expected = case.dcn.as_ref().unwrap();
    let mut settings = dcn::Settings { network: case.network(), ..dcn::Settings::default() };
    settings.optim = OptimConfig::sgd(golden.rate, 0.0);
    settings.loss.clustering = 0.5;
    let mut learner = dcn::DcnLearner::new(&settings, &case.task(), 0).unwrap();
    let mut weights = case.weights();
    weights.push(NamedArray::list("centres.values", Values::F32(case.centres.narrow())));
    weights.push(NamedArray::list("centres.counts", Values::U64(vec![100; 3])));
    learner.set_weights(&weights).unwrap();
    learner.enter(2, &mut Whole(case)).unwrap();
    let mut progress = learner.progress();
    for array in progress.iter_mut().filter(|array| array.name == "labels") {
        *array = NamedArray::list("labels", Values::U32(expected.labels.clone()));
    }
    learner.set_progress(&progress).unwrap();
    let found = step(&mut learner, case, 2);
    compare("dcn", &learner, &found, &expected.step);
    let moved = learner.weights();
    let moved = NamedArray::find(&moved, "centres.values").unwrap();
    close("centres", &wide(moved.values.weights()), &expected.centres.values);
    let given = learner.progress();
    assert_eq!(NamedArray::find(&given, "labels").unwrap().values, Values::U32(expected.given.clone()));
}

#[test]
fn the_parts_of_spectralnet_are_those_of_pytorch() {
    let Golden { pieces, .. } = golden();
    let read = |tensor: Tensor<1>| tensor.into_data().iter::<f64>().next().unwrap();
    let slope = |tensor: &Tensor<2>, gradients: &burn::tensor::Gradients| {
        tensor.grad(gradients).unwrap().into_data().iter::<f64>().collect::<Vec<_>>()
    };
    let [own, near, far] = [&pieces.own, &pieces.near, &pieces.far].map(Array::tensor);
    let contrast = contrastive_loss(own.clone(), near.clone(), far.clone(), 1.0);
    close("contrast", &[read(contrast.clone())], &[pieces.contrast]);
    let gradients = contrast.backward();
    for (tensor, expected) in [own, near, far].iter().zip(&pieces.contrast_slopes) {
        close("slope of the contrast", &slope(tensor, &gradients), &expected.values);
    }
    let points = pieces.points.narrow();
    let ties = affinities(Points { values: &points, width: 3 }, 3, 2).unwrap();
    close("ties", &wide(&ties), &pieces.ties.values);
    let outputs = pieces.outputs.tensor();
    let loss = spectral_loss(outputs.clone(), pieces.ties.tensor().detach());
    close("spectral loss", &[read(loss.clone())], &[pieces.spectral_loss]);
    close("slope of the spectral loss", &slope(&outputs, &loss.backward()), &pieces.spectral_slope.values);
    let raw = pieces.outputs.tensor();
    let loss = spectral_loss(orthonormal(raw.clone()), pieces.ties.tensor().detach());
    close("orthonormal loss", &[read(loss.clone())], &[pieces.orthonormal_loss]);
    close("slope through the layer", &slope(&raw, &loss.backward()), &pieces.orthonormal_slope.values);
    close("layer", &wide(&orthonormaliser(&pieces.outputs.narrow(), 4)), &pieces.layer.values);
}

#[test]
fn a_pretrained_autoencoder_of_another_shape_is_refused_in_one_sentence() {
    let golden = golden();
    let settings = dec_settings(&golden.dense, 0.1);
    let learner = dec::DecLearner::new(&settings, &golden.dense.task(), 0).unwrap();
    let pretrained = Some(learner.pretrained().into());
    let fitting = Task { pretrained, ..golden.dense.task() };
    let same = settings.learner(&fitting, 7).unwrap();
    assert_eq!(same.pretrained(), learner.pretrained());
    assert_eq!(same.stages()[0].epochs, 0);
    let other = dec::Settings { network: AutoencoderConfig { code: 3, ..golden.dense.network() }, ..settings };
    let error = other.learner(&fitting, 0).err().unwrap().to_string();
    assert!(error.contains("does not fit") && error.contains("encoder.2.weight") && !error.contains('\n'), "{error}");
}
