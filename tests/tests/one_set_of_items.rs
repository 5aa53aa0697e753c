//! The same collection imported, labelled and posted to the service: the same items, in the same order, under the same
//! names, with the same classes, whether it is a folder, a zip or a packed tar.
#![allow(clippy::unwrap_used)]

use dtkc_testing::files::{bz2, png, tar, zip};
use dtkc_testing::model::{SIDE, model};
use dtkc_testing::{Place, drawing};
use dtkc_tests::{Service, run_well};
use serde_json::Value;

/// In natural order. One has no extension.
const ITEMS: [(&str, &str); 5] = [
    ("test/dog/1.png", "dog"),
    ("test/dog/b/photo", "dog"),
    ("train/cat/9.png", "cat"),
    ("train/cat/10.png", "cat"),
    ("train/cat/a/2.png", "cat"),
];
const OTHERS: [&str; 6] =
    ["README", "train/notes.txt", "train/cat/._9.png", ".cache/1.png", "__MACOSX/train/1.png", "train/cat/9.txt"];

fn place() -> Place {
    let place = Place::new();
    let side = SIDE as u32;
    let image = |(number, (name, _)): (usize, &(&'static str, &str))| (*name, png(side, side, &drawing(SIDE, number)));
    let mut files: Vec<(&str, Vec<u8>)> = ITEMS.iter().enumerate().map(image).collect();
    files.extend(OTHERS.iter().map(|name| (*name, b"no image".to_vec())));
    for (name, bytes) in &files {
        place.write(&format!("set/{name}"), bytes);
    }
    place.write("set.zip", zip(&files));
    place.write("set.tar.bz2", bz2(&tar(&files)));
    // The same under a name that says nothing.
    place.write("collection", bz2(&tar(&files)));
    place.write("small.onnx", model(3));
    place
}

fn names() -> Vec<String> {
    ITEMS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn classes() -> Vec<String> {
    ITEMS.iter().map(|(_, class)| (*class).to_owned()).collect()
}

/// Names and classes of the items that an import keeps, and how many files it passed over.
fn imported(place: &Place, source: &str) -> (Vec<String>, Vec<String>, u64) {
    let said = run_well(place, &format!("dtkc-data import {source} --labels-from-folders --out set.h5 --force --json"));
    let summary: Value = serde_json::from_str(&said).unwrap();
    let dataset = place.open("set.h5");
    let named = dataset.label_names().unwrap().unwrap();
    let classes = dtkc_testing::labels(&dataset).into_iter().map(|label| named[label as usize].clone()).collect();
    (dtkc_testing::paths(&dataset), classes, passed(&summary))
}

fn passed(summary: &Value) -> u64 {
    summary["passed_over"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

/// The same of a labelling run, and the clusters.
fn labelled(place: &Place, source: &str) -> (Vec<String>, Vec<String>, u64, Vec<u64>) {
    let line = format!("dtkc-label --model small.onnx --input {source} --output labels.jsonl --truth --force --json");
    let summary: Value = serde_json::from_str(&run_well(place, &line)).unwrap();
    let text = place.text("labels.jsonl");
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let name = |row: &Value| row["path"].as_str().unwrap()[source.len() + 1..].to_owned();
    let class = |row: &Value| row["truth"].as_str().unwrap_or_default().to_owned();
    let clusters = rows.iter().map(|row| row["cluster"].as_u64().unwrap()).collect();
    (rows.iter().map(name).collect(), rows.iter().map(class).collect(), passed(&summary), clusters)
}

#[test]
fn import_labelling_and_service_see_the_same_items() {
    let place = place();
    let mut clusters = Vec::new();
    for source in ["set", "set.zip", "set.tar.bz2", "collection"] {
        // A hidden folder is one thing passed over where it is not entered, and each of its files in an archive.
        assert_eq!(imported(&place, source), (names(), classes(), OTHERS.len() as u64), "{source}");
        let (found, truth, passed, assigned) = labelled(&place, source);
        assert_eq!((found, truth, passed), (names(), classes(), OTHERS.len() as u64), "{source}");
        clusters.push(assigned);
    }
    let answer = Service::start(&place, "small.onnx").assign("application/zip", &place.read("set.zip"));
    let images = answer["images"].as_array().unwrap();
    let found: Vec<&str> = images.iter().map(|image| image["name"].as_str().unwrap()).collect();
    assert_eq!(found, names());
    assert_eq!(answer["passed_over"]["count"], OTHERS.len());
    clusters.push(images.iter().map(|image| image["cluster"].as_u64().unwrap()).collect());
    assert!(clusters.iter().all(|assigned| *assigned == clusters[0]), "{clusters:?}");
}
