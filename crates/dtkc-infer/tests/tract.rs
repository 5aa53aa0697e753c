//! The same file on tract: the same answers.

#![cfg(feature = "tract")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{model, session};
use dtkc_infer::{Device, Runtime, Session, SessionOptions};
use dtkc_onnx::testing::Sample;

#[test]
fn tract_agrees_with_onnx_runtime() {
    for sample in [Sample::small(), Sample::mnist()] {
        let model = model(&sample);
        let device: Device = "tract".parse().unwrap();
        let runtime = Runtime::for_device(device, None).unwrap();
        assert_eq!(runtime.path(), None);
        let mut tract =
            Session::new(&runtime, &model, &SessionOptions { device, ..SessionOptions::default() }).unwrap();
        for count in [1, 2, 17] {
            let pixels = sample.images(count);
            let ours = tract.run(&pixels, count).unwrap();
            let expected = session(&model, 1).run(&pixels, count).unwrap();
            assert_eq!(ours.clusters, expected.clusters);
            let difference =
                (&ours.probabilities - &expected.probabilities).mapv(f32::abs).fold(0.0f32, |a, &b| a.max(b));
            println!("{count} images: probabilities differ by up to {difference:.1e}");
            assert!(difference < 1e-5, "{difference}");
            assert!((&ours.embedding - &expected.embedding).iter().all(|d| d.abs() < 1e-4));
        }
    }
}
