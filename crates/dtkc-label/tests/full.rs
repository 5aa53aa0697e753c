//! A full disk and a closed pipe.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::Place;
use dtkc_testing::Said;

/// Runs a line of bash in the place's folder; `$LABEL` is the labeller.
fn bash(place: &Place, line: &str) -> Said {
    let mut command = std::process::Command::new("bash");
    command.current_dir(place.folder()).env("LABEL", dtkc_testing::program("dtkc-label"));
    command.args(["-c", line]).output().unwrap().into()
}

/// The limit of a file's size stands in for a full disk: a write beyond it fails, in the same places.
fn limited(place: &Place, blocks: usize, arguments: &str) -> Said {
    // The signal would end the program before it can say anything; ignored, the write fails.
    bash(place, &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$LABEL\" {arguments}"))
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
            let said = limited(&place, blocks, &format!("{arguments} --resume"));
            let text = &said.err;
            if said.code == 0 {
                continue;
            }
            assert_eq!(said.code, 1, "{blocks} {output}: {text}");
            assert_eq!(text.lines().count(), 1, "{blocks} {output}: {text}");
            let told = ["File too large", "larger than the system allows"].iter().any(|words| text.contains(words));
            assert!(text.contains("out.") && told, "{blocks} {output}: {text}");
            assert!(!text.contains(".partial"), "{blocks} {output}: {text}");
            assert!(!place.path(output).exists());
        }
        place.run_line(&format!("{arguments} --resume")).ok();
        let fresh = Place::new();
        fresh.images("photos", 600);
        fresh.write("photos/0007.png", "no image");
        fresh.run_line(&arguments).ok();
        assert!(place.read(output) == fresh.read(output), "{output}");
    }
}

/// The file on its way has a name that nobody else knows; errors of writing to it named it.
#[test]
fn an_output_that_cannot_be_joined_from_its_parts_is_called_by_its_name() {
    let place = Place::new();
    place.images("photos", 600);
    for number in 0..300 {
        place.write(&format!("photos/{number:04}.png"), "no image");
    }
    for ending in ["csv", "jsonl", "parquet", "h5"] {
        let parts = [1, 2].map(|shard| format!("{ending}-{shard}.{ending}"));
        for (part, shard) in parts.iter().zip(["1/2", "2/2"]) {
            place.ok(&["--input", "photos", "--shard", shard, "--embedding", "--probabilities", "--output", part]);
        }
        // Less than the file, less than the list of failures where that is larger, and nothing at all.
        for blocks in [0, 8, 16] {
            let said = limited(&place, blocks, &format!("merge -q --output all.{ending} {}", parts.join(" ")));
            let text = &said.err;
            assert!(said.code == 1 && text.lines().count() == 1, "{blocks} {ending}: {said:?}");
            assert!(text.contains(&format!("all.{ending}")) && !text.contains(".partial"), "{blocks} {ending}: {text}");
            assert!(!place.path(&format!("all.{ending}")).exists());
        }
    }
}

/// HDF5 put values off until a dataset was closed; where these did not fit on the disk, it broke down (signal 11).
#[test]
fn a_disk_that_is_full_near_the_end_of_a_dataset_is_an_error_like_any_other() {
    let place = Place::new();
    place.images("photos", 100);
    place.write("photos/0007.png", "no image");
    let arguments = "--model model.onnx --input photos --quiet --probabilities --embedding --output";
    place.run_line(&format!("{arguments} whole.h5")).ok();
    let size = std::fs::metadata(place.path("whole.h5")).unwrap().len() as usize / 1024;
    let mut failed = 0;
    for blocks in size / 3..=size + 1 {
        let said = limited(&place, blocks, &format!("{arguments} out.h5 --resume"));
        let text = &said.err;
        match said.code {
            0 => break,
            code => assert!(code == 1 && text.lines().count() == 1 && text.contains("out.h5"), "{blocks}: {said:?}"),
        }
        assert!(!place.path("out.h5").exists());
        failed += 1;
    }
    assert!(failed > 10, "{failed} of {size}");
    place.run_line(&format!("{arguments} out.h5 --resume")).ok();
    assert!(place.read("out.h5") == place.read("whole.h5"));
}

#[test]
fn a_full_standard_output_is_an_error_and_a_closed_one_is_not() {
    let place = Place::new();
    place.images("photos", 300);
    let label = "\"$LABEL\" --model model.onnx --input photos --quiet --output - --batch 1";
    let full = bash(&place, &format!("{label} >/dev/full"));
    assert_eq!(full.code, 1);
    assert_eq!(full.err, "error: standard output cannot be written (the disk is full); free some space\n");
    let closed = bash(&place, &format!("set -o pipefail; {label} | head -1"));
    assert_eq!((closed.code, closed.err.as_str()), (0, ""));
    assert!(closed.out.starts_with("index,path"));
}
