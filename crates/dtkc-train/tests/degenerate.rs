//! Every method on what it cannot do much with: a result or one sentence, never a panic, never a number that is none.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::small::{fit, run};
use common::{Place, SIDE, failure, program};
use dtkc_item::ImageShape;
use dtkc_methods::Method;
use serde_json::Value;

const SHAPE: ImageShape = ImageShape { height: SIDE, width: SIDE, channels: 1 };

/// The lines of standard error that are no warnings.
fn sentences(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    text.lines().filter(|line| !line.starts_with("warning: ")).map(str::to_owned).collect()
}

/// Whether every number of a JSON value is there; one that is not finite would be null.
fn is_whole(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(values) => values.iter().all(is_whole),
        Value::Object(fields) => fields.values().all(is_whole),
        _ => true,
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn log(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("log.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Trains on copies of one image.
fn ends_well_on_copies(method: Method, image: &[u8]) {
    let place = Place::new();
    let data = place.copies("a.h5", 60, SHAPE, image);
    let out = place.path("run");
    let output = fit(method, &data, &out, &["--epochs", "2"]).output().unwrap();
    let said = sentences(&output);
    if method == Method::Spectral {
        let expected = "error: all images are the same once each is scaled to its own range";
        assert!(output.status.code() == Some(1) && said.len() == 1 && said[0].starts_with(expected), "{said:?}");
        assert!(!out.join("summary.json").exists());
        return;
    }
    assert!(output.status.success() && said.is_empty(), "{method}: {said:?}");
    let summary = json(&out.join("summary.json"));
    assert!(is_whole(&summary), "{method}: {summary}");
    assert!(log(&out).iter().all(is_whole), "{method}");
    let sizes = summary["cluster_sizes"].as_array().unwrap();
    assert_eq!(sizes.iter().map(|size| size.as_u64().unwrap()).sum::<u64>(), 60, "{method}: {summary}");
    program().arg("export").arg(&out).assert().success();
}

#[test]
fn images_without_any_contrast_are_a_result_or_a_sentence() {
    Method::ALL.into_iter().for_each(|method| ends_well_on_copies(method, &[77; SIDE * SIDE]));
}

#[test]
fn copies_of_one_image_are_a_result_or_a_sentence() {
    let image: Vec<u8> = (0..SIDE * SIDE).map(|i| (i * 37 % 251) as u8).collect();
    Method::ALL.into_iter().for_each(|method| ends_well_on_copies(method, &image));
}

/// Settings with which numbers grow beyond all bounds, in the stage that is named.
const TOO_FAST: [(Method, &str, &[&str]); 5] = [
    (Method::Idec, "clustering", &["optim.kind=rmsprop", "optim.lr=10"]),
    (Method::Dcn, "clustering", &["optim.kind=sgd", "optim.lr=10", "optim.momentum=0.9"]),
    (Method::Dec, "pretraining", &["pretraining.optim.kind=rmsprop", "pretraining.optim.lr=10"]),
    (Method::Spectralnet, "pretraining", &["pretraining.optim.kind=rmsprop", "pretraining.optim.lr=10"]),
    // Short enough to come to clustering, with deviations that are infinite and a loss that is not.
    (
        Method::Dbc,
        "pretraining",
        &["pretraining.optim.kind=sgd", "pretraining.optim.lr=10", "pretraining.optim.momentum=0.9"],
    ),
];

#[test]
fn a_run_without_a_finite_restart_says_so_and_stays_readable() {
    let place = Place::new();
    let data = place.dataset("a.h5", 120, true);
    for (method, stage, sets) in TOO_FAST {
        let out = place.path(method.name());
        let mut command = fit(method, &data, &out, &[]);
        if method != Method::Dbc {
            command.args(["--set", "pretraining.epochs=12"]);
        }
        for set in sets {
            command.args(["--set", set]);
        }
        let output = command.output().unwrap();
        let said = sentences(&output);
        let expected = "error: no restart reached a finite loss; try a smaller --lr (for the pretraining --set";
        assert_eq!(output.status.code(), Some(1), "{method}: {said:?}");
        assert!(said.len() == 1 && said[0].starts_with(expected), "{method}: {said:?}");
        assert!(!out.join("summary.json").exists() && !out.join("model.onnx").exists(), "{method}");
        let bad = |line: &Value| {
            let of = line["stage"].as_str().unwrap_or("clustering");
            of == stage && line["skipped_steps"].as_u64() > Some(0)
        };
        assert!(log(&out).iter().any(bad), "{method}: {:?}", log(&out));
        // Nothing is left to do, so going on says the same and adds nothing.
        let lines = log(&out).len();
        let mut again = Command::new(assert_cmd::cargo::cargo_bin("dtkc-train"));
        let again = again.arg("resume").arg(&out).args(["--quiet", "--no-export"]).output().unwrap();
        assert_eq!((again.status.code(), sentences(&again)), (Some(1), said));
        assert_eq!(log(&out).len(), lines, "{method}");
    }
}

#[test]
fn a_pretraining_on_images_of_another_size_is_refused_in_one_sentence() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, false);
    let larger = ImageShape { height: 16, width: 16, channels: 1 };
    let other = place.copies("b.h5", 60, larger, &[9; 256]);
    for (first, others) in [
        (Method::Dec, &[Method::Dec, Method::Idec, Method::Dcn, Method::Spectralnet][..]),
        (Method::Dbc, &[Method::Dbc, Method::Dec]),
    ] {
        let from = place.path(first.name());
        run(&mut fit(first, &data, &from, &["--runs", "1"]));
        for &method in others {
            let more = ["--runs", "1", "--force", "--pretrained", from.to_str().unwrap()];
            let command = fit(method, &other, &place.path("bad"), &more);
            let (code, text) = failure(&mut assert_cmd::Command::from_std(command));
            assert!(code == 1 && text.lines().count() == 1, "{method}: {code} {text}");
            assert!(text.contains("the pretrained autoencoder does not fit"), "{method}: {text}");
            assert!(text.contains("pretrain one on images of this size"), "{method}: {text}");
            assert!(!place.path("bad").exists(), "{method}");
        }
    }
}
