//! Edited model files in ONNX Runtime, against what the edits mean.

#![allow(clippy::unwrap_used)]

mod common;

use common::{model, session};
use dtkc_infer::{Assignments, ModelFile};
use dtkc_onnx::testing::Sample;
use dtkc_onnx::{Edit, Split, edit};

fn run(bytes: &[u8], pixels: &[u8], count: usize) -> Assignments {
    session(&ModelFile::from_bytes("edited", bytes.to_vec()).unwrap(), 1).run(pixels, count).unwrap()
}

#[test]
fn answers_are_those_of_sums_and_shares() {
    let sample = Sample::small();
    let (count, pixels) = (40, sample.images(40));
    let direction: Vec<f32> = (0..7).map(|i| (i as f32).sin()).collect();
    let mut bytes = model(&sample).bytes().to_vec();
    let before = run(&bytes, &pixels, count);
    // Through the middle of the items.
    let along = |x: ndarray::ArrayView1<'_, f32>| x.iter().zip(&direction).map(|(x, w)| x * w).sum::<f32>();
    let mut places: Vec<f32> = before.embedding.rows().into_iter().map(along).collect();
    places.sort_by(f32::total_cmp);
    let offset = -(places[19] + places[20]) / 2.0;
    let split = Split { cluster: 2, direction: direction.clone(), offset, size: 5 };
    bytes = edit(&bytes, &Edit::Split(split.clone())).unwrap();
    bytes = edit(&bytes, &Edit::Merge(vec![3, 1])).unwrap();
    let after = run(&bytes, &pixels, count);
    assert_eq!(after.probabilities.dim(), (count, 4));
    let mut parts = [0, 0];
    for row in 0..count {
        let p: Vec<f64> = before.probabilities.row(row).iter().map(|p| f64::from(*p)).collect();
        let x = before.embedding.row(row);
        let sum: f64 = x.iter().zip(&split.direction).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
        let z = sum + f64::from(offset);
        let s = 1.0 / (1.0 + (-z).exp());
        let expected = [p[0], p[1] + p[3], p[2] * (1.0 - s), p[2] * s];
        for (found, expected) in after.probabilities.row(row).iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} instead of {expected}");
        }
        let best = (0..4).rev().max_by(|&a, &b| expected[a].total_cmp(&expected[b])).unwrap();
        assert_eq!(after.clusters[row], best as i64);
        parts[usize::from(z > 0.0)] += 1;
    }
    assert!(parts.iter().all(|&part| part > 0), "the plane cuts: {parts:?}");
    assert_eq!(after.embedding, before.embedding);
}

#[test]
fn an_answer_does_not_depend_on_the_batch() {
    let sample = Sample::small();
    let (count, pixels) = (33, sample.images(33));
    let split = Split { cluster: 0, direction: (0..7).map(|i| (i as f32).sin()).collect(), offset: 0.1, size: 5 };
    let bytes = edit(model(&sample).bytes(), &Edit::Split(split)).unwrap();
    let bytes = edit(&bytes, &Edit::Merge(vec![1, 2])).unwrap();
    let together = run(&bytes, &pixels, count);
    let each = pixels.len() / count;
    for (row, image) in pixels.chunks(each).enumerate() {
        let alone = run(&bytes, image, 1);
        assert_eq!(alone.probabilities.row(0), together.probabilities.row(row));
    }
}
