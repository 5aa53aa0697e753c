#![allow(clippy::unwrap_used)]

use dtkc_item::ImageShape;

use super::*;
use crate::testing::{Sample, SequenceSample, forward, forward_sequence};

fn refusal(change: impl FnOnce(&mut Network)) -> String {
    let mut network = Sample::small().network();
    change(&mut network);
    network.clusters().unwrap_err().to_string()
}

#[test]
fn shapes_are_followed() {
    let network = Sample::small().network();
    assert_eq!(network.clusters(), Ok(4));
    assert_eq!(network.embedding_size(), Ok(7));
    // 22 x 27 -> 18 x 23 -> 14 x 19 -> 7 x 9 -> 5 x 7 -> 3 x 5 -> 1 x 2, by hand.
    let sizes = network.check().unwrap().sizes;
    assert_eq!(sizes[12], Size::Image(ImageShape { height: 1, width: 2, channels: 5 }));
    assert_eq!(sizes[13], Size::Vector(10));
}

#[test]
fn layers_that_do_not_fit_are_named() {
    let image = Sample::small().shape();
    let with_input = |image| refusal(|n| n.input = ItemShape::Image(image));
    assert!(with_input(ImageShape { channels: 1, ..image }).contains("layer 0 (Conv)"));
    assert!(with_input(ImageShape { channels: 2, ..image }).contains("1 or 3 channels"));
    assert!(with_input(ImageShape { height: 19, ..image }).contains("use larger images"));
    assert!(with_input(ImageShape { height: 0, ..image }).contains("0 x 27 pixels"));
    let sequences = refusal(|n| n.input = ItemShape::Sequence { dim: 3 });
    assert!(sequences.contains("layer 0 (Conv)") && sequences.contains("needs an image and gets a sequence"));
    assert!(refusal(|n| drop(n.layers.remove(12))).contains("add Flatten before it"));
    assert!(refusal(|n| drop(n.layers.remove(16))).contains("no layer is marked"));
    assert!(refusal(|n| n.layers.insert(16, Layer::Embedding)).contains("second embedding"));
    assert!(refusal(|n| drop(n.layers.pop())).contains("dense layer and a softmax"));
    assert!(refusal(|n| n.layers.push(Layer::Relu)).contains("must be the last layer"));
    assert!(refusal(|n| n.layers.insert(13, Layer::MaxPool { size: 2 })).contains("gets a vector"));
}

#[test]
fn a_head_of_centres_is_checked_and_renumbered() {
    let sample = Sample::small();
    let mut network = sample.student_t();
    assert_eq!((network.clusters(), network.embedding_size()), (Ok(4), Ok(7)));
    let image = &sample.images(1);
    let before = forward(&network, image).probabilities;
    network.reorder_clusters(&[2, 0, 3, 1]).unwrap();
    assert_eq!(forward(&network, image).probabilities, [2, 0, 3, 1].map(|old| before[old]));
    network.layers.push(Layer::Tanh);
    assert!(network.clusters().unwrap_err().to_string().contains("must be the last layer"));
    let centres = Weights::new([4, 6], vec![0.0; 24]);
    let narrow = refusal(|n| n.layers.splice(17.., [Layer::StudentT { centres }]).for_each(drop));
    assert!(narrow.contains("its centres have 6 features and it gets 7"), "{narrow}");
}

#[test]
fn wrong_weights_are_named() {
    let dense = |change: fn(&mut Weights, &mut Vec<f32>)| {
        refusal(|n| {
            if let Layer::Dense { weight, bias } = &mut n.layers[13] {
                change(weight, bias);
            }
        })
    };
    assert!(dense(|weight, _| weight.data[3] = f32::NAN).contains("its weight holds NaN"));
    assert!(dense(|weight, _| weight.data.truncate(69)).contains("has 69 values"));
    assert!(dense(|_, bias| bias.truncate(6)).contains("6 values instead of 7"));
    assert!(dense(|weight, _| weight.shape = vec![70]).contains("1 dimensions instead of 2"));
    let variance = refusal(|n| {
        if let Layer::BatchNorm { variance, .. } = &mut n.layers[3] {
            variance[0] = -1.0;
        }
    });
    assert!(variance.contains("not positive"));
}

#[test]
fn clusters_are_renumbered() {
    let sample = Sample::small();
    let image = sample.images(1);
    let mut network = sample.network();
    let before = forward(&network, &image);
    network.reorder_clusters(&[2, 0, 3, 1]).unwrap();
    let after = forward(&network, &image);
    let expected: Vec<f64> = [2, 0, 3, 1].iter().map(|&old| before.probabilities[old]).collect();
    assert_eq!(after.probabilities.len(), 4);
    for (found, expected) in after.probabilities.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12);
    }
    assert_eq!(after.embedding, before.embedding);
}

#[test]
fn only_a_full_order_renumbers() {
    let mut network = Sample::small().network();
    let before = network.clone();
    for order in [&[0, 1, 2][..], &[0, 1, 2, 2], &[0, 1, 2, 4], &[0, 1, 2, 3, 0]] {
        assert!(network.reorder_clusters(order).is_err(), "{order:?}");
    }
    assert_eq!(network, before);
}

fn sequence_refusal(change: impl FnOnce(&mut Network)) -> String {
    let mut network = SequenceSample::small().network();
    change(&mut network);
    network.clusters().unwrap_err().to_string()
}

#[test]
fn shapes_of_sequences_are_followed() {
    let sample = SequenceSample::small();
    let network = sample.network();
    assert_eq!((network.clusters(), network.embedding_size()), (Ok(4), Ok(7)));
    let sizes = network.check().unwrap().sizes;
    assert_eq!(sizes[..4], [Size::Sequence(3), Size::Sequence(3), Size::Sequence(10), Size::Vector(10)]);
    let resampled = sample.resampled(6);
    assert_eq!((resampled.clusters(), resampled.embedding_size()), (Ok(4), Ok(18)));
    assert_eq!(resampled.check().unwrap().sizes[2..4], [Size::Steps(6, 3), Size::Vector(18)]);
}

#[test]
fn layers_that_do_not_fit_a_sequence_are_named() {
    assert!(sequence_refusal(|n| n.input = ItemShape::Sequence { dim: 0 }).contains("no values"));
    let mean = sequence_refusal(|n| n.input = ItemShape::Sequence { dim: 2 });
    assert!(mean.contains("layer 0 (Standardize)") && mean.contains("3 values instead of 2"), "{mean}");
    let width = sequence_refusal(|n| drop(n.layers.remove(1)));
    assert!(width.contains("expects 10 features and gets 3"), "{width}");
    assert!(sequence_refusal(|n| drop(n.layers.remove(2))).contains("add a Gru that keeps the last state"));
    assert!(sequence_refusal(|n| n.layers.insert(3, Layer::Flatten)).contains("gets a vector"));
    assert!(sequence_refusal(|n| n.layers.insert(3, Layer::Resample { steps: 2 })).contains("needs a sequence"));
    assert!(sequence_refusal(|n| n.layers.insert(1, Layer::Resample { steps: 1 })).contains("at least 2"));
    assert!(sequence_refusal(|n| n.layers.insert(1, Layer::Resample { steps: 4 })).contains("a resampled sequence"));
    let zero = |n: &mut Network| {
        if let Layer::Standardize { deviation, .. } = &mut n.layers[0] {
            deviation[1] = 0.0;
        }
    };
    assert!(sequence_refusal(zero).contains("must be above 0"));
}

#[test]
fn wrong_weights_of_a_gru_are_named() {
    let changed = |change: fn(&mut GruWeights)| {
        sequence_refusal(|n| {
            if let Layer::Gru { backward, .. } = &mut n.layers[1] {
                change(backward);
            }
        })
    };
    assert!(changed(|gru| gru.input.data[0] = f32::INFINITY).contains("backwards, its weight holds inf"));
    assert!(changed(|gru| gru.recurrent.shape = vec![5, 15]).contains("not those of a GRU"));
    assert!(changed(|gru| gru.input_bias.truncate(14)).contains("its input bias has 14 values instead of 15"));
    let fewer = changed(|gru| {
        *gru = GruWeights {
            input: Weights::new([3, 3], vec![0.0; 9]),
            recurrent: Weights::new([3, 1], vec![0.0; 3]),
            input_bias: vec![0.0; 3],
            recurrent_bias: vec![0.0; 3],
        };
    });
    assert!(fewer.contains("5 units forwards and 1 backwards"), "{fewer}");
}

#[test]
fn clusters_of_sequences_are_renumbered() {
    let sample = SequenceSample::small();
    let sequence = &sample.sequences(&[6])[0];
    for mut network in [sample.network(), sample.resampled(4)] {
        let before = forward_sequence(&network, sequence);
        network.reorder_clusters(&[2, 0, 3, 1]).unwrap();
        let after = forward_sequence(&network, sequence);
        assert_eq!(after.probabilities, [2, 0, 3, 1].map(|old| before.probabilities[old]));
    }
}
