//! The files we write, checked and evaluated by ONNX's own Python package.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dtkc_onnx::testing::{Expected, Golden, GoldenNetwork, Sample, SequenceSample, forward, forward_sequence, golden};
use dtkc_onnx::{Layer, Network, Outlier, with_outlier, write};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// `scripts/check-onnx.py` with the Python of `DTKC_PYTHON` (else `python3`) and the packages of
/// `scripts/setup.sh --tests` where they are.
fn check(arguments: &[&Path]) -> Output {
    let python = std::env::var_os("DTKC_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(python);
    let packages =
        std::env::var_os("DTKC_PYTHONPATH").map_or_else(|| repository().join(".tools/python"), PathBuf::from);
    if packages.is_dir() {
        command.env("PYTHONPATH", packages);
    }
    command.arg(repository().join("scripts/check-onnx.py")).args(arguments).output().unwrap()
}

/// False, with a message, when Python has no `onnx`.
fn python_has_onnx() -> bool {
    let found = check(&[]).status.code() != Some(3);
    if !found {
        eprintln!("SKIPPED: no Python with the onnx package; scripts/setup.sh --tests installs it");
    }
    found
}

fn variants() -> Vec<(Sample, Network)> {
    let small = Sample::small();
    let gray = Sample { channels: 1, clusters: 2, ..small };
    let padded = Sample { padding: 2, height: 9, width: 8, ..small };
    // A flatten that no dense layer follows is transposed in the graph.
    let mut transposed = padded.network();
    transposed.layers.insert(13, Layer::Relu);
    let mut plain = small.network();
    plain.layers.retain(|layer| !matches!(layer, Layer::BatchNorm { .. }));
    vec![
        (small, small.network()),
        (gray, gray.network()),
        (padded, transposed),
        (small, plain),
        (small, small.student_t()),
        small.reduced(3),
    ]
}

#[test]
fn onnx_accepts_and_evaluates_our_files() {
    if !python_has_onnx() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (model, images, expected) =
        (folder.path().join("model.onnx"), folder.path().join("images"), folder.path().join("expected"));
    for (sample, network) in variants() {
        std::fs::write(&model, write(&network, &sample.metadata()).unwrap()).unwrap();
        let pixels = sample.images(8);
        let answers: Vec<Expected> = pixels.chunks(pixels.len() / 8).map(|image| forward(&network, image)).collect();
        std::fs::write(&images, &pixels).unwrap();
        std::fs::write(&expected, bytes_of(&answers)).unwrap();
        let output = check(&[&model, &images, &expected]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The same with what tells outliers, by a matrix and by factors.
#[test]
fn onnx_evaluates_what_tells_outliers() {
    if !python_has_onnx() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [model, images, expected] = ["model.onnx", "images", "expected"].map(|name| folder.path().join(name));
    for ((sample, network), plain) in variants().into_iter().zip([false, true].into_iter().cycle()) {
        let bytes = write(&network, &sample.metadata()).unwrap();
        let pixels = sample.images(8);
        let answers: Vec<Expected> = pixels.chunks(pixels.len() / 8).map(|image| forward(&network, image)).collect();
        let outlier = Outlier::sample(answers[0].embedding.len(), plain, 5);
        let mut values = Vec::new();
        for Expected { probabilities, embedding } in &answers {
            values.extend(probabilities.iter().chain(embedding).copied().chain([outlier.evaluate(embedding)]));
        }
        std::fs::write(&model, with_outlier(&bytes, &outlier).unwrap()).unwrap();
        std::fs::write(&images, &pixels).unwrap();
        std::fs::write(&expected, values.into_iter().flat_map(f64::to_le_bytes).collect::<Vec<u8>>()).unwrap();
        let output = check(&[&model, &images, &expected]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Probabilities and embedding of each, as `check-onnx.py` reads them.
fn bytes_of(answers: &[Expected]) -> Vec<u8> {
    let values = answers.iter().flat_map(|answer| [answer.probabilities.clone(), answer.embedding.clone()].concat());
    values.flat_map(f64::to_le_bytes).collect()
}

/// What NumPy has computed, and larger networks by the plain evaluation, which NumPy agrees with.
fn sequence_variants() -> Vec<(Vec<Vec<f32>>, GoldenNetwork)> {
    let Golden { sequences, networks } = golden();
    let mut variants: Vec<_> = networks.into_iter().map(|network| (sequences.clone(), network)).collect();
    let sample = SequenceSample { dim: 13, units: 32, hidden: 100, clusters: 10, ..SequenceSample::small() };
    let one = SequenceSample { dim: 1, stacked: 1, ..sample };
    for (sample, network, hidden) in
        [(sample, sample.network(), 100), (one, one.network(), 100), (sample, sample.resampled(40), 520)]
    {
        let sequences = sample.sequences(&[40, 1, 93, 4, 57]);
        let answers = sequences.iter().map(|sequence| forward_sequence(&network, sequence)).collect();
        variants.push((sequences, GoldenNetwork { network, metadata: sample.metadata(hidden), answers }));
    }
    variants
}

#[test]
fn onnx_runtime_evaluates_our_files_for_sequences_whatever_stands_behind_them() {
    if !python_has_onnx() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [model, values, lengths, expected] =
        ["model.onnx", "values", "lengths", "expected"].map(|name| folder.path().join(name));
    for (sequences, GoldenNetwork { network, metadata, answers }) in sequence_variants() {
        let dim = network.input.dim().unwrap();
        std::fs::write(&model, write(&network, &metadata).unwrap()).unwrap();
        let steps = sequences.iter().flat_map(|sequence| ((sequence.len() / dim) as i64).to_le_bytes());
        std::fs::write(&lengths, steps.collect::<Vec<_>>()).unwrap();
        let all: Vec<u8> = sequences.concat().into_iter().flat_map(f32::to_le_bytes).collect();
        std::fs::write(&values, all).unwrap();
        std::fs::write(&expected, bytes_of(&answers)).unwrap();
        let output = check(&[&model, &values, &lengths, &expected]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_check_can_fail() {
    if !python_has_onnx() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.onnx");
    let mut bytes = write(&Sample::small().network(), &Sample::small().metadata()).unwrap();
    let place = bytes.windows(4).position(|window| window == b"Gemm").unwrap();
    bytes[place..place + 4].copy_from_slice(b"Gnom");
    std::fs::write(&model, bytes).unwrap();
    assert_eq!(check(&[&model]).status.code(), Some(1));
}
