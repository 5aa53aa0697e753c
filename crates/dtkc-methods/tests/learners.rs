//! k-means and spectral clustering as learners, on a set in memory.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use burn::tensor::Device;
use dtkc_core::augment::BatchKey;
use dtkc_core::{Values, scale_pixels};
use dtkc_item::{Batch, ImageShape, ItemShape, Items};
use dtkc_methods::kmeans::{Points, lloyd_from};
use dtkc_methods::learner::{EpochPlace, Learner, Passes, StepClock, StepPlace};
use dtkc_methods::places::{self, Pass};
use dtkc_methods::{LearnError, Method, Task};
use dtkc_onnx::Layer;

const SIDE: usize = 28;
const BATCH: usize = 32;
const SHAPE: ImageShape = ImageShape { height: SIDE, width: SIDE, channels: 1 };

struct Set {
    pixels: Vec<u8>,
}

impl Set {
    /// Three kinds of images: a bright bar at one of three places, with noise.
    fn bars(n: usize) -> Self {
        let mut state = 7u32;
        let mut noise = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 26) as u8
        };
        let pixel = |image: usize, row: usize| if row / 10 == image % 3 { 180 } else { 0 };
        let pixels = (0..n * SIDE * SIDE).map(|at| pixel(at / (SIDE * SIDE), at / SIDE % SIDE) + noise()).collect();
        Self { pixels }
    }

    fn constant(n: usize) -> Self {
        Self { pixels: vec![9; n * SIDE * SIDE] }
    }

    /// Every third item first, so that the order is not that of the set.
    fn all(&self) -> Vec<Batch> {
        let n = self.len();
        let order: Vec<usize> = (0..3).flat_map(|first| (first..n).step_by(3)).collect();
        let batch = |indices: &[usize]| {
            let image = |&i: &usize| self.pixels[i * SIDE * SIDE..][..SIDE * SIDE].to_vec();
            let items = Items::Images { shape: SHAPE, pixels: indices.iter().flat_map(image).collect() };
            Batch { indices: indices.to_vec(), items }
        };
        order.chunks(BATCH).map(batch).collect()
    }
}

impl Passes for Set {
    fn len(&self) -> usize {
        self.pixels.len() / (SIDE * SIDE)
    }

    fn shape(&self) -> ItemShape {
        SHAPE.into()
    }

    fn batches(&mut self, _pass: Pass) -> Box<dyn Iterator<Item = Result<Batch, LearnError>> + '_> {
        Box::new(self.all().into_iter().map(Ok))
    }

    fn comparison(&mut self) -> Box<dyn Iterator<Item = Result<(Batch, BatchKey), LearnError>> + '_> {
        Box::new(self.all().into_iter().map(|batch| Ok((batch, places::comparison_views(1, 0)))))
    }
}

fn learner(method: Method, clusters: usize, seed: u64) -> Box<dyn Learner> {
    let (_, settings, mut plan) = method.preset(None).unwrap();
    plan.epochs = 4;
    let task = Task {
        input: SHAPE.into(),
        clusters,
        plan,
        device: Device::flex(),
        pretrained: None,
        length: 0,
        restart: 0,
        common: Default::default(),
    };
    settings.check_task(task.input, clusters).unwrap();
    settings.learner(&task, seed).unwrap()
}

/// Trains all stages; after every `cut` steps the learner is saved and a new one goes on. Returns the loss of each epoch.
fn train(learner: &mut Box<dyn Learner>, set: &mut Set, again: &dyn Fn() -> Box<dyn Learner>, cut: usize) -> Vec<f64> {
    let (mut losses, mut steps) = (Vec::new(), 0);
    for (stage, described) in learner.stages().iter().enumerate() {
        learner.enter(stage, set).unwrap();
        for epoch in 0..described.epochs {
            let mut sum = 0.0;
            for (number, batch) in set.all().iter().enumerate() {
                if steps % cut == cut - 1 {
                    let mut new = again();
                    new.set_weights(&learner.weights()).unwrap();
                    new.set_progress(&learner.progress()).unwrap();
                    *learner = new;
                }
                steps += 1;
                let views = places::views(1, 0, stage, epoch, number);
                let place = StepPlace { stage, epoch: epoch as f64, epochs: described.epochs, views };
                let result = learner.step(batch, &place, &mut StepClock::start());
                assert!(result.applied);
                sum += result.loss.total * batch.len() as f64;
            }
            losses.push(sum / set.len() as f64);
            let place = EpochPlace { stage, done: epoch + 1, epochs: described.epochs };
            if learner.end_epoch(&place, set).unwrap().converged {
                break;
            }
        }
    }
    losses
}

fn clusters_of(learner: &dyn Learner, set: &Set) -> Vec<usize> {
    let mut found = vec![0; set.len()];
    for Batch { indices, items } in set.all() {
        let answers = learner.answers(&items);
        for (index, row) in indices.into_iter().zip(answers.membership.chunks_exact(answers.clusters)) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            found[index] = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
        }
    }
    found
}

#[test]
fn both_find_the_three_kinds() {
    for method in [Method::Kmeans, Method::Spectral] {
        let mut set = Set::bars(120);
        let mut one = learner(method, 3, 5);
        train(&mut one, &mut set, &|| unreachable!(), usize::MAX);
        one.settle(&mut set).unwrap();
        let found = clusters_of(one.as_ref(), &set);
        assert!((0..120).all(|i| found[i] == found[i % 3]), "{method}: {found:?}");
        assert!(found[0] != found[1] && found[1] != found[2] && found[0] != found[2], "{method}");
        assert_eq!(one.freeze().clusters(), Ok(3));
    }
}

#[test]
fn a_learner_that_is_saved_and_restored_goes_on_to_the_same_bits() {
    for (method, clusters) in [(Method::Kmeans, 8), (Method::Spectral, 3)] {
        let mut set = Set::bars(100);
        let mut whole = learner(method, clusters, 5);
        let expected = train(&mut whole, &mut set, &|| unreachable!(), usize::MAX);
        for cut in [1, 3] {
            let mut parts = learner(method, clusters, 5);
            // The seed of a learner that goes on does not matter: its state is all there is.
            let found = train(&mut parts, &mut set, &|| learner(method, clusters, 99), cut);
            assert_eq!(found, expected, "{method}");
            assert_eq!(parts.weights(), whole.weights(), "{method}");
            assert_eq!(parts.progress(), whole.progress(), "{method}");
        }
    }
}

#[test]
fn streamed_iterations_are_those_in_memory() {
    let mut set = Set::bars(150);
    let mut one = learner(Method::Kmeans, 7, 3);
    one.enter(0, &mut set).unwrap();
    let first = one.weights()[0].values.weights().to_vec();
    let losses = train(&mut learner(Method::Kmeans, 7, 3), &mut set, &|| unreachable!(), usize::MAX);
    let values = scale_pixels(&set.pixels, SHAPE);
    for (iterations, loss) in losses.iter().enumerate() {
        // The loss of an epoch is that of the centres it began with.
        let points = Points { values: &values, width: SIDE * SIDE };
        let found = lloyd_from(points, first.clone(), iterations, 0.0, &|| false).unwrap();
        assert!((found.inertia / 150.0 - loss).abs() < 1e-5 * loss, "{iterations}: {} {loss}", found.inertia / 150.0);
    }
    assert!(losses.len() > 1 && losses.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-9)), "{losses:?}");
}

#[test]
fn the_network_of_k_means_answers_as_the_learner_does() {
    let mut set = Set::bars(60);
    let mut one = learner(Method::Kmeans, 4, 2);
    train(&mut one, &mut set, &|| unreachable!(), usize::MAX);
    one.settle(&mut set).unwrap();
    let batch = &set.all()[0];
    let answers = one.answers(&batch.items);
    assert_eq!(answers.width, 3, "k - 1 axes");
    let image = &scale_pixels(batch.items.pixels().unwrap(), SHAPE)[..SIDE * SIDE];
    let mut value: Vec<f64> = image.iter().map(|&v| f64::from(v)).collect();
    for layer in one.freeze().layers {
        match layer {
            Layer::Dense { weight, bias } => {
                let column = |j: usize| value.iter().enumerate().map(move |(i, v)| (i, j, *v)).collect::<Vec<_>>();
                let sum = |j: usize| {
                    let terms = column(j).into_iter().map(|(i, j, v)| v * f64::from(weight.data[i * bias.len() + j]));
                    terms.sum::<f64>() + f64::from(bias[j])
                };
                value = (0..bias.len()).map(sum).collect();
            }
            Layer::Embedding => {
                for (a, b) in value.iter().zip(&answers.embedding) {
                    assert!((a - f64::from(*b)).abs() < 1e-5);
                }
            }
            Layer::Softmax => {
                let total: f64 = value.iter().map(|v| v.exp()).sum();
                for (a, b) in value.iter().zip(&answers.membership) {
                    assert!((a.exp() / total - f64::from(*b)).abs() < 1e-5);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn images_without_differences_end_in_a_network() {
    let mut set = Set::constant(40);
    let mut one = learner(Method::Kmeans, 3, 1);
    let losses = train(&mut one, &mut set, &|| unreachable!(), usize::MAX);
    one.settle(&mut set).unwrap();
    assert!(losses.iter().all(|loss| *loss == 0.0));
    assert_eq!(one.freeze().clusters(), Ok(3));
    clusters_of(one.as_ref(), &set);
}

#[test]
fn more_clusters_than_images_are_refused_in_a_sentence() {
    for method in [Method::Kmeans, Method::Spectral] {
        let error = learner(method, 9, 1).enter(0, &mut Set::bars(5)).unwrap_err().to_string();
        assert!(error.starts_with("5 items cannot fill 9 clusters"), "{method}: {error}");
    }
}

#[test]
fn a_state_of_another_run_is_refused() {
    let mut set = Set::bars(30);
    let mut one = learner(Method::Kmeans, 3, 1);
    one.enter(0, &mut set).unwrap();
    let mut other = learner(Method::Kmeans, 4, 1);
    let before = other.weights();
    assert!(other.set_weights(&one.weights()).unwrap_err().to_string().contains("centres"));
    assert!(other.set_progress(&one.progress()).is_err());
    assert_eq!(other.weights(), before);
}

#[test]
fn a_centre_that_lost_all_its_items_is_given_some_again() {
    const CLUSTERING: usize = 2;
    let mut set = Set::bars(60);
    let mut one = learner(Method::Dec, 3, 5);
    (0..=CLUSTERING).for_each(|stage| one.enter(stage, &mut set).unwrap());
    let mut weights = one.weights();
    let centres = weights.iter_mut().find(|array| array.name == "centres").unwrap();
    let Values::F32(values) = &mut centres.values else { unreachable!("centres are numbers") };
    let width = values.len() / 3;
    values[..width].fill(1e4);
    one.set_weights(&weights).unwrap();
    let used = |one: &dyn Learner| BTreeSet::from_iter(clusters_of(one, &set)).len();
    assert_eq!(used(one.as_ref()), 2);
    let mut data = Set { pixels: set.pixels.clone() };
    one.refresh(&mut data).unwrap();
    assert_eq!(used(one.as_ref()), 2);
    one.end_epoch(&EpochPlace { stage: CLUSTERING, done: 1, epochs: 4 }, &mut data).unwrap();
    assert_eq!(used(one.as_ref()), 3);
}
