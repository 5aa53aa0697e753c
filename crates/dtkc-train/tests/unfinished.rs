//! A run that was stopped: what it has found so far can be used, and it goes on as if nobody had looked.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{Place, assert_same, failure, fit, program};
use dtkc_infer::ModelFile;

/// Without neighbours, which are looked for before the first step: a run that is told to stop at once would never make one.
const LONG: [&str; 6] = ["--runs", "2", "--epochs", "3", "--set", "neighbours.count=0"];

/// Resumes a run for a step or two: standard input has ended.
fn a_step(run: &Path) {
    let mut command = program();
    command.arg("resume").arg(run).args(["--quiet", "--no-export", "--stop-with-input"]);
    let text = String::from_utf8(command.write_stdin("").output().unwrap().stderr).unwrap();
    assert!(text.contains("dtkc-train resume") && text.contains("dtkc-train export"), "{text}");
}

fn export(run: &Path, out: &Path) -> String {
    let output = program().arg("export").arg(run).arg("--out").arg(out).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn a_run_that_was_stopped_is_exported_and_goes_on_to_the_same_bits() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, true);
    fit(&data, &place.path("whole"), &LONG).assert().success();
    let run = place.path("run");
    fit(&data, &run, &LONG).arg("--stop-with-input").write_stdin("").assert().code(130);
    let text = export(&run, &place.path("first.onnx"));
    assert!(text.contains("training is not finished") && text.contains("epoch 1 of 3 of restart 1 of 2"), "{text}");
    // Six steps are more than an epoch.
    (0..6).for_each(|_| a_step(&run));
    let before = common::content(&run);
    export(&run, &place.path("later.onnx"));
    assert!(before == common::content(&run), "export changes nothing in the run");
    assert_ne!(std::fs::read(place.path("first.onnx")).unwrap(), std::fs::read(place.path("later.onnx")).unwrap());
    let model = ModelFile::open(place.path("later.onnx")).unwrap();
    let sizes: Vec<u64> = model.metadata().clusters.iter().map(|cluster| cluster.size).collect();
    assert!(sizes.iter().sum::<u64>() == 60 && sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    program().arg("resume").arg(&run).args(["--quiet", "--no-export"]).assert().success();
    assert_same(&place.path("whole"), &run);
    assert!(!export(&run, &place.path("end.onnx")).contains("not finished"));
}

#[test]
fn where_there_are_no_clusters_yet_a_sentence_says_so() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, false);
    let run = place.path("run");
    fit(&data, &run, &LONG).args(["--stop-with-input"]).write_stdin("").assert().code(130);
    let (code, text) = failure(program().arg("export").arg(&run).args(["--restart", "1"]));
    assert!(code == 1 && text.contains("has no restart 1"), "{text}");
    std::fs::remove_file(run.join("checkpoints/restart-000.last.ckpt")).unwrap();
    let (code, text) = failure(program().arg("export").arg(&run));
    assert_eq!((code, text.lines().count()), (1, 1), "{text}");
    assert!(text.contains("has no clusters yet") && text.contains("dtkc-train resume"), "{text}");
}
