//! ONNX Runtime against the plain evaluation of the same network, and against itself in other batches.

#![allow(clippy::unwrap_used)]

mod common;

use common::{model, session};
use dtkc_infer::{Assignments, ModelFile, Session};
use dtkc_onnx::Outlier;
use dtkc_onnx::testing::{Expected, Sample, forward};

/// Networks of different sizes: the paper's, colour, padded, and wide layers that matrix products split in parts.
fn samples() -> [Sample; 4] {
    [
        Sample::small(),
        Sample::mnist(),
        Sample { height: 20, width: 21, padding: 2, filters: 12, ..Sample::small() },
        Sample { height: 40, width: 40, filters: 16, hidden: 130, clusters: 100, ..Sample::small() },
    ]
}

fn in_batches(session: &mut Session, pixels: &[u8], count: usize, batch: usize) -> Vec<Assignments> {
    let each = pixels.len() / count;
    pixels.chunks(batch * each).map(|part| session.run(part, part.len() / each).unwrap()).collect()
}

fn bits(parts: &[Assignments]) -> (Vec<i64>, Vec<u32>, Vec<u32>, Vec<u32>) {
    let clusters = parts.iter().flat_map(|part| part.clusters.iter().copied()).collect();
    let probabilities = parts.iter().flat_map(|part| part.probabilities.iter().map(|v| v.to_bits())).collect();
    let embedding = parts.iter().flat_map(|part| part.embedding.iter().map(|v| v.to_bits())).collect();
    let outliers = parts.iter().flat_map(|part| part.outliers.iter().map(|v| v.to_bits())).collect();
    (clusters, probabilities, embedding, outliers)
}

#[test]
fn the_runtime_agrees_with_the_definition() {
    for sample in [Sample::small(), Sample { filters: 8, hidden: 20, ..Sample::mnist() }] {
        let network = sample.network();
        let mut session = session(&model(&sample), 1);
        let pixels = sample.images(256);
        let each = pixels.len() / 256;
        let expected: Vec<Expected> = pixels.chunks(each).map(|image| forward(&network, image)).collect();
        for batch in [1, 2, 17, 256] {
            let answers = session.run(&pixels[..batch * each], batch).unwrap();
            assert_eq!(answers.probabilities.dim(), (batch, sample.clusters));
            assert_eq!(answers.embedding.dim(), (batch, sample.hidden));
            let (mut probability, mut embedding) = (0.0f64, 0.0f64);
            for (image, expected) in expected[..batch].iter().enumerate() {
                let (row, features) = (answers.probabilities.row(image), answers.embedding.row(image));
                probability = worst(probability, row.iter().zip(&expected.probabilities));
                embedding = worst(embedding, features.iter().zip(&expected.embedding));
                let mut sorted = expected.probabilities.clone();
                sorted.sort_by(f64::total_cmp);
                if sorted[sorted.len() - 1] - sorted[sorted.len() - 2] > 1e-4 {
                    assert_eq!(answers.clusters[image] as usize, expected.cluster());
                }
            }
            println!("batch {batch}: probabilities differ by up to {probability:.1e}, embedding by {embedding:.1e}");
            assert!(probability < 1e-5, "{probability}");
            assert!(embedding < 1e-4, "{embedding}");
        }
    }
}

/// The largest difference so far; something that is not a number is larger than all.
fn worst<'a>(so_far: f64, pairs: impl Iterator<Item = (&'a f32, &'a f64)>) -> f64 {
    let differences = pairs.map(|(a, b)| (f64::from(*a) - b).abs());
    differences.chain([so_far]).max_by(f64::total_cmp).unwrap()
}

#[test]
fn an_answer_does_not_depend_on_the_batch_or_the_threads() {
    for sample in samples() {
        let model = with_outlier(&sample);
        let count = 67;
        let pixels = sample.images(count);
        let alone = bits(&in_batches(&mut session(&model, 1), &pixels, count, 1));
        for threads in [1, 2, 3] {
            let mut session = session(&model, threads);
            for batch in [1, 2, 3, 8, 17, 64, 67] {
                let together = bits(&in_batches(&mut session, &pixels, count, batch));
                assert_eq!(together.0, alone.0, "clusters: {sample:?}, {threads} threads, batches of {batch}");
                assert!(together == alone, "low bits: {sample:?}, {threads} threads, batches of {batch}");
            }
        }
    }
}

/// Values of 20 x 320 x 320 floats: at 8 MiB a slice has one image, and the batch is put together again.
#[test]
fn a_batch_of_large_images_is_run_in_slices() {
    let sample = Sample { height: 324, width: 324, filters: 20, ..Sample::small() };
    let model = with_outlier(&sample);
    let pixels = sample.images(3);
    let mut session = session(&model, 1);
    let together = bits(&[session.run(&pixels, 3).unwrap()]);
    assert!(together == bits(&in_batches(&mut session, &pixels, 3, 1)));
}

/// The sample's model with what tells outliers.
fn with_outlier(sample: &Sample) -> ModelFile {
    let outlier = Outlier::sample(sample.hidden, false, 3);
    ModelFile::from_bytes("sample", dtkc_onnx::with_outlier(model(sample).bytes(), &outlier).unwrap()).unwrap()
}

#[test]
fn outliers_agree_with_the_definition_and_old_files_tell_none() {
    let sample = Sample { filters: 8, hidden: 20, ..Sample::mnist() };
    let (network, pixels) = (sample.network(), sample.images(64));
    let each = pixels.len() / 64;
    for plain in [false, true] {
        let mut outlier = Outlier::sample(sample.hidden, plain, 3);
        let embeddings: Vec<Vec<f64>> = pixels.chunks(each).map(|image| forward(&network, image).embedding).collect();
        let values = |outlier: &Outlier| embeddings.iter().map(|x| outlier.evaluate(x)).collect::<Vec<f64>>();
        let is_mixed = |values: &[f64]| values.iter().any(|&v| v < 0.9) && values.iter().any(|&v| v > 0.99);
        // So that some items lie before the last knot and some behind it.
        for _ in 0..100 {
            if !is_mixed(&values(&outlier)) {
                outlier.knots.iter_mut().for_each(|knot| *knot *= 1.05);
            }
        }
        let bytes = dtkc_onnx::with_outlier(model(&sample).bytes(), &outlier).unwrap();
        let file = ModelFile::from_bytes("sample", bytes).unwrap();
        let answers = session(&file, 1).run(&pixels, 64).unwrap();
        assert_eq!(answers.outliers.len(), 64);
        let expected = values(&outlier);
        let difference = worst(0.0, answers.outliers.iter().zip(&expected));
        assert!(difference < 1e-5, "{difference}");
        assert!(is_mixed(&expected));
        assert_eq!(answers.get(3).unwrap().outlier, Some(answers.outliers[3]));
        assert_eq!(answers.iter().nth(3), answers.get(3));
    }
    let old = session(&model(&sample), 1).run(&pixels, 64).unwrap();
    assert!(old.outliers.is_empty() && old.get(3).unwrap().outlier.is_none());
}

#[test]
fn a_constant_image_is_zeros_and_not_nan() {
    let sample = Sample::small();
    let each = sample.height * sample.width * sample.channels;
    let pixels = [vec![0; each], vec![255; each], vec![7; each]].concat();
    let answers = session(&model(&sample), 1).run(&pixels, 3).unwrap();
    assert!(answers.probabilities.iter().all(|p| p.is_finite()));
    assert_eq!(answers.probabilities.row(0), answers.probabilities.row(1));
    assert_eq!(answers.probabilities.row(0), answers.probabilities.row(2));
}

#[test]
fn wrong_lengths_are_refused_and_nothing_is_fine() {
    let sample = Sample::small();
    let mut session = session(&model(&sample), 1);
    let error = session.run(&[0; 100], 1).unwrap_err().to_string();
    assert!(error.contains("1782 bytes"), "{error}");
    assert!(session.run(&[], usize::MAX).is_err());
    assert!(session.run(&[], 0).unwrap().is_empty());
}
