//! Sequences: the same labels from every form, what cannot be used, shards, resume and the page.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::path::PathBuf;

use common::column;
use dtkc_dataset::{Writer, WriterOptions};
use dtkc_item::{ItemKind, ItemShape};
use dtkc_onnx::testing::{SequenceSample, forward_sequence};
use dtkc_testing::{Place, files};

const SAMPLE: SequenceSample = SequenceSample { dim: 2, stacked: 2, units: 6, hidden: 9, clusters: 4, seed: 5 };
const LENGTHS: [usize; 9] = [4, 1, 30, 7, 12, 2, 60, 9, 5];

fn sequences() -> Vec<Vec<f32>> {
    SAMPLE.sequences(&LENGTHS)
}

fn place() -> Place {
    let place = Place::of("dtkc-label");
    place.write("model.onnx", dtkc_onnx::write(&SAMPLE.network(), &SAMPLE.metadata(SAMPLE.hidden)).unwrap());
    place
}

fn label(place: &Place, line: &str) -> dtkc_testing::Said {
    place.run_line(&format!("--model model.onnx --quiet {line}"))
}

#[track_caller]
fn ok(place: &Place, line: &str) {
    let said = label(place, line);
    assert_eq!(said.code, 0, "{}", said.err);
}

fn dataset(place: &Place, name: &str, sequences: &[Vec<f32>]) -> PathBuf {
    let path = place.path(name);
    let options = WriterOptions::new(ItemShape::Sequence { dim: 2 }, "test", "test");
    let mut writer = Writer::create(&path, options).unwrap();
    for (number, sequence) in sequences.iter().enumerate() {
        writer.push_sequence(sequence, Some(number as i64 % 3), None).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn steps(sequence: &[f32]) -> impl Iterator<Item = (f32, f32)> {
    sequence.chunks(2).map(|step| (step[0], step[1]))
}

/// Writes all sequences in every form, and gives the flags that read each.
fn every_form(place: &Place) -> Vec<&'static str> {
    let all = sequences();
    dataset(place, "set.h5", &all);
    let mut long = "id,time,x,y\n".to_owned();
    let mut ts = "@problemName t\n@timeStamps false\n@classLabel false\n@data\n".to_owned();
    let most = LENGTHS.iter().max().unwrap();
    let names = |c: char| (0..*most).map(|step| format!("{c}{step}")).collect::<Vec<_>>().join(",");
    let mut wide = format!("{},{}\n", names('x'), names('y'));
    for (number, sequence) in all.iter().enumerate() {
        let mut each = "x,y\n".to_owned();
        for (step, (x, y)) in steps(sequence).enumerate() {
            long += &format!("s{number},{step},{x},{y}\n");
            each += &format!("{x},{y}\n");
        }
        place.write(&format!("folder/{number:02}.csv"), each);
        let one = |pick: fn((f32, f32)) -> f32| steps(sequence).map(|s| pick(s).to_string()).collect::<Vec<_>>();
        let (xs, ys) = (one(|s| s.0), one(|s| s.1));
        ts += &format!("{}:{}\n", xs.join(","), ys.join(","));
        let filled = |mut values: Vec<String>| {
            values.resize(*most, String::new());
            values.join(",")
        };
        wide += &format!("{},{}\n", filled(xs), filled(ys));
    }
    place.write("long.csv", long);
    place.write("wide.csv", wide);
    place.write("set.ts", ts);
    let ends = LENGTHS.iter().scan(0, |end, length| {
        *end += *length as i64;
        Some(*end)
    });
    let offsets: Vec<i64> = std::iter::once(0).chain(ends).collect();
    let packed = [
        ("values.npy", files::npy(&[LENGTHS.iter().sum(), 2], &all.concat())),
        ("offsets.npy", files::npy_integers(&offsets)),
    ];
    place.write("set.npz", files::zip(&packed));
    let mut filled = Vec::new();
    for sequence in &all {
        filled.extend_from_slice(sequence);
        filled.resize(filled.len() + 2 * most - sequence.len(), f32::NAN);
    }
    place.write("stack.npy", files::npy(&[all.len(), *most, 2], &filled));
    vec!["set.h5", "long.csv", "wide.csv", "folder", "set.ts", "set.npz", "stack.npy"]
}

#[test]
fn every_form_gives_the_labels_of_the_definition() {
    let place = place();
    let network = SAMPLE.network();
    let expected: Vec<_> = sequences().iter().map(|sequence| forward_sequence(&network, sequence)).collect();
    for input in every_form(&place) {
        ok(&place, &format!("--input {input} --output out.csv --probabilities --force"));
        let text = place.text("out.csv");
        let clusters: Vec<usize> = column(&text, "cluster").iter().map(|cluster| cluster.parse().unwrap()).collect();
        assert_eq!(clusters, expected.iter().map(|one| one.cluster()).collect::<Vec<_>>(), "{input}");
        for (found, expected) in column(&text, "confidence").iter().zip(&expected) {
            let difference = found.parse::<f64>().unwrap() - expected.probabilities[expected.cluster()];
            assert!(difference.abs() < 1e-5, "{input}: {difference}");
        }
    }
    ok(&place, "--input long.csv folder --output both.csv --batch 4 --threads 2");
    let both = place.text("both.csv");
    let paths = column(&both, "path");
    assert_eq!((paths[0].as_str(), paths[9].replace('\\', "/").as_str()), ("s0", "folder/00.csv"));
    let clusters = column(&both, "cluster");
    assert_eq!(clusters[..9], clusters[9..]);
}

#[test]
fn what_cannot_be_used_fails_alone_or_is_refused_with_both_numbers() {
    let place = place();
    let ts =
        "@problemName t\n@timeStamps false\n@classLabel false\n@data\n1,2:3,4\n::\n1,?:3,4\n".replace("::\n", ":\n");
    place.write("holes.ts", format!("{ts}1,2,3,4,5,6:1,2,3,4,5,6\n"));
    ok(&place, "--input holes.ts --output out.csv --max-steps 5");
    let errors = column(&place.text("out.csv"), "error");
    let codes: Vec<&str> = errors.iter().map(|error| error.split(':').next().unwrap()).collect();
    assert_eq!(codes, ["", "no_steps", "missing_values", "too_long"]);
    ok(&place, "--input holes.ts --output filled.csv --fill-missing");
    let errors = column(&place.text("filled.csv"), "error");
    assert_eq!(errors.iter().filter(|error| error.is_empty()).count(), 3);
    place.write("three.csv", "id,x,y,z\na,1,2,3\n");
    let said = label(&place, "--input three.csv --output no.csv");
    assert!(said.code != 0 && said.err.contains("has 3 values a step and the model takes 2"), "{}", said.err);
    let path = place.path("one.h5");
    let mut writer = Writer::create(&path, WriterOptions::new(ItemShape::Sequence { dim: 1 }, "t", "t")).unwrap();
    writer.push_sequence(&[1.0], None, None).unwrap();
    writer.finish().unwrap();
    let said = label(&place, "--input one.h5 --output no.csv");
    assert!(said.code != 0 && said.err.contains("has 1 value a step and the model takes 2"), "{}", said.err);
    let said = label(&place, "--input holes.ts --output no.csv --duplicates");
    assert!(
        said.code == 2 && said.err.contains("what images look like, and the model takes sequences"),
        "{}",
        said.err
    );
    place.write("image.png", files::gray_png(4, 4, 7));
    let said = label(&place, "--input image.png --output no.csv");
    assert!(said.code != 0 && said.err.contains("it holds images, and the model takes sequences"), "{}", said.err);
    place.write("images.onnx", dtkc_testing::model::model(1));
    let said = place.run_line("--model images.onnx --quiet --input one.h5 --output no.csv");
    assert!(said.code != 0 && said.err.contains("it holds sequences, and the model labels images"), "{}", said.err);
    assert!(!place.path("no.csv").exists());
}

#[test]
fn shards_merge_to_the_undivided_result_with_the_sequences_in_it() {
    let place = place();
    let lengths: Vec<usize> = (0..300).map(|i| 1 + (i * i) % 40).collect();
    let all = SAMPLE.sequences(&lengths);
    dataset(&place, "set.h5", &all);
    for ending in ["csv", "parquet", "h5"] {
        ok(&place, &format!("--input set.h5 --truth --output whole.{ending} --force"));
        for shard in ["1/2", "2/2"] {
            ok(
                &place,
                &format!(
                    "--input set.h5 --truth --output part-{}.{ending} --shard {shard} --batch 7 --force",
                    &shard[..1]
                ),
            );
        }
        let said =
            place.run_line(&format!("merge part-2.{ending} part-1.{ending} --output merged.{ending} --quiet --force"));
        assert_eq!(said.code, 0, "{}", said.err);
        if ending != "h5" {
            assert!(place.read(&format!("merged.{ending}")) == place.read(&format!("whole.{ending}")), "{ending}");
        }
    }
    for name in ["whole.h5", "merged.h5"] {
        let set = place.open(name);
        assert_eq!((set.kind(), set.len(), set.shape().dim()), (ItemKind::Sequences, 300, Some(2)));
        assert!((0..300).all(|index| set.read_sequence(index).unwrap() == all[index]), "{name}");
        assert_eq!(set.labels().unwrap(), place.open("whole.h5").labels().unwrap());
    }
}

#[test]
fn an_interrupted_run_goes_on_to_the_same_bytes() {
    let place = place();
    let lengths: Vec<usize> = (0..2000).map(|i| 1 + (i * 7) % 30).collect();
    dataset(&place, "set.h5", &SAMPLE.sequences(&lengths));
    for ending in ["csv", "h5"] {
        let line = format!("--input set.h5 --output out.{ending} --batch 16 --threads 2");
        ok(&place, &line.replace("out.", "whole."));
        let mut child =
            place.command().args(format!("--model model.onnx --quiet {line}").split_whitespace()).spawn().unwrap();
        let journal = place.path(&format!("out.{ending}.journal"));
        let done = place.path(&format!("out.{ending}"));
        dtkc_testing::wait_until("rows in the journal", || {
            std::fs::metadata(&journal).is_ok_and(|meta| meta.len() > 2000) || (!journal.exists() && done.exists())
        });
        child.kill().unwrap();
        child.wait().unwrap();
        ok(&place, &format!("{line} --resume"));
        if ending == "csv" {
            assert!(place.text("out.csv") == place.text("whole.csv"));
        } else {
            let (ours, whole) = (place.open("out.h5"), place.open("whole.h5"));
            assert_eq!(
                (ours.labels().unwrap(), ours.fingerprint().unwrap()),
                (whole.labels().unwrap(), whole.fingerprint().unwrap())
            );
        }
    }
}

#[test]
fn the_page_draws_sequences_and_folders_hold_them() {
    let place = place();
    every_form(&place);
    ok(&place, "--input set.ts --output out.csv --gallery page.html --sort-into sorted");
    let page = place.text("page.html");
    assert!(page.contains("<dt>sequences</dt><dd>9</dd>") && page.matches("data:image/png;base64,").count() == 9);
    let mut found = 0;
    for folder in dtkc_testing::names(&place.path("sorted")) {
        for name in dtkc_testing::names(&place.path(&format!("sorted/{folder}"))) {
            let text = place.text(&format!("sorted/{folder}/{name}"));
            let number: usize = name.trim_end_matches(".csv").parse().unwrap();
            assert_eq!((text.lines().next(), text.lines().count()), (Some("x1,x2"), LENGTHS[number] + 1));
            found += 1;
        }
    }
    assert_eq!(found, 9);
}
