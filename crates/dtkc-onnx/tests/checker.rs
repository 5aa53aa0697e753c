//! The files we write, checked and evaluated by ONNX's own Python package.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dtkc_onnx::testing::{Sample, forward};
use dtkc_onnx::{Layer, Network, write};

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
        let answers = pixels.chunks(pixels.len() / 8).map(|image| forward(&network, image));
        let values: Vec<u8> = answers
            .flat_map(|answer| [answer.probabilities, answer.embedding].concat())
            .flat_map(f64::to_le_bytes)
            .collect();
        std::fs::write(&images, &pixels).unwrap();
        std::fs::write(&expected, values).unwrap();
        let output = check(&[&model, &images, &expected]);
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
