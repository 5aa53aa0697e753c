//! The same file on tract: the same answers.

#![cfg(feature = "tract")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{model, session};
use dtkc_infer::{Device, ModelFile, Runtime, Session, SessionOptions};
use dtkc_onnx::testing::Sample;

/// Runs the model on both, in batches of several sizes.
fn compare(model: &ModelFile, images: impl Fn(usize) -> Vec<u8>) {
    let device: Device = "tract".parse().unwrap();
    let runtime = Runtime::for_device(device, None).unwrap();
    assert_eq!(runtime.path(), None);
    let mut tract = Session::new(&runtime, model, &SessionOptions { device, ..SessionOptions::default() }).unwrap();
    let mut reference = session(model, 1);
    for count in [1, 2, 17, 256] {
        let pixels = images(count);
        let ours = tract.run(&pixels, count).unwrap();
        let expected = reference.run(&pixels, count).unwrap();
        assert_eq!(ours.clusters, expected.clusters);
        let difference = (&ours.probabilities - &expected.probabilities).mapv(f32::abs).fold(0.0f32, |a, &b| a.max(b));
        println!("{}, {count} images: probabilities differ by up to {difference:.1e}", model.name());
        assert!(difference < 1e-5, "{difference}");
        assert!((&ours.embedding - &expected.embedding).iter().all(|d| d.abs() < 1e-4));
    }
}

#[test]
fn tract_agrees_with_onnx_runtime_on_networks_of_all_kinds() {
    for sample in [Sample::small(), Sample::mnist(), Sample { padding: 2, filters: 12, ..Sample::small() }] {
        compare(&model(&sample), |count| sample.images(count));
    }
}

#[test]
fn tract_agrees_with_onnx_runtime_on_the_bundled_models() {
    for name in ["mnist", "glyphs"] {
        let model = ModelFile::open(name).unwrap();
        let shape = model.image().unwrap().shape();
        let sample = Sample { height: shape.height, width: shape.width, channels: 1, ..Sample::mnist() };
        assert_eq!(shape.channels, 1);
        compare(&model, |count| sample.images(count));
    }
}
