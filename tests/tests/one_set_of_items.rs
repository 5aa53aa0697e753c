//! The same collection imported, labelled and posted to the service: the same items, in the same order, under the same
//! names, with the same classes, whether it is a folder, a zip, a packed tar or a table. What a tar or a table says about
//! classes is the same to import and labelling, too.
#![allow(clippy::unwrap_used)]

use dtkc_testing::files::{bz2, png, tar, zip};
use dtkc_testing::model::{SIDE, model};
use dtkc_testing::parquet::ImageTable;
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

/// Labels that a table or a tar gives the items; the last one has none.
const LABELS: [i64; 5] = [1, 0, 1, 1, -1];
const NAMES: [&str; 2] = ["cow", "eel"];

fn place() -> Place {
    let place = Place::new();
    let side = SIDE as u32;
    let image = |(number, (name, _)): (usize, &(&'static str, &str))| (*name, png(side, side, &drawing(SIDE, number)));
    let mut files: Vec<(&str, Vec<u8>)> = ITEMS.iter().enumerate().map(image).collect();
    place.write("set.parquet", ImageTable::new(&files).file());
    place.write("labelled.parquet", ImageTable::new(&files).labelled(&LABELS, Some(&NAMES)).file());
    let mut samples: Vec<(String, Vec<u8>)> = Vec::new();
    for (number, (_, image)) in files.iter().enumerate() {
        let class =
            NAMES.get(LABELS[number] as usize).map_or(String::new(), |name| format!("{{\"label\": \"{name}\"}}"));
        samples.extend([(format!("{number}.png"), image.clone()), (format!("{number}.json"), class.into_bytes())]);
    }
    let samples: Vec<(&str, &Vec<u8>)> = samples.iter().map(|(name, bytes)| (name.as_str(), bytes)).collect();
    place.write("samples-0.tar", tar(&samples[..4]));
    place.write("samples-1.tar", tar(&samples[4..]));
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
    for source in ["set", "set.zip", "set.tar.bz2", "collection", "set.parquet"] {
        // A hidden folder is one thing passed over where it is not entered, and each of its files in an archive. A table
        // has rows, and each is an item.
        let others = if source == "set.parquet" { 0 } else { OTHERS.len() as u64 };
        assert_eq!(imported(&place, source), (names(), classes(), others), "{source}");
        let (found, truth, passed, assigned) = labelled(&place, source);
        assert_eq!((found, truth, passed), (names(), classes(), others), "{source}");
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

#[test]
fn import_and_labelling_are_told_the_same_classes() {
    let place = place();
    let expected: Vec<&str> =
        LABELS.iter().map(|label| NAMES.get(*label as usize).copied().unwrap_or_default()).collect();
    for (source, input) in [("labelled.parquet", "labelled.parquet"), ("samples-{0..1}.tar", "samples-*.tar")] {
        run_well(&place, &format!("dtkc-data import {source} --out set.h5 --force --quiet"));
        let dataset = place.open("set.h5");
        assert_eq!(dataset.label_names().unwrap().unwrap(), NAMES, "{source}");
        assert_eq!(dtkc_testing::labels(&dataset), LABELS, "{source}");
        let line = "--output labels.jsonl --truth --force --quiet";
        let mut outputs = Vec::new();
        for input in [source, input] {
            run_well(&place, &format!("dtkc-label --model small.onnx --input {input} {line}"));
            outputs.push(place.text("labels.jsonl"));
        }
        assert_eq!(outputs[0], outputs[1], "a range and a pattern");
        let rows: Vec<Value> = outputs[0].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let truth: Vec<&str> = rows.iter().map(|row| row["truth"].as_str().unwrap_or_default()).collect();
        assert_eq!(truth, expected, "{source}");
        let found: Vec<&str> = rows.iter().map(|row| row["path"].as_str().unwrap()).collect();
        let named = dtkc_testing::paths(&dataset);
        assert!(found.iter().zip(&named).all(|(found, name)| found.ends_with(name.as_str())), "{found:?}, {named:?}");
    }
}
