//! What is said about the inside of a network, against differences of its loss.
#![allow(clippy::unwrap_used)]

use burn::tensor::Device;
use dtkc_core::augment::BatchKey;
use dtkc_core::{CompanionKernel, NamedArray, Values};
use dtkc_item::{Batch, ImageShape, Items};
use dtkc_methods::learner::{Learner, StepPlace};
use dtkc_methods::{Method, MethodSettings, Task};

const SHAPE: ImageShape = ImageShape { height: 12, width: 12, channels: 1 };
const VIEWS: BatchKey = BatchKey { seed: 3, epoch: 0, batch: 0 };

fn batch() -> Batch {
    let mut state = 9u32;
    let mut next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    Batch {
        indices: (0..24).collect(),
        items: Items::Images { shape: SHAPE, pixels: (0..24 * 144).map(&mut next).collect() },
    }
}

/// DTKC with a small network and companions that count. No term has a kernel whose width follows from the batch: gradients take
/// widths as given, differences of the loss do not.
fn learner() -> Box<dyn Learner> {
    let (_, mut settings, plan) = Method::Dtkc.preset(Some("authors")).unwrap();
    let MethodSettings::Dtkc(table) = &mut settings else { panic!("not its settings") };
    (table.loss.lambda, table.loss.kernel) = (0.5, CompanionKernel::Identity);
    (table.loss.separation, table.loss.simplex) = (0.0, 0.0);
    for block in &mut table.network.blocks {
        (block.filters, block.kernel, block.convs) = (4, 3, 1);
    }
    let device = Device::flex();
    let task = Task {
        input: SHAPE.into(),
        clusters: 3,
        plan,
        device,
        pretrained: None,
        length: 0,
        restart: 0,
        common: Default::default(),
    };
    settings.learner(&task, 5).unwrap()
}

/// The weights of the blocks moved by `by` along `direction`.
fn moved(weights: &[NamedArray], direction: &[f32], by: f32) -> Vec<NamedArray> {
    let mut along = direction.iter();
    let mut moved = weights.to_vec();
    for array in moved.iter_mut().filter(|array| array.name.starts_with("blocks.")) {
        let Values::F32(values) = &mut array.values else { panic!("weights are numbers") };
        values.iter_mut().zip(&mut along).for_each(|(value, step)| *value += by * step);
    }
    assert_eq!(along.next(), None, "a gradient has a value for every weight of the blocks");
    moved
}

#[test]
fn gradients_tell_how_the_loss_changes_with_the_blocks() {
    let mut learner = learner();
    let batch = batch();
    let place = StepPlace { stage: 0, epoch: 1.0, epochs: 4, views: VIEWS };
    let found = learner.inside().unwrap().gradients(&batch, &place);
    let names: Vec<&str> = found.others.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["companion_1", "companion_2"]);
    let mut all = found.clustering.clone().unwrap();
    for (_, gradient) in &found.others {
        all.iter_mut().zip(gradient).for_each(|(sum, value)| *sum += value);
    }
    let square: f64 = all.iter().map(|&value| f64::from(value).powi(2)).sum();
    let weights = learner.weights();
    let step = (1e-3 / square.sqrt()) as f32;
    let mut loss_at = |by: f32| {
        learner.set_weights(&moved(&weights, &all, by)).unwrap();
        learner.loss(&batch, VIEWS)
    };
    let slope = (loss_at(step) - loss_at(-step)) / (2.0 * f64::from(step));
    assert!((slope / square - 1.0).abs() < 0.02, "{slope} and {square}");
    let cosines = found.cosines();
    assert!(
        cosines.len() == 2 && cosines.iter().all(|(_, cosine)| cosine.abs() <= 1.0 && *cosine != 0.0),
        "{cosines:?}"
    );
}

#[test]
fn features_are_what_the_last_block_gives() {
    let learner = learner();
    let features = learner.inside().unwrap().features(&batch().items);
    // 12 - 2 = 10, pooled 5, - 2 = 3, pooled 1; four filters.
    assert_eq!((features.width, features.values.len()), (4, 24 * 4));
    assert!(features.values.iter().all(|&value| value >= 0.0) && features.values.iter().any(|&value| value > 0.0));
}
