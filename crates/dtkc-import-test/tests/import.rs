//! The imported model against the plain evaluation of the network that was exported.

#![allow(clippy::unwrap_used)]

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use dtkc_import_test::imported::Model;
use dtkc_onnx::testing::{Sample, forward};

#[test]
fn an_imported_file_gives_the_same_answers() {
    let sample = Sample::small();
    let network = sample.network();
    let device = Device::flex();
    let model = Model::from_embedded(&device);
    for count in [1, 2, 17] {
        let pixels = sample.images(count);
        let shape = [count, sample.height, sample.width, sample.channels];
        let images = Tensor::<4, Int>::from_data(TensorData::new(pixels.clone(), shape), (&device, DType::U8));
        let (clusters, probabilities, embedding) = model.forward(images);
        let clusters: Vec<i64> = clusters.into_data().iter::<i64>().collect();
        let probabilities: Vec<f32> = probabilities.into_data().iter::<f32>().collect();
        let embedding: Vec<f32> = embedding.into_data().iter::<f32>().collect();
        for (image, pixels) in pixels.chunks(pixels.len() / count).enumerate() {
            let expected = forward(&network, pixels);
            assert_eq!(clusters[image], expected.cluster() as i64);
            close(&probabilities[image * sample.clusters..], &expected.probabilities, 1e-5);
            close(&embedding[image * sample.hidden..], &expected.embedding, 1e-4);
        }
    }
}

fn close(found: &[f32], expected: &[f64], tolerance: f64) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < tolerance, "{found} instead of {expected}");
    }
}
