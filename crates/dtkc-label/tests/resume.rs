//! Interrupted runs: what they leave, and that the resumed result is that of an undisturbed run.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use common::{Place, column, json};

const IMAGES: usize = 6000;

/// Batches of one and many files on the disk, so that a run is long enough to be interrupted.
fn arguments(output: &str) -> Vec<&str> {
    vec!["--input", "set.h5", "photos", "--batch", "1", "--threads", "1", "--probabilities", "--output", output]
}

fn place() -> Place {
    let place = Place::new();
    place.dataset("set.h5", IMAGES);
    place.images("photos", 50);
    place.write("photos/0020.png", "damaged");
    place
}

/// Starts the program and sends a signal once its journal has grown by `bytes`.
fn interrupt(place: &Place, output: &str, more: &[&str], signal: &str, bytes: u64) -> ExitStatus {
    let journal = place.path(&format!("{output}.journal"));
    let size = || std::fs::metadata(&journal).map_or(0, |m| m.len());
    let before = size();
    let mut child = spawn(place, output, more);
    let started = Instant::now();
    while size() < before + bytes {
        assert!(started.elapsed() < Duration::from_secs(60), "the journal does not grow");
        if let Some(status) = child.try_wait().unwrap() {
            panic!("ended before the signal: {status}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    child.wait().unwrap()
}

fn spawn(place: &Place, output: &str, more: &[&str]) -> Child {
    let mut command = place.label(&arguments(output));
    command.args(more).stderr(std::process::Stdio::null()).spawn().unwrap()
}

fn complete(place: &Place, output: &str) {
    place.ok(&[&arguments(output)[..], &["--resume"]].concat());
    assert!(!place.path(&format!("{output}.journal")).exists());
    assert!(!place.path(&format!("{output}.journal-pixels")).exists());
}

#[test]
fn ctrl_c_leaves_a_valid_file_and_resume_completes_it() {
    let place = place();
    place.ok(&arguments("whole.csv"));
    for ending in ["csv", "jsonl", "parquet"] {
        let (whole, output) = (format!("whole.{ending}"), format!("cut.{ending}"));
        place.ok(&arguments(&whole));
        let status = interrupt(&place, &output, &[], "-INT", 20_000);
        assert_eq!(status.code(), Some(130), "{ending}");
        // What is there can be read and is the beginning of the whole.
        let beginning = place.read(&output);
        if ending != "parquet" {
            assert!(!beginning.is_empty() && place.read(&whole).starts_with(&beginning), "{ending}");
            assert_eq!(beginning.last(), Some(&b'\n'));
        } else {
            let file = std::fs::File::open(place.path(&output)).unwrap();
            let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            let rows = reader.metadata().file_metadata().num_rows();
            assert!(rows > 0 && rows < IMAGES as i64, "{rows}");
        }
        assert!(place.text(&format!("{output}.job.json")).contains("\"interrupted\""));
        complete(&place, &output);
        assert!(place.read(&output) == place.read(&whole), "{ending}");
        assert!(place.text(&format!("{output}.job.json")).contains("\"complete\""));
        let failed = place.text(&format!("{output}.failed.csv"));
        assert_eq!(column(&failed, "path"), ["photos/0020.png"]);
    }
}

#[test]
fn kill_after_kill_loses_nothing() {
    let place = place();
    place.ok(&arguments("whole.csv"));
    for round in 0..3 {
        let more: &[&str] = if round == 0 { &[] } else { &["--resume"] };
        let status = interrupt(&place, "cut.csv", more, "-KILL", 30_000);
        assert_eq!(status.code(), None, "killed by a signal");
        assert!(!place.path("cut.csv").exists(), "whole or not at all");
    }
    let journal = std::fs::metadata(place.path("cut.csv.journal")).unwrap().len();
    assert!(journal >= 90_000);
    complete(&place, "cut.csv");
    assert!(place.text("cut.csv") == place.text("whole.csv"));
}

#[test]
fn datasets_resume_too() {
    let place = place();
    place.ok(&arguments("whole.h5"));
    interrupt(&place, "cut.h5", &[], "-KILL", 20_000);
    assert_eq!(interrupt(&place, "cut.h5", &["--resume"], "-INT", 20_000).code(), Some(130));
    let part = place.open("cut.h5");
    assert!(!part.is_empty() && part.len() < IMAGES);
    drop(part);
    complete(&place, "cut.h5");
    let (whole, cut) = ["whole.h5", "cut.h5"].map(|name| place.open(name)).into();
    assert_eq!(whole.len(), IMAGES + 49);
    assert_eq!(whole.fingerprint().unwrap(), cut.fingerprint().unwrap());
    assert_eq!(whole.paths(0..whole.len()).unwrap(), cut.paths(0..cut.len()).unwrap());
}

#[test]
fn a_gallery_counts_what_was_done_before_the_interruption() {
    let place = place();
    place.ok(&[&arguments("whole.csv")[..], &["--gallery", "whole.html"]].concat());
    interrupt(&place, "cut.csv", &["--gallery", "cut.html"], "-INT", 50_000);
    assert!(!place.path("cut.html").exists());
    place.ok(&[&arguments("cut.csv")[..], &["--gallery", "cut.html", "--resume"]].concat());
    assert!(place.text("cut.html") == place.text("whole.html"));
}

#[test]
fn an_unfinished_run_is_neither_overwritten_nor_mixed() {
    let place = place();
    interrupt(&place, "cut.csv", &[], "-KILL", 10_000);
    place.refused(&arguments("cut.csv"), 1, "add --resume");
    let other = [&arguments("cut.csv")[..], &["--resume", "--min-confidence", "0.5"]].concat();
    place.refused(&other, 1, "min_confidence was null and is now 0.5");
    place.write("model.onnx", common::model(4));
    place.refused(&[&arguments("cut.csv")[..], &["--resume"]].concat(), 1, "model_sha256 was");
}

#[test]
fn a_changed_input_is_noticed() {
    let place = Place::new();
    place.images("photos", 400);
    let arguments = ["--input", "photos", "--batch", "1", "--threads", "1", "--output", "cut.csv"];
    place.ok(&arguments);
    // As if it had been killed after the last row: journal there, output not.
    let journal = whole_journal(&place, &arguments);
    place.write("cut.csv.journal", &journal[..journal.len() / 2]);
    std::fs::remove_file(place.path("photos/0003.png")).unwrap();
    let words = "image 3 was photos/0003.png and is now photos/0004.png";
    place.refused(&[&arguments[..], &["--resume"]].concat(), 1, words);
}

/// The journal of a run that was stopped by a second Ctrl-C while it made its output.
fn whole_journal(place: &Place, arguments: &[&str]) -> Vec<u8> {
    let output = place.path("cut.csv");
    std::fs::remove_file(&output).unwrap();
    std::fs::remove_file(place.path("cut.csv.job.json")).unwrap();
    // The output cannot be made where a folder of its name appears meanwhile; the journal stays.
    let mut child = place.label(arguments).stderr(std::process::Stdio::null()).spawn().unwrap();
    while !place.path("cut.csv.journal").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::fs::create_dir(&output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    std::fs::remove_dir(&output).unwrap();
    place.read("cut.csv.journal")
}

#[test]
fn a_complete_run_needs_no_resuming() {
    let place = Place::new();
    place.images("photos", 10);
    let arguments = ["--input", "photos", "--output", "a.csv"];
    // Where there is nothing to go on with, --resume starts; a scheduler can always pass it.
    place.ok(&[&arguments[..], &["--resume"]].concat());
    let first = place.text("a.csv");
    let again = place.run([&["--model", "model.onnx"], &arguments[..], &["--resume", "--json"]].concat());
    assert_eq!(json(&again.ok())["images"], 10);
    assert_eq!(place.text("a.csv"), first);
    place.refused(&[&arguments[..], &["--resume", "--probabilities"]].concat(), 1, "made with other settings");
}
