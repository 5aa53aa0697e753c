//! The main job: make a dataset, train without labels, export, label, with the four programs as a user calls them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use dtkc_tests::{run, run_well};
use serde_json::Value;

/// A network small enough to train in seconds.
const SMALL: [&str; 12] =
    ["--clusters", "10", "--runs", "1", "--epochs", "2", "--batch", "60", "--seed", "3", "--threads", "1"];

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_dataset_becomes_a_model_and_labels() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&folder.path().join(name));
    let (data, runs, model) = (at("glyphs.h5"), at("run"), at("run/model.onnx"));

    run_well("dtkc-data", &["synth", "--kind", "glyphs", "--count", "600", "--seed", "1", "--out", &data]);
    let info: Value = serde_json::from_str(&run_well("dtkc-data", &["info", &data, "--json"])).unwrap();
    assert!(info.to_string().contains("600"), "{info}");

    let fit: Vec<&str> = ["fit", "--data", &data, "--out", &runs].into_iter().chain(SMALL).collect();
    run_well("dtkc-train", &fit);
    for file in ["config.toml", "log.jsonl", "summary.json", "model.onnx"] {
        assert!(Path::new(&runs).join(file).is_file(), "{file} is missing");
    }

    // The labeller runs the exported file in ONNX Runtime, `evaluate` runs the network in burn: the sizes of the
    // clusters must be the same.
    let (labels, gallery) = (at("labels.csv"), at("gallery.html"));
    let arguments = ["--model", &model, "--input", &data, "--output", &labels, "--gallery", &gallery, "--truth"];
    run_well("dtkc-label", &arguments);
    let rows = fs::read_to_string(&labels).unwrap();
    assert_eq!(rows.lines().count(), 601, "a heading and a row per image");
    let clusters = column(&rows, "cluster");
    let mut counts = [0usize; 10];
    clusters.iter().for_each(|c| counts[c.parse::<usize>().unwrap()] += 1);

    let evaluated: Value =
        serde_json::from_str(&run_well("dtkc-train", &["evaluate", &runs, "--data", &data, "--json"])).unwrap();
    let trained = evaluated["clusters"].as_array().unwrap().iter().map(|c| c["images"].as_u64().unwrap() as usize);
    let moved: usize = counts.iter().zip(trained).map(|(here, there)| here.abs_diff(there)).sum();
    // An image on the very edge between two clusters may fall to either side.
    assert!(moved <= 2, "{counts:?} in ONNX Runtime against {}", evaluated["clusters"]);
    assert!(fs::read_to_string(&gallery).unwrap().contains("<html"));
}

#[test]
fn the_same_seed_gives_the_same_model_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&folder.path().join(name));
    let data = at("glyphs.h5");
    run_well("dtkc-data", &["synth", "--kind", "glyphs", "--count", "240", "--seed", "1", "--out", &data]);
    for name in ["a", "b"] {
        let out = at(name);
        let fit: Vec<&str> = ["fit", "--data", &data, "--out", &out].into_iter().chain(SMALL).collect();
        run_well("dtkc-train", &fit);
    }
    assert_eq!(fs::read(at("a/model.onnx")).unwrap(), fs::read(at("b/model.onnx")).unwrap());
}

#[test]
fn a_damaged_file_is_one_sentence_and_exit_code_1_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&folder.path().join(name));
    let (damaged, out) = (at("damaged.h5"), at("out.csv"));
    fs::write(&damaged, b"\x89HDF\r\n\x1a\nno more").unwrap();
    let calls: [(&str, Vec<&str>); 3] = [
        ("dtkc-data", vec!["info", &damaged]),
        ("dtkc-train", vec!["fit", "--data", &damaged, "--clusters", "3", "--out", &out]),
        ("dtkc-label", vec!["--model", &damaged, "--input", &damaged, "--output", &out]),
    ];
    for (name, arguments) in calls {
        let output = run(name, &arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains("damaged.h5") && !said.contains("panicked"), "{name}: {said}");
        assert!(!Path::new(&out).exists(), "{name} left {out}");
    }
}

fn column(rows: &str, name: &str) -> Vec<String> {
    let mut lines = rows.lines();
    let place = lines.next().unwrap().split(',').position(|title| title == name).unwrap();
    lines.map(|line| line.split(',').nth(place).unwrap().to_owned()).collect()
}
