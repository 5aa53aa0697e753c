#![allow(clippy::unwrap_used)]

use dtkc_item::ItemShape;
use dtkc_observe::Silent;
use dtkc_onnx::{Layer, Weights};
use serde_json::Value;

use super::*;

/// Made by scripts/golden/explain_golden.py with PyTorch, in double precision.
const GOLDEN: &str = include_str!("../../tests/golden/explain.json");

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

fn sizes(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect()
}

fn bytes(value: &Value) -> Vec<u8> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as u8).collect()
}

fn layer(value: &Value) -> Layer {
    let weights = |name: &str| Weights::new(sizes(&value["shape"]), floats(&value[name]));
    let size = || value["size"].as_u64().unwrap() as usize;
    match value["kind"].as_str().unwrap() {
        "conv" => Layer::Conv {
            weight: weights("weight"),
            bias: floats(&value["bias"]),
            padding: sizes(&value["padding"]).try_into().unwrap(),
        },
        "norm" => Layer::BatchNorm {
            gamma: floats(&value["gamma"]),
            beta: floats(&value["beta"]),
            mean: floats(&value["mean"]),
            variance: floats(&value["variance"]),
            epsilon: value["epsilon"].as_f64().unwrap() as f32,
        },
        "relu" => Layer::Relu,
        "tanh" => Layer::Tanh,
        "maxpool" => Layer::MaxPool { size: size() },
        "averagepool" => Layer::AveragePool { size: size() },
        "flatten" => Layer::Flatten,
        "dense" => Layer::Dense { weight: weights("weight"), bias: floats(&value["bias"]) },
        "embedding" => Layer::Embedding,
        "softmax" => Layer::Softmax,
        "student_t" => Layer::StudentT { centres: weights("centres") },
        other => panic!("{other}"),
    }
}

fn cases() -> Vec<(Network, Value)> {
    let all: Vec<Value> = serde_json::from_str(GOLDEN).unwrap();
    let network = |case: &Value| {
        let [height, width, channels] = sizes(&case["shape"]).try_into().unwrap();
        let layers = case["layers"].as_array().unwrap().iter().map(layer).collect();
        Network { input: ItemShape::Image(ImageShape { height, width, channels }), layers }
    };
    all.into_iter().map(|case| (network(&case), case)).collect()
}

fn settings(case: &Value, output: Output) -> Settings {
    let number = |name: &str| case[name].as_u64().unwrap();
    Settings { samples: number("samples") as usize, seed: number("seed"), output, cluster: None }
}

/// Fails where values differ by more than a small part of the largest.
fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1e-6f32, |scale, value| scale.max(value.abs()));
    for (place, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() < 2e-5 * scale, "{what}: {a} instead of {b} at {place}");
    }
}

#[test]
fn slopes_and_maps_are_those_of_pytorch() {
    let cases = cases();
    assert_eq!(cases.len(), 3);
    for (network, case) in &cases {
        for (name, output) in [("probability", Output::Probability), ("score", Output::Score)] {
            let (images, background) = (bytes(&case["images"]), bytes(&case["background"]));
            let explainer = Explainer::new(network, &background, settings(case, output)).unwrap();
            let found = maps(network, &background, &images, settings(case, output), &Silent).unwrap();
            let expected = case[name].as_array().unwrap();
            assert_eq!(found.len(), expected.len());
            for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
                let what = format!("{} {name} {number}", case["name"]);
                assert_eq!(found.cluster as u64, expected["cluster"].as_u64().unwrap(), "{what}");
                assert_eq!(found.assigned, found.cluster);
                let values = [found.value, found.expected].map(|value| value as f32);
                let wanted = ["value", "expected"].map(|key| expected[key].as_f64().unwrap() as f32);
                assert_close(&values, &wanted, &what);
                assert_close(&found.map, &floats(&expected["map"]), &format!("{what}: map"));
                let each = explainer.shape.len();
                let scaled = dtkc_views::scale_pixels(&images[number * each..][..each], explainer.shape);
                let slopes = explainer.slopes(scaled, found.cluster).unwrap();
                assert_close(&slopes, &floats(&expected["slope"]), &format!("{what}: slope"));
            }
        }
    }
}

#[test]
fn slopes_are_those_of_finite_differences() {
    // Tangents and distances have no corners, at which a difference would be between two slopes.
    let (network, case) = &cases()[1];
    let settings = Settings { output: Output::Score, ..Settings::default() };
    let explainer = Explainer::new(network, &bytes(&case["background"]), settings).unwrap();
    let each = explainer.shape.len();
    let image = dtkc_views::scale_pixels(&bytes(&case["images"])[..each], explainer.shape);
    let slopes = explainer.slopes(image.clone(), 2).unwrap();
    let largest = slopes.iter().fold(0.0f32, |largest, slope| largest.max(slope.abs()));
    for place in (0..each).step_by(5) {
        let at = |change: f32| {
            let mut moved = image.clone();
            moved[place] += change;
            explainer.answers(&moved)[2]
        };
        let slope = (at(0.01) - at(-0.01)) / 0.02;
        assert!((slope - f64::from(slopes[place])).abs() < 0.02 * f64::from(largest), "{place}: {slope}");
    }
}

#[test]
fn a_map_adds_up_to_what_it_explains() {
    for (network, case) in &cases() {
        let (images, background) = (bytes(&case["images"]), bytes(&case["background"]));
        let error = |samples| {
            let settings = Settings { samples, ..settings(case, Output::Probability) };
            let found = maps(network, &background, &images, settings, &Silent).unwrap();
            found.iter().map(|one| one.error().abs()).fold(0.0, f64::max)
        };
        let (few, many) = (error(7), error(1400));
        assert!(many < 0.002, "{}: {many}", case["name"]);
        assert!(few > many, "{}: {few} with few draws", case["name"]);
    }
}

#[test]
fn any_cluster_can_be_explained_and_passes_do_not_matter() {
    let (network, case) = &cases()[0];
    let (images, background) = (bytes(&case["images"]), bytes(&case["background"]));
    let of = |cluster| {
        let settings = Settings { cluster, ..settings(case, Output::Probability) };
        maps(network, &background, &images, settings, &Silent).unwrap()
    };
    let all: Vec<Vec<Explanation>> = (0..3).map(|cluster| of(Some(cluster))).collect();
    for (number, assigned) in of(None).iter().enumerate() {
        assert_eq!(*assigned, all[assigned.cluster][number]);
        // Probabilities add up to 1, so that what speaks for one cluster speaks against the others.
        let sums = (0..assigned.map.len()).map(|place| all.iter().map(|maps| maps[number].map[place]).sum::<f32>());
        assert!(sums.into_iter().all(|sum| sum.abs() < 1e-5));
    }
    let mut explainer = Explainer::new(network, &background, settings(case, Output::Probability)).unwrap();
    explainer.rows = 5;
    let image = &images[..explainer.shape.len()];
    assert_close(&explainer.explain(0, image, &Silent).unwrap().map, &of(None)[0].map, "in passes of 5");
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let (network, case) = &cases()[0];
    let background = bytes(&case["background"]);
    let said = |network: &Network, background: &[u8], settings| {
        Explainer::new(network, background, settings).err().unwrap().to_string()
    };
    let usual = Settings::default();
    let beyond = said(network, &background, Settings { cluster: Some(3), ..usual });
    assert_eq!(beyond, "the model has no cluster 3; its clusters are 0 to 2");
    assert!(said(network, &background, Settings { samples: 0, ..usual }).contains("at least one draw"));
    assert!(said(network, &[], usual).contains("holds no image"));
    let sequences = dtkc_testing::model::sequence_network(1, 3);
    assert!(said(&sequences, &background, usual).contains("takes sequences"));
}

#[test]
fn large_images_get_fewer_backgrounds() {
    let side = |side| ImageShape { height: side, width: side, channels: 3 };
    assert_eq!(backgrounds(side(28), 200), 200);
    assert_eq!(backgrounds(side(1024), 200), 42);
    assert_eq!(backgrounds(side(65_000), 200), 1);
}
