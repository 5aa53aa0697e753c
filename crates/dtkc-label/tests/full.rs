//! A full disk and a closed pipe.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Place, stderr};

/// The limit of a file's size stands in for a full disk: a write beyond it fails, in the same places.
fn limited(place: &Place, blocks: usize, arguments: &str) -> std::process::Output {
    let program = assert_cmd::cargo::cargo_bin("dtkc-label");
    // The signal would end the program before it can say anything; ignored, the write fails.
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {} {arguments}", program.display());
    let mut command = std::process::Command::new("bash");
    command.current_dir(place.folder.path()).args(["-c", &script]).output().unwrap()
}

#[test]
fn a_file_that_cannot_be_written_is_told_in_one_sentence_and_can_be_resumed() {
    for output in ["out.csv", "out.jsonl", "out.parquet", "out.h5"] {
        let place = Place::new();
        place.images("photos", 600);
        place.write("photos/0007.png", "no image");
        let arguments =
            format!("--model model.onnx --input photos --quiet --output {output} --probabilities --embedding");
        // Nothing at all, the journal, and the output that is made from it: 1 KiB blocks.
        for blocks in [0, 1, 30, 60, 90] {
            let run = limited(&place, blocks, &format!("{arguments} --resume"));
            let text = stderr(&run);
            if run.status.success() {
                continue;
            }
            assert_eq!(run.status.code(), Some(1), "{blocks} {output}: {text}");
            assert_eq!(text.lines().count(), 1, "{blocks} {output}: {text}");
            let told = ["File too large", "larger than the system allows"].iter().any(|words| text.contains(words));
            assert!(text.contains("out.") && told, "{blocks} {output}: {text}");
            assert!(!place.path(output).exists());
        }
        let words: Vec<&str> = arguments.split(' ').chain(["--resume"]).collect();
        place.program().args(words).assert().success();
        let fresh = Place::new();
        fresh.images("photos", 600);
        fresh.write("photos/0007.png", "no image");
        fresh.program().args(arguments.split(' ')).assert().success();
        if output != "out.h5" {
            assert!(place.read(output) == fresh.read(output), "{output}");
        }
    }
}

#[test]
fn a_full_standard_output_is_an_error_and_a_closed_one_is_not() {
    let place = Place::new();
    place.images("photos", 300);
    let program = assert_cmd::cargo::cargo_bin("dtkc-label");
    let run = |redirection: &str| {
        let script = format!(
            "set -o pipefail; {} --model model.onnx --input photos --quiet --output - --batch 1 {redirection}",
            program.display()
        );
        let mut command = std::process::Command::new("bash");
        command.current_dir(place.folder.path()).args(["-c", &script]).output().unwrap()
    };
    let full = run(">/dev/full");
    assert_eq!(full.status.code(), Some(1));
    assert_eq!(stderr(&full), "error: standard output cannot be written (the disk is full); free some space\n");
    let closed = run("| head -1");
    assert!(closed.status.success());
    assert_eq!(stderr(&closed), "");
    assert!(common::stdout(&closed).starts_with("index,path"));
}
