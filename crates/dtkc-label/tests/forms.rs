//! Every form of output says the same, and can be read by others.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{CLUSTERS, EMBEDDING, Place, column, json, rows};
use dtkc_testing::Said;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;

const ALL: [&str; 7] = ["--input", "photos", "--truth", "--probabilities", "--embedding", "--min-confidence", "0.6"];

fn place() -> Place {
    let place = Place::new();
    place.images("photos/cats", 40);
    place.images("photos/dogs", 30);
    place.write("photos/dogs/0005.png", "no image");
    place.write("names.json", r#"["zero", "one, or so", "two"]"#);
    place
}

#[test]
fn csv_has_a_row_per_image_and_a_column_per_answer() {
    let place = place();
    place.ok(&[&ALL[..], &["--names", "names.json", "--output", "out.csv"]].concat());
    let text = place.text("out.csv");
    let header = text.lines().next().unwrap();
    assert!(header.starts_with(
        "index,path,cluster,cluster_name,confidence,second_cluster,second_confidence,margin,truth,error,probability_0,"
    ));
    assert!(header.ends_with(",embedding_15"), "{header}");
    let rows = rows(&text);
    assert_eq!(rows.len(), 70);
    let mut unsure = 0;
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row["index"], index.to_string());
        assert_eq!(row["truth"], if index < 40 { "cats" } else { "dogs" });
        if index == 45 {
            assert!(row["error"].starts_with("not_an_image: "), "{row:?}");
            assert_eq!((row["cluster"].as_str(), row["probability_0"].as_str()), ("", ""));
            continue;
        }
        let float = |name: &str| row[name].parse::<f32>().unwrap();
        let probabilities: Vec<f32> = (0..CLUSTERS).map(|i| float(&format!("probability_{i}"))).collect();
        assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        let cluster: usize = row["cluster"].parse().unwrap();
        let second: usize = row["second_cluster"].parse().unwrap();
        assert_eq!(float("confidence"), probabilities[cluster]);
        assert_eq!(float("second_confidence"), probabilities[second]);
        assert_eq!(float("margin"), probabilities[cluster] - probabilities[second]);
        assert!(probabilities.iter().all(|p| *p <= probabilities[cluster]));
        let expected = ["zero", "one, or so", "two", "cluster 3", "cluster 4"][cluster];
        let is_unsure = probabilities[cluster] < 0.6;
        unsure += usize::from(is_unsure);
        assert_eq!(row["cluster_name"], if is_unsure { "unsure" } else { expected });
    }
    assert!(unsure > 0, "the test needs unsure images");
}

#[test]
fn json_lines_and_parquet_say_the_same_as_csv() {
    let place = place();
    for name in ["out.csv", "out.jsonl", "out.parquet"] {
        place.ok(&[&ALL[..], &["--output", name]].concat());
    }
    let csv = rows(&place.text("out.csv"));
    let text = place.text("out.jsonl");
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let table = table(&place.path("out.parquet"));
    assert_eq!((csv.len(), lines.len(), table.len()), (70, 70, 70));
    for ((row, line), fields) in csv.iter().zip(&lines).zip(&table) {
        let text = |name: &str| match &fields[name] {
            Field::Str(text) => text.as_str(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(line["path"], row["path"].as_str());
        assert_eq!(fields["index"], Field::Long(row["index"].parse().unwrap()));
        assert_eq!(text("path"), row["path"]);
        assert_eq!(text("truth"), row["truth"]);
        if row["cluster"].is_empty() {
            assert_eq!(line["error"], row["error"].as_str());
            assert!(line["cluster"].is_null() && line["probabilities"].is_null());
            assert_eq!((&fields["cluster"], &fields["probabilities"]), (&Field::Null, &Field::Null));
            assert_eq!(text("error"), row["error"]);
            continue;
        }
        let number = |name: &str| row[name].parse::<f32>().unwrap();
        assert_eq!(line["cluster"].to_string(), row["cluster"]);
        assert_eq!(fields["cluster"], Field::Int(row["cluster"].parse().unwrap()));
        assert_eq!(line["cluster_name"], row["cluster_name"].as_str());
        assert_eq!(text("cluster_name"), row["cluster_name"]);
        assert!(line["error"].is_null() && fields["error"] == Field::Null);
        for name in ["confidence", "second_confidence", "margin"] {
            assert_eq!(line[name].as_f64().unwrap() as f32, number(name));
            assert_eq!(fields[name], Field::Float(number(name)));
        }
        for (name, column, size) in [("probabilities", "probability", CLUSTERS), ("embedding", "embedding", EMBEDDING)]
        {
            let expected: Vec<f32> = (0..size).map(|i| number(&format!("{column}_{i}"))).collect();
            let said: Vec<f32> = line[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect();
            assert_eq!(said, expected);
            assert_eq!(list(&fields[name]), expected);
        }
    }
}

/// The rows of a Parquet file as the crate's own reader of records sees them.
fn table(path: &std::path::Path) -> Vec<std::collections::HashMap<String, Field>> {
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().into_columns().into_iter().collect()).collect()
}

fn list(field: &Field) -> Vec<f32> {
    let Field::ListInternal(list) = field else { panic!("{field:?}") };
    let number = |field: &Field| if let Field::Float(value) = field { *value } else { panic!("{field:?}") };
    list.elements().iter().map(number).collect()
}

#[test]
fn a_dataset_is_ready_to_train_on_and_to_label_again() {
    let place = place();
    place.ok(&[&ALL[..], &["--names", "names.json", "--output", "out.h5"]].concat());
    place.ok(&[&ALL[..], &["--names", "names.json", "--output", "out.csv"]].concat());
    let csv: Vec<_> = rows(&place.text("out.csv")).into_iter().filter(|row| !row["cluster"].is_empty()).collect();
    let set = place.open("out.h5");
    assert_eq!(set.len(), 69);
    let labels: Vec<String> = set.labels().unwrap().unwrap().iter().map(i64::to_string).collect();
    let clusters: Vec<String> = csv.iter().map(|row| row["cluster"].clone()).collect();
    assert_eq!(labels, clusters);
    assert_eq!(set.label_names().unwrap().unwrap()[1], "one, or so");
    let paths: Vec<String> = csv.iter().map(|row| row["path"].clone()).collect();
    assert_eq!(set.paths(0..69).unwrap().unwrap(), paths);
    assert_eq!(set.read_range(0..1).unwrap(), common::pixels(0));
    assert_eq!(set.read_range(68..69).unwrap(), common::pixels(29));
    drop(set);
    let file = hdf5::File::open(place.path("out.h5")).unwrap();
    let floats = |name: &str| file.dataset(name).unwrap().read_raw::<f32>().unwrap();
    let expected: Vec<f32> = csv.iter().map(|row| row["margin"].parse().unwrap()).collect();
    assert_eq!(floats("margin"), expected);
    assert_eq!(file.dataset("probabilities").unwrap().shape(), [69, CLUSTERS]);
    let failed = file.dataset("failed_path").unwrap().read_raw::<hdf5::types::VarLenUnicode>().unwrap();
    assert_eq!(failed[0].as_str(), "photos/dogs/0005.png");
    let unsure = file.dataset("unsure").unwrap().read_raw::<u8>().unwrap();
    let expected: Vec<u8> = csv.iter().map(|row| u8::from(row["cluster_name"] == "unsure")).collect();
    assert_eq!(unsure, expected);
    drop(file);
    // Labelled again, it gives the same clusters; compared with itself, it agrees.
    let said = place.ok(&["--input", "out.h5", "--output", "again.csv", "--truth", "--json"]);
    assert_eq!(column(&place.text("again.csv"), "cluster"), clusters);
    assert_eq!(column(&place.text("again.csv"), "path"), paths);
    assert_eq!(json(&said.out)["scores"]["acc"], 1.0);
}

#[test]
fn standard_output_is_the_same_as_a_file() {
    let place = place();
    for form in ["csv", "jsonl"] {
        let name = format!("out.{form}");
        place.ok(&[&ALL[..], &["--output", &name]].concat());
        let said = place.ok(&[&ALL[..], &["--output", "-", "--format", form]].concat());
        assert_eq!(said.out, place.text(&name));
    }
    // A reader that has seen enough is no error.
    let mut command = place.command();
    command.args(["--model", "model.onnx", "--batch", "1", "--output", "-"]).args(ALL);
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    Said::from(child.wait_with_output().unwrap()).ok();
}

#[test]
fn strange_names_survive() {
    let place = Place::new();
    for name in ["a,b.png", "c \"d\".png", "ünï codé.png", "new\nline.png"] {
        place.write(&format!("photos/{name}"), common::png(1));
    }
    for ending in ["csv", "jsonl", "parquet", "h5"] {
        let (part, back) = (format!("part.{ending}"), format!("back-{ending}.csv"));
        place.ok(&["--input", "photos", "--output", &part, "--shard", "1/1"]);
        place.merge(&[&part], &back);
        let paths = column(&place.text(&back), "path");
        assert_eq!(paths, ["photos/a,b.png", "photos/c \"d\".png", "photos/new\nline.png", "photos/ünï codé.png"]);
    }
}
