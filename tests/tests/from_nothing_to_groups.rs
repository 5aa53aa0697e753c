//! The main job: make a dataset, train without labels, export, label, with the four programs as a user calls them.
#![allow(clippy::unwrap_used)]

use dtkc_testing::Place;
use dtkc_tests::{run, run_well};
use serde_json::Value;

/// A network small enough to train in seconds.
const SMALL: &str = "--clusters 10 --runs 1 --epochs 2 --batch 60 --seed 3 --threads 1";

#[test]
fn a_dataset_becomes_a_model_and_labels() {
    let place = Place::new();
    run_well(&place, "dtkc-data synth --kind glyphs --count 600 --seed 1 --out glyphs.h5");
    let info: Value = serde_json::from_str(&run_well(&place, "dtkc-data info glyphs.h5 --json")).unwrap();
    assert!(info.to_string().contains("600"), "{info}");

    run_well(&place, &format!("dtkc-train fit --data glyphs.h5 --out run {SMALL}"));
    for file in ["config.toml", "log.jsonl", "summary.json", "model.onnx", "report.html"] {
        assert!(place.path("run").join(file).is_file(), "{file} is missing");
    }

    // The labeller runs the exported file in ONNX Runtime, `evaluate` runs the network in burn: the sizes of the
    // clusters must be the same.
    let label =
        "dtkc-label --model run/model.onnx --input glyphs.h5 --output labels.csv --gallery gallery.html --truth";
    run_well(&place, label);
    let rows = place.text("labels.csv");
    assert_eq!(rows.lines().count(), 601, "a heading and a row per image");
    let clusters = column(&rows, "cluster");
    let mut counts = [0usize; 10];
    clusters.iter().for_each(|c| counts[c.parse::<usize>().unwrap()] += 1);

    let evaluated = run_well(&place, "dtkc-train evaluate run --data glyphs.h5 --json");
    let evaluated: Value = serde_json::from_str(&evaluated).unwrap();
    let trained = evaluated["clusters"].as_array().unwrap().iter().map(|c| c["images"].as_u64().unwrap() as usize);
    let moved: usize = counts.iter().zip(trained).map(|(here, there)| here.abs_diff(there)).sum();
    // An image on the very edge between two clusters may fall to either side.
    assert!(moved <= 2, "{counts:?} in ONNX Runtime against {}", evaluated["clusters"]);
    assert!(place.text("gallery.html").contains("<html"));
}

#[test]
fn the_same_seed_gives_the_same_model_file() {
    let place = Place::new();
    run_well(&place, "dtkc-data synth --kind glyphs --count 240 --seed 1 --out glyphs.h5");
    for name in ["a", "b"] {
        run_well(&place, &format!("dtkc-train fit --data glyphs.h5 --out {name} {SMALL}"));
    }
    assert_eq!(place.read("a/model.onnx"), place.read("b/model.onnx"));
}

#[test]
fn a_damaged_file_is_one_sentence_and_exit_code_1_everywhere() {
    let place = Place::new();
    place.write("damaged.h5", b"\x89HDF\r\n\x1a\nno more");
    for line in [
        "dtkc-data info damaged.h5",
        "dtkc-train fit --data damaged.h5 --clusters 3 --out out.csv",
        "dtkc-label --model damaged.h5 --input damaged.h5 --output out.csv",
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let said = run(&place, words[0], &words[1..]);
        assert_eq!(said.code, 1, "{line}: {said:?}");
        assert!(said.err.contains("damaged.h5") && !said.err.contains("panicked"), "{line}: {said:?}");
        assert!(!place.path("out.csv").exists(), "{line} left something behind");
    }
}

fn column(rows: &str, name: &str) -> Vec<String> {
    let mut lines = rows.lines();
    let place = lines.next().unwrap().split(',').position(|title| title == name).unwrap();
    lines.map(|line| line.split(',').nth(place).unwrap().to_owned()).collect()
}
