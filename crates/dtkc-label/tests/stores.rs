//! Labelling from and to object stores: the same rows as on the disk, and what is interrupted goes on.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use common::{Place, model, png};
use dtkc_testing::parquet::ImageTable;
use dtkc_testing::store::S3;
use dtkc_testing::{Said, wait_until};
use parquet::file::reader::{FileReader, SerializedFileReader};

const COUNT: usize = 30;

struct Bucket {
    place: Place,
    server: S3,
}

impl Bucket {
    fn new() -> Self {
        let (place, server) = (Place::new(), S3::start());
        for number in 0..COUNT {
            let name = format!("photos/{}/{number}.png", ["cat", "dog"][number % 2]);
            place.write(&name, png(number));
            server.put(&name, &png(number));
        }
        for (name, bytes) in [("photos/cat/bad.png", b"damaged"), ("photos/cat/notes.txt", b"a notes")] {
            place.write(name, bytes);
            server.put(name, bytes);
        }
        server.put("model.onnx", &model(3));
        Self { place, server }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command();
        command.args(arguments).envs(self.server.environment()).env("DTKC_WORK_DIR", self.place.path("work"));
        command.env("DTKC_STORE_RETRIES", "1");
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    #[track_caller]
    fn label(&self, arguments: &[&str]) -> Said {
        let said = self.run(&[&["--model", "model.onnx", "--quiet"], arguments].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said
    }

    /// What is kept on this machine for outputs.
    fn kept(&self) -> Vec<String> {
        let work = self.place.path("work");
        if work.exists() { dtkc_testing::names(&work) } else { Vec::new() }
    }
}

#[test]
fn rows_of_a_store_are_those_of_the_disk() {
    let bucket = Bucket::new();
    bucket.label(&["--input", "photos", "--output", "local.csv", "--truth"]);
    let expected = bucket.place.text("local.csv");
    bucket.label(&["--input", "s3://bucket/photos/", "--output", "s3://bucket/out/labels.csv", "--truth"]);
    let csv = String::from_utf8(bucket.server.get("out/labels.csv").unwrap()).unwrap();
    assert_eq!(csv.replace("s3://bucket/photos/", "photos/"), expected);
    for beside in ["job.json", "failed.csv", "passed-over.csv"] {
        assert!(bucket.server.get(&format!("out/labels.csv.{beside}")).is_some(), "{beside}");
    }
    assert_eq!(bucket.kept(), [""; 0]);
    for form in ["parquet", "jsonl", "h5"] {
        let (local, remote) = (format!("local.{form}"), format!("s3://bucket/out/labels.{form}"));
        bucket.label(&["--input", "s3://bucket/photos", "--output", &local, "--probabilities"]);
        bucket.label(&["--input", "s3://bucket/photos", "--output", &remote, "--probabilities"]);
        assert!(bucket.server.get(&format!("out/labels.{form}")).unwrap() == bucket.place.read(&local), "{form}");
    }
    // A dataset in a store is one as on the disk; so is a model.
    bucket.place.dataset("set.h5", 20);
    bucket.server.put("set.h5", &bucket.place.read("set.h5"));
    bucket.label(&["--input", "set.h5", "--output", "set.csv", "--truth"]);
    let arguments = [
        "--model",
        "s3://bucket/model.onnx",
        "-q",
        "--input",
        "s3://bucket/set.h5",
        "--output",
        "other.csv",
        "--truth",
    ];
    assert_eq!(bucket.run(&arguments).code, 0);
    assert_eq!(bucket.place.text("other.csv").replace("s3://bucket/", ""), bucket.place.text("set.csv"));
    assert_eq!(bucket.kept(), [""; 0]);
}

/// Images in a folder and all below it.
fn files_below(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(
            |path| {
                if path.is_dir() { files_below(&path) } else { usize::from(path.extension() == Some("png".as_ref())) }
            },
        )
        .sum()
}

#[test]
fn images_of_a_store_are_sorted_and_shown() {
    let bucket = Bucket::new();
    let more = ["--sort-into", "sorted", "--gallery", "page.html", "--duplicates"];
    bucket.label(&[&["--input", "s3://bucket/photos", "--output", "s3://bucket/labels.csv"], &more[..]].concat());
    assert_eq!(files_below(&bucket.place.path("sorted")), COUNT);
    assert!(bucket.place.text("page.html").contains("data:image"));
    assert!(bucket.server.get("labels.csv.duplicates.csv").is_some());
}

#[test]
fn outputs_are_replaced_when_asked_only_and_never_inputs() {
    let bucket = Bucket::new();
    let arguments =
        ["--model", "model.onnx", "-q", "--input", "s3://bucket/photos", "--output", "s3://bucket/labels.csv"];
    assert_eq!(bucket.run(&arguments).code, 0);
    bucket.run(&arguments).fails(1, "s3://bucket/labels.csv: it exists already; add --force to replace it");
    // What is complete is looked at, and left as it is.
    let again = bucket.run(&[
        "--model",
        "model.onnx",
        "--input",
        "s3://bucket/photos",
        "--output",
        "s3://bucket/labels.csv",
        "--resume",
    ]);
    assert!(again.code == 0 && again.err.contains("s3://bucket/labels.csv is complete already"), "{again:?}");
    assert_eq!(bucket.run(&[&arguments[..], &["--force"]].concat()).code, 0);
    for input in ["s3://bucket/labels.csv", "s3://bucket", "s3://bucket/*.csv"] {
        let said =
            bucket.run(&["--model", "model.onnx", "--input", input, "--output", "s3://bucket/labels.csv", "--force"]);
        said.fails(2, "is one of the inputs, or lies among them");
    }
    let said = bucket.run(&[&arguments[..], &["--force", "--gallery", "s3://bucket/x.html"]].concat());
    said.fails(2, "--gallery goes to this machine");
    let said = bucket.run(&["--model", "s3://bucket/none.onnx", "--input", "photos", "--output", "x.csv"]);
    said.fails(1, "s3://bucket/none.onnx: the store has no such object");
    assert_eq!(bucket.kept(), [""; 0]);
}

#[test]
fn shards_are_joined_in_a_store() {
    let bucket = Bucket::new();
    bucket.label(&["--input", "s3://bucket/photos", "--output", "whole.csv"]);
    for shard in ["1", "2"] {
        let output = format!("s3://bucket/part-{shard}.parquet");
        bucket.label(&["--input", "s3://bucket/photos", "--output", &output, "--shard", &format!("{shard}/2")]);
    }
    let said = bucket.run(&["merge", "-q", "s3://bucket/part-*.parquet", "--output", "s3://bucket/whole.csv"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(bucket.server.get("whole.csv").unwrap() == bucket.place.read("whole.csv"));
    assert_eq!(bucket.kept(), [""; 0]);
}

/// Addresses on standard input: the run waits for the next line, so it is interrupted before its end on any machine.
#[test]
fn an_interrupted_run_sends_nothing_and_goes_on() {
    let bucket = Bucket::new();
    let list: Vec<String> =
        (0..COUNT).map(|n| format!("s3://bucket/photos/{}/{n}.png\n", ["cat", "dog"][n % 2])).collect();
    let arguments = |output: &'static str| {
        ["--model", "model.onnx", "--input", "-", "--batch", "1", "--threads", "1", "--output", output]
    };
    let run = |arguments: &[&str]| -> Said {
        let mut child = bucket
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(list.concat().as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    };
    assert_eq!(run(&arguments("whole.csv")).code, 0);
    let output = "s3://bucket/labels.csv";
    let mut command = bucket.command(&arguments(output));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(list[..10].concat().as_bytes()).unwrap();
    let journal = || {
        let folder = bucket.kept().into_iter().find(|name| name.starts_with("labels.csv-"))?;
        Some(bucket.place.path("work").join(folder).join("labels.csv"))
    };
    let rows = || {
        let Ok(mut reader) = dtkc_label::journal::Reader::open(&journal()?) else { return None };
        Some(std::iter::from_fn(|| reader.next_block().unwrap()).map(|block| block.len()).sum::<usize>())
    };
    wait_until("rows are in the journal", || rows() == Some(10));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.starts_with("stopping at the next safe place")));
    let _ = input.write_all(list[10..].concat().as_bytes());
    drop(input);
    let rest: Vec<String> = said.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("nothing was sent") && line.contains("--resume goes on")), "{rest:?}");
    assert!(bucket.server.get("labels.csv").is_none());
    // Unasked it does not start over, and asked it goes on.
    run(&arguments(output)).fails(2, "add --resume to go on with it, or --force to start over");
    let resumed = run(&[&arguments(output)[..], &["--resume"]].concat());
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(bucket.server.get("labels.csv").unwrap() == bucket.place.read("whole.csv"));
    assert_eq!(bucket.kept(), [""; 0]);
}

/// A store that is lost in the middle ends the run, whose rows are kept: its images are not called bad.
#[test]
fn a_lost_store_is_no_fault_of_the_images() {
    let Bucket { place, server } = Bucket::new();
    let environment = server.environment();
    let mut command = place.command();
    command.args([
        "--model",
        "model.onnx",
        "--quiet",
        "--input",
        "-",
        "--batch",
        "1",
        "--threads",
        "1",
        "--output",
        "labels.csv",
    ]);
    command.envs(environment).env("DTKC_STORE_RETRIES", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"s3://bucket/photos/cat/0.png\ns3://bucket/photos/dog/1.png\n").unwrap();
    let rows = || {
        let mut reader = dtkc_label::journal::Reader::open(&place.path("labels.csv")).ok()?;
        Some(std::iter::from_fn(|| reader.next_block().unwrap()).map(|block| block.len()).sum::<usize>())
    };
    wait_until("the first rows are in the journal", || rows() == Some(2));
    drop(server);
    input.write_all(b"s3://bucket/photos/cat/2.png\n").unwrap();
    drop(input);
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("s3://bucket/photos/cat/2.png: the store cannot be reached"), "{said:?}");
    assert_eq!(rows(), Some(2));
    assert!(!place.path("labels.csv").exists());
}

#[test]
fn kept_columns_of_a_table_in_a_store_are_those_of_the_disk() {
    let bucket = Bucket::new();
    let images: Vec<Vec<u8>> = (0..3).map(png).collect();
    let files = [("a.png", &images[0]), ("b.png", &images[1]), ("c.png", &images[2])];
    let table = ImageTable::new(&files).labelled(&[7, 8, 9], None).file();
    bucket.place.write("t.parquet", &table);
    bucket.server.put("t.parquet", &table);
    let rows = |input: &str, output: &str| -> Vec<String> {
        bucket.label(&["--input", input, "--keep-columns", "--output", output]);
        let reader = SerializedFileReader::new(std::fs::File::open(bucket.place.path(output)).unwrap()).unwrap();
        reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
    };
    let here = rows("t.parquet", "here.parquet");
    assert!(here.len() == 3 && here[2].contains("label: 9"), "{here:?}");
    let there = rows("s3://bucket/t.parquet", "there.parquet");
    assert_eq!(there.iter().map(|row| row.replace("s3://bucket/", "")).collect::<Vec<_>>(), here);
}
