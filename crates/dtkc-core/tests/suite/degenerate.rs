//! Batches that break naive code: the loss and every gradient stay finite.

use crate::support::{device, floats, losses, named_gradients, noise};
use burn::tensor::Tensor;
use dtkc_core::augment::BatchKey;
use dtkc_core::{AugmentConfig, Augmenter, Model, ModelConfig, Moment, Objective, Views, scale_images, scale_pixels};
use dtkc_item::ImageShape;

const SIZE: ImageShape = ImageShape { height: 20, width: 22, channels: 1 };

fn model(k: usize) -> Model {
    ModelConfig::new(SIZE, k).check().unwrap().init(&device(), 1)
}

fn bytes(n: usize, seed: u64) -> Vec<u8> {
    noise(n * SIZE.len(), seed).iter().map(|v| (v * 127.0 + 128.0) as u8).collect()
}

#[track_caller]
fn assert_trains(what: &str, model: &Model, x: Tensor<4>, views: Views) {
    for (preset, loss) in losses() {
        let output = model.forward_train(x.clone());
        let terms = Objective::new(&loss).unwrap().evaluate(&output, views, Moment::LATE);
        let values = terms.read();
        assert!(values.is_finite(), "{what}, {preset}: {values:?}");
        for (name, gradient) in named_gradients(model, terms.total.backward()) {
            assert!(gradient.iter().all(|g| g.is_finite()), "{what}, {preset}: gradient of {name}");
        }
    }
}

fn single(images: &[u8]) -> Tensor<4> {
    scale_images(images, SIZE, &device())
}

#[test]
fn blank_images() {
    assert_trains("all blank", &model(4), single(&vec![0; 6 * SIZE.len()]), Views::Single);
    let mut some = bytes(6, 2);
    some[..3 * SIZE.len()].fill(200);
    assert_trains("half blank", &model(4), single(&some), Views::Single);
}

#[test]
fn equal_images() {
    assert_trains("all equal", &model(4), single(&bytes(1, 3).repeat(7)), Views::Single);
    let mut pairs = bytes(3, 4);
    pairs.extend(bytes(3, 4));
    assert_trains("duplicates", &model(4), single(&pairs), Views::Paired);
}

#[test]
fn images_with_one_bright_pixel_or_equal_rows() {
    let mut dots = vec![0; 5 * SIZE.len()];
    (0..5).for_each(|i| dots[i * SIZE.len() + 37 * (i + 1)] = 255);
    assert_trains("dots", &model(3), single(&dots), Views::Single);
    let stripes: Vec<u8> = (0..5 * SIZE.len())
        .map(|at| if (at % SIZE.width).is_multiple_of(2 + at / SIZE.len()) { 255 } else { 0 })
        .collect();
    assert_trains("stripes", &model(3), single(&stripes), Views::Single);
}

#[test]
fn fewer_images_than_clusters_and_single_images() {
    assert_trains("2 of 10", &model(10), single(&bytes(2, 5)), Views::Single);
    assert_trains("one image", &model(10), single(&bytes(1, 6)), Views::Single);
    assert_trains("one image, two clusters", &model(2), single(&bytes(1, 6)), Views::Single);
    let augmenter = Augmenter::new(&AugmentConfig::strong(), SIZE).unwrap();
    let pair = augmenter.pairs(scale_pixels(&bytes(1, 6), SIZE), BatchKey { seed: 0, epoch: 0, batch: 0 }, &device());
    assert_trains("one pair", &model(10), pair, Views::Paired);
}

#[test]
fn two_clusters() {
    assert_trains("k = 2", &model(2), single(&bytes(9, 7)), Views::Single);
}

#[test]
fn dead_channels_and_a_dead_network() {
    let mut dead = model(4);
    let mut state = dead.state();
    // Half of the channels of the last convolution give nothing, whatever the image.
    let beta = state.iter_mut().find(|a| a.name == "blocks.1.norm.beta").unwrap();
    floats(beta)[..16].fill(-100.0);
    dead.load_state(&state).unwrap();
    assert_trains("dead channels", &dead, single(&bytes(8, 8)), Views::Single);
    let beta = state.iter_mut().find(|a| a.name == "blocks.1.norm.beta").unwrap();
    floats(beta).fill(-100.0);
    dead.load_state(&state).unwrap();
    assert_trains("dead network", &dead, single(&bytes(8, 8)), Views::Single);
}

#[test]
fn certain_memberships() {
    let mut certain = model(4);
    let mut state = certain.state();
    let weight = state.iter_mut().find(|a| a.name == "output.weight").unwrap();
    floats(weight).iter_mut().for_each(|w| *w *= 1e4);
    certain.load_state(&state).unwrap();
    assert_trains("certain", &certain, single(&bytes(8, 9)), Views::Paired);
    let bias = state.iter_mut().find(|a| a.name == "output.bias").unwrap();
    floats(bias)[0] = 1e6;
    certain.load_state(&state).unwrap();
    assert_trains("all in one cluster", &certain, single(&bytes(8, 9)), Views::Paired);
}

#[test]
fn a_broken_weight_is_noticed_and_named() {
    let mut broken = model(3);
    let mut state = broken.state();
    // Behind the last ReLU: `max(NaN, 0)` may be 0.
    floats(state.iter_mut().find(|a| a.name == "output.weight").unwrap())[0] = f32::NAN;
    broken.load_state(&state).unwrap();
    let [.., (_, loss)] = losses();
    let output = broken.forward_train(single(&bytes(4, 1)));
    let values = Objective::new(&loss).unwrap().evaluate(&output, Views::Single, Moment::LATE).read();
    assert!(!values.is_finite() && values.first_non_finite() == Some("separation"), "{values:?}");
}
