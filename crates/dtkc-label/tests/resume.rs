//! Interrupted runs: what they leave, and that the resumed result is that of an undisturbed run.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{ExitStatus, Stdio};

use common::{Place, column, json, refused};
use dtkc_label::journal::Reader;
use dtkc_testing::{Said, wait_until};

/// Images that a list on standard input names; behind them comes a dataset of as many.
const LISTED: usize = 120;

/// The list comes first: a run that waits for the next line of it cannot end before it is interrupted, however fast
/// the machine is.
fn arguments(output: &str) -> Vec<&str> {
    vec!["--input", "-", "set.h5", "--batch", "1", "--threads", "1", "--probabilities", "--output", output]
}

fn place() -> Place {
    let place = Place::new();
    place.dataset("set.h5", LISTED);
    place.images("photos", LISTED);
    place.write("photos/0020.png", "damaged");
    place
}

/// Lines of the list.
fn lines(range: std::ops::Range<usize>) -> String {
    range.map(|number| format!("photos/{number:04}.png\n")).collect()
}

/// A run of its own to the end.
fn whole(place: &Place, output: &str, more: &[&str]) -> Said {
    place.ok_with_input(&[&arguments(output)[..], more].concat(), &lines(0..LISTED))
}

/// Rows in the journal of an output.
fn rows_kept(place: &Place, output: &str) -> usize {
    let Ok(mut journal) = Reader::open(&place.path(output)) else { return 0 };
    std::iter::from_fn(|| journal.next_block().unwrap()).map(|block| block.len()).sum()
}

/// Starts the program, gives it the first lines of the list and sends a signal once they are in the journal.
fn interrupt(place: &Place, output: &str, more: &[&str], signal: &str, listed: usize) -> ExitStatus {
    let mut command = place.label(&arguments(output));
    let mut child = command.args(more).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut list = child.stdin.take().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    list.write_all(lines(0..listed).as_bytes()).unwrap();
    wait_until("the images are in the journal", || rows_kept(place, output) == listed);
    let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    // It says so when it has heard; the next image is where it stops. Killed, it says nothing and reads no more.
    assert_eq!(said.any(|line| line.starts_with("stopping at the next safe place")), signal == "-INT");
    let _ = list.write_all(lines(listed..LISTED).as_bytes());
    child.wait().unwrap()
}

/// Goes on with a run to the end.
fn complete(place: &Place, output: &str, more: &[&str]) {
    whole(place, output, &[more, &["--resume"]].concat());
    assert!(!place.path(&format!("{output}.journal")).exists());
    assert!(!place.path(&format!("{output}.journal-pixels")).exists());
}

#[test]
fn ctrl_c_leaves_a_valid_file_and_resume_completes_it() {
    let place = place();
    for ending in ["csv", "jsonl", "parquet"] {
        let (undisturbed, output) = (format!("whole.{ending}"), format!("cut.{ending}"));
        whole(&place, &undisturbed, &[]);
        let status = interrupt(&place, &output, &[], "-INT", 70);
        assert_eq!(status.code(), Some(130), "{ending}");
        // What is there can be read and is the beginning of the whole.
        let beginning = place.read(&output);
        if ending != "parquet" {
            assert!(!beginning.is_empty() && place.read(&undisturbed).starts_with(&beginning), "{ending}");
            assert_eq!(beginning.last(), Some(&b'\n'));
        } else {
            let file = std::fs::File::open(place.path(&output)).unwrap();
            let reader = parquet::file::serialized_reader::SerializedFileReader::new(file).unwrap();
            let rows = parquet::file::reader::FileReader::metadata(&reader).file_metadata().num_rows();
            assert!(rows > 0 && rows < 2 * LISTED as i64, "{rows}");
        }
        assert!(place.text(&format!("{output}.job.json")).contains("\"interrupted\""));
        complete(&place, &output, &[]);
        assert!(place.read(&output) == place.read(&undisturbed), "{ending}");
        assert!(place.text(&format!("{output}.job.json")).contains("\"complete\""));
        let failed = place.text(&format!("{output}.failed.csv"));
        assert_eq!(column(&failed, "path"), ["photos/0020.png"]);
    }
}

#[test]
fn kill_after_kill_loses_nothing() {
    let place = place();
    whole(&place, "whole.csv", &[]);
    for round in 0..3 {
        let more: &[&str] = if round == 0 { &[] } else { &["--resume"] };
        let status = interrupt(&place, "cut.csv", more, "-KILL", 30 * (round + 1));
        assert_eq!(status.code(), None, "killed by a signal");
        assert!(!place.path("cut.csv").exists(), "whole or not at all");
    }
    complete(&place, "cut.csv", &[]);
    assert!(place.text("cut.csv") == place.text("whole.csv"));
}

#[test]
fn datasets_resume_too() {
    let place = place();
    whole(&place, "whole.h5", &[]);
    interrupt(&place, "cut.h5", &[], "-KILL", 40);
    assert_eq!(interrupt(&place, "cut.h5", &["--resume"], "-INT", 80).code(), Some(130));
    let part = place.open("cut.h5");
    assert!(!part.is_empty() && part.len() < 2 * LISTED - 1);
    drop(part);
    complete(&place, "cut.h5", &[]);
    let (whole, cut) = ["whole.h5", "cut.h5"].map(|name| place.open(name)).into();
    assert_eq!(whole.len(), 2 * LISTED - 1);
    assert_eq!(whole.fingerprint().unwrap(), cut.fingerprint().unwrap());
    assert_eq!(whole.paths(0..whole.len()).unwrap(), cut.paths(0..cut.len()).unwrap());
    assert!(place.read("whole.h5") == place.read("cut.h5"), "to the byte");
}

#[test]
fn a_gallery_counts_what_was_done_before_the_interruption() {
    let place = place();
    whole(&place, "whole.csv", &["--gallery", "whole.html"]);
    interrupt(&place, "cut.csv", &["--gallery", "cut.html"], "-INT", 100);
    assert!(!place.path("cut.html").exists());
    complete(&place, "cut.csv", &["--gallery", "cut.html"]);
    assert!(place.text("cut.html") == place.text("whole.html"));
}

#[test]
fn an_unfinished_run_is_neither_overwritten_nor_mixed() {
    let place = place();
    interrupt(&place, "cut.csv", &[], "-KILL", 20);
    place.refused(&arguments("cut.csv"), 1, "add --resume");
    let other = [&arguments("cut.csv")[..], &["--resume", "--min-confidence", "0.5"]].concat();
    place.refused(&other, 1, "min_confidence was null and is now 0.5");
    place.write("model.onnx", common::model(4));
    place.refused(&[&arguments("cut.csv")[..], &["--resume"]].concat(), 1, "model_sha256 was");
}

#[test]
fn a_changed_input_is_noticed() {
    let place = place();
    interrupt(&place, "cut.csv", &[], "-KILL", 20);
    let without_one = lines(0..3) + &lines(4..LISTED);
    let said = place.label_with_input(&[&arguments("cut.csv")[..], &["--resume"]].concat(), &without_one);
    refused(said, 1, "item 3 was photos/0003.png and is now photos/0004.png");
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
