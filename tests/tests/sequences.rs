//! Sequences from a .ts file to answers over HTTP, with the same answers in Python's onnxruntime.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::process::Command;

use dtkc_testing::model::sequence_model;
use dtkc_testing::{Noise, Place};
use dtkc_tests::{Service, run, run_well};
use serde_json::{Value, json};

const DIM: usize = 3;
const LENGTHS: [usize; 40] = {
    let mut lengths = [0; 40];
    let mut i = 0;
    while i < 40 {
        lengths[i] = 1 + (i * i * 13) % 70;
        i += 1;
    }
    lengths
};

/// A .ts file as it is published, dimension by dimension, with a class.
fn ts(sequences: &[Vec<f32>]) -> String {
    let mut text =
        "@problemName pens\n@timeStamps false\n@univariate false\n@classLabel true up down\n@data\n".to_owned();
    for (number, sequence) in sequences.iter().enumerate() {
        for place in 0..DIM {
            let column: Vec<String> = sequence.iter().skip(place).step_by(DIM).map(f32::to_string).collect();
            write!(text, "{}:", column.join(",")).unwrap();
        }
        writeln!(text, "{}", ["up", "down"][number % 2]).unwrap();
    }
    text
}

/// What Python says for the sequences of a dataset: clusters, and probabilities row by row. Everything behind a sequence
/// is NaN.
const PYTHON: &str = "
import json, sys
try:
    import h5py, numpy, onnxruntime
except ImportError:
    sys.exit(3)
with h5py.File('pens.h5') as file:
    values, offsets = file['values'][:], file['offsets'][:].astype(numpy.int64)
lengths = numpy.diff(offsets)
batch = numpy.full((len(lengths), lengths.max(), values.shape[1]), numpy.nan, numpy.float32)
for row, start, length in zip(batch, offsets, lengths):
    row[:length] = values[start : start + length]
session = onnxruntime.InferenceSession('model.onnx', providers=['CPUExecutionProvider'])
cluster, probabilities, _ = session.run(None, {'values': batch, 'lengths': lengths})
print(json.dumps({'cluster': cluster.tolist(), 'probabilities': probabilities.tolist()}))
";

fn python(place: &Place) -> Option<Value> {
    let mut command = Command::new(std::env::var_os("DTKC_PYTHON").unwrap_or_else(|| "python3".into()));
    if let Some(packages) = std::env::var_os("DTKC_PYTHONPATH") {
        command.env("PYTHONPATH", packages);
    }
    let output = command.args(["-c", PYTHON]).current_dir(place.folder()).output().unwrap();
    if output.status.code() == Some(3) {
        eprintln!("SKIPPED: no Python with h5py and onnxruntime; scripts/setup.sh --tests installs them");
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn a_ts_file_becomes_a_dataset_labels_and_answers() {
    let place = Place::new();
    let mut noise = Noise(11);
    let sequences: Vec<Vec<f32>> = LENGTHS.iter().map(|length| noise.values(length * DIM, 2.0)).collect();
    place.write("pens.ts", ts(&sequences));
    place.write("model.onnx", sequence_model(5, DIM));
    run_well(&place, "dtkc-data import pens.ts --out pens.h5");
    let label = "dtkc-label --model model.onnx --truth --probabilities";
    for (input, output) in [("pens.h5", "labels.jsonl"), ("pens.ts", "direct.jsonl")] {
        run_well(&place, &format!("{label} --input {input} --output {output}"));
    }
    let rows = |name: &str| -> Vec<Value> {
        place.text(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (labelled, direct) = (rows("labels.jsonl"), rows("direct.jsonl"));
    let clusters: Vec<u64> = labelled.iter().map(|row| row["cluster"].as_u64().unwrap()).collect();
    assert_eq!(clusters.len(), LENGTHS.len());
    let different = |name: &str| labelled.iter().zip(&direct).filter(|(a, b)| a[name] != b[name]).count();
    assert_eq!((different("cluster"), different("confidence"), different("truth")), (0, 0, 0));
    assert!((0..5).filter(|cluster| clusters.contains(cluster)).count() > 1, "{clusters:?}");

    if let Some(said) = python(&place) {
        assert_eq!(said["cluster"], json!(clusters));
        for (row, expected) in labelled.iter().zip(said["probabilities"].as_array().unwrap()) {
            let found: Vec<f64> = serde_json::from_value(row["probabilities"].clone()).unwrap();
            let expected: Vec<f64> = serde_json::from_value(expected.clone()).unwrap();
            assert!(found.len() == 5 && found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5));
        }
    }

    let service = Service::start(&place, "model.onnx");
    let steps: Vec<Vec<&[f32]>> = sequences.iter().map(|sequence| sequence.chunks(DIM).collect()).collect();
    let answered = service.assign("application/json", json!({"sequences": steps}).to_string().as_bytes());
    let mut table = "id,x,y,z\n".to_owned();
    for (number, sequence) in sequences.iter().enumerate() {
        sequence.chunks(DIM).for_each(|step| writeln!(table, "{number},{},{},{}", step[0], step[1], step[2]).unwrap());
    }
    let from_table = service.assign("text/csv", table.as_bytes());
    for answer in [answered, from_table] {
        let found = answer["sequences"].as_array().unwrap();
        assert_eq!(found.iter().map(|one| one["cluster"].as_u64().unwrap()).collect::<Vec<_>>(), clusters);
        for (one, row) in found.iter().zip(&labelled) {
            assert_eq!(one["confidence"].as_f64().unwrap() as f32, row["confidence"].as_f64().unwrap() as f32);
        }
    }
}

#[test]
fn sequences_of_another_dimension_are_refused_with_both_numbers_everywhere() {
    let place = Place::new();
    place.write("pens.ts", "@problemName a\n@timeStamps false\n@classLabel false\n@data\n1,2:3,4\n");
    place.write("model.onnx", sequence_model(5, DIM));
    run_well(&place, "dtkc-data import pens.ts --out pens.h5");
    for input in ["pens.ts", "pens.h5"] {
        let said = run(&place, "dtkc-label", &["--model", "model.onnx", "--input", input, "--output", "out.csv"]);
        let sentence = "the sequence has 2 values a step and the model takes 3";
        assert!(said.code == 1 && said.err.contains(sentence), "{said:?}");
    }
    let answer = Service::start(&place, "model.onnx").assign("application/json", br#"{"sequences": [[[1, 2]]]}"#);
    assert_eq!(answer["sequences"][0]["error"], "the sequence has 2 values a step and the model takes 3");
}
