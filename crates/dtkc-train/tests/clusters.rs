//! Clusters of a model file that are merged, split, named and taken back, as a user does it.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, failure, fit, program};
use dtkc_infer::{Assignments, ModelFile, Runtime, Session, SessionOptions};
use std::path::Path;

fn clusters(model: &Path, more: &[&str]) -> assert_cmd::Command {
    let mut command = program();
    command.arg("clusters").arg(model).args(more);
    command
}

fn said(command: &mut assert_cmd::Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn clusters_are_merged_split_named_and_taken_back() {
    let place = Place::new();
    let data = place.dataset("a.h5", 200, false);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "3", "--clusters", "4"]).assert().success();
    let model = place.path("model.onnx");
    program().arg("export").arg(&run).arg("--out").arg(&model).assert().success();
    let pixels = dtkc_dataset::Dataset::open(&data).unwrap().read_range(0..200).unwrap();
    let answers = |path: &Path| -> Assignments {
        let file = ModelFile::open(path).unwrap();
        let mut session = Session::new(&Runtime::find(None).unwrap(), &file, &SessionOptions::default()).unwrap();
        session.run(&pixels, 200).unwrap()
    };
    let listed = said(&mut clusters(&model, &[]));
    assert!(listed.contains("4 clusters") && listed.contains("cluster 3") && !listed.contains("edits"), "{listed}");

    let new = place.path("new.onnx");
    let (data, out) = (data.to_str().unwrap(), new.to_str().unwrap());
    let all = ["--merge", "3,1", "--split", "0", "--name", "2=shoes", "--data", data, "--out", out];
    let text = said(&mut clusters(&model, &all));
    assert!(text.contains("edits: name 2=shoes; split 0; merge 1,3") && text.contains("shoes"), "{text}");
    let (before, after) = (answers(&model), answers(&new));
    let metadata = ModelFile::open(&new).unwrap().metadata().clone();
    // Cluster 0 is cut, 1 and 3 are one, 2 keeps its id, and the smaller part of 0 is the last.
    assert_eq!((metadata.k(), metadata.clusters[2].name.as_deref()), (4, Some("shoes")));
    let old = ModelFile::open(&model).unwrap().metadata().clusters.clone();
    let sizes: Vec<u64> = metadata.clusters.iter().map(|cluster| cluster.size).collect();
    assert_eq!((sizes[0] + sizes[3], sizes[1], sizes[2]), (old[0].size, old[1].size + old[3].size, old[2].size));
    assert!(sizes[3] > 0 && sizes[0] >= sizes[3]);
    for (before, after) in before.probabilities.rows().into_iter().zip(after.probabilities.rows()) {
        let expected = [(after[0] + after[3], before[0]), (after[1], before[1] + before[3]), (after[2], before[2])];
        assert!(expected.iter().all(|(found, expected)| (found - expected).abs() < 1e-5), "{expected:?}");
    }
    assert_eq!(before.outliers, after.outliers, "how far an item is has nothing to do with clusters");
    let found = |cluster: i64| after.clusters.iter().filter(|&&c| c == cluster).count() as i64;
    assert!((found(3) - sizes[3] as i64).abs() <= 2, "{} items instead of {}", found(3), sizes[3]);

    // Three times back are the very bytes.
    let mut last = new.clone();
    for step in ["u1.onnx", "u2.onnx", "u3.onnx"] {
        let next = place.path(step);
        clusters(&last, &["--undo", "--out", next.to_str().unwrap()]).assert().success();
        last = next;
    }
    assert_eq!(std::fs::read(&last).unwrap(), std::fs::read(&model).unwrap());
    let (code, text) = failure(&mut clusters(&last, &["--undo", "--out", place.path("u4.onnx").to_str().unwrap()]));
    assert!(code == 1 && text.contains("nothing to undo") && text.lines().count() == 1, "{text}");
}

#[test]
fn mistakes_are_told_and_nothing_is_written() {
    let place = Place::new();
    let model = place.path("model.onnx");
    std::fs::write(&model, dtkc_testing::model::model(3)).unwrap();
    let out = place.path("out.onnx");
    for (arguments, words) in [
        (&["--merge", "1,99"][..], "there is no cluster 99"),
        (&["--merge", "1"], "two or more clusters, as in 3,7"),
        (&["--merge", "1,2", "--split", "2"], "twice"),
        (&["--split", "1"], "with --data"),
        (&["--name", "shoes"], "as in 4=shoes"),
        (&["--name", "1= "], "1 to 100 characters"),
        (&["--undo", "--merge", "1,2"], "cannot be used with"),
    ] {
        let (code, text) = failure(clusters(&model, arguments).arg("--out").arg(&out));
        assert!(code == 2 && text.contains(words), "{arguments:?}: {text}");
        assert!(!out.exists());
    }
    let (code, text) = failure(clusters(&model, &["--name", "1=x"]).arg("--out").arg(&model).arg("--force"));
    assert!(code == 2 && text.contains("model.onnx"), "an input is never an output: {text}");
    // Without a name the new file lies beside the old one.
    said(&mut clusters(&model, &["--name", "1=x"]));
    assert_eq!(failure(&mut clusters(&model, &["--name", "1=y"])).0, 2, "it is there already");
    let listed: serde_json::Value =
        serde_json::from_str(&said(&mut clusters(&place.path("model.edited.onnx"), &["--json"]))).unwrap();
    assert_eq!((&listed["clusters"][1]["name"], &listed["edits"][0]), (&"x".into(), &"name 1=x".into()));
}
