//! The output does not depend on batch size, threads, shards or the way it was put together.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Place, column, refused};

const EXTRAS: [&str; 4] = ["--probabilities", "--embedding", "--min-confidence", "0.5"];

fn place() -> Place {
    let place = Place::new();
    place.dataset("set.h5", 500);
    place.images("photos", 150);
    place.write("photos/0075.png", "no image");
    place.write("photos/0149.png", "");
    place
}

#[test]
fn batch_size_and_threads_do_not_matter() {
    let place = place();
    let common = [&["--input", "set.h5", "photos", "--truth"], &EXTRAS[..]].concat();
    place.ok(&[&common[..], &["--output", "a.csv"]].concat());
    let expected = place.text("a.csv");
    assert_eq!(column(&expected, "index").len(), 650);
    for (batch, threads) in [("1", "1"), ("2", "2"), ("7", "3"), ("64", "1"), ("1000", "2")] {
        place.ok(&[&common[..], &["--output", "b.csv", "--batch", batch, "--threads", threads]].concat());
        assert!(place.text("b.csv") == expected, "batch {batch}, threads {threads}");
    }
}

#[test]
fn shards_merge_to_the_undivided_result_in_every_form() {
    let place = place();
    let common = [&["--input", "set.h5", "photos", "--truth"], &EXTRAS[..]].concat();
    for ending in ["csv", "jsonl", "parquet"] {
        let (whole, merged) = (format!("whole.{ending}"), format!("merged.{ending}"));
        place.ok(&[&common[..], &["--output", &whole]].concat());
        let parts: Vec<String> = (1..=3).map(|i| format!("part-{i}.{ending}")).collect();
        for (i, part) in parts.iter().enumerate() {
            let shard = format!("{}/3", i + 1);
            place.ok(&[&common[..], &["--output", part, "--shard", &shard, "--batch", "5"]].concat());
        }
        place.merge(&[&parts[2], &parts[0], &parts[1]], &merged);
        assert!(place.read(&merged) == place.read(&whole), "{ending}");
        assert_eq!(place.text(&format!("{merged}.failed.csv")), place.text(&format!("{whole}.failed.csv")));
        assert_eq!(place.text(&format!("{merged}.job.json")), place.text(&format!("{whole}.job.json")));
    }
    // Parts and whole may have different forms.
    place.merge(&["part-1.jsonl", "part-2.jsonl", "part-3.jsonl"], "x.csv");
    assert!(place.text("x.csv") == place.text("whole.csv"));
}

#[test]
fn shards_merge_as_datasets_too() {
    let place = place();
    let common = [&["--input", "set.h5", "photos", "--truth"], &EXTRAS[..]].concat();
    place.ok(&[&common[..], &["--output", "whole.h5"]].concat());
    for shard in ["1/2", "2/2"] {
        let part = format!("part-{}.h5", &shard[..1]);
        place.ok(&[&common[..], &["--output", &part, "--shard", shard]].concat());
    }
    place.merge(&["part-1.h5", "part-2.h5"], "merged.h5");
    let (whole, merged) =
        (hdf5::File::open(place.path("whole.h5")).unwrap(), hdf5::File::open(place.path("merged.h5")).unwrap());
    let mut names = whole.member_names().unwrap();
    names.sort();
    assert!(names.len() >= 14, "{names:?}");
    for name in names {
        let (a, b) = (whole.dataset(&name).unwrap(), merged.dataset(&name).unwrap());
        assert_eq!(a.shape(), b.shape(), "{name}");
        let descriptor = a.dtype().unwrap().to_descriptor().unwrap();
        if descriptor.to_string().contains("str") || descriptor.to_string().contains("unicode") {
            assert_eq!(texts(&a), texts(&b), "{name}");
        } else {
            assert_eq!(numbers(&a), numbers(&b), "{name}");
        }
    }
    drop((whole, merged));
    assert!(place.read("whole.h5") == place.read("merged.h5"), "to the byte");
    place.merge(&["part-1.h5", "part-2.h5"], "merged.csv");
    place.ok(&[&common[..], &["--output", "whole.csv"]].concat());
    let clusters = |name: &str| column(&place.text(name), "cluster");
    assert_eq!(clusters("merged.csv"), clusters("whole.csv"));
}

fn texts(dataset: &hdf5::Dataset) -> Vec<String> {
    dataset.read_raw::<hdf5::types::VarLenUnicode>().unwrap().iter().map(|t| t.to_string()).collect()
}

fn numbers(dataset: &hdf5::Dataset) -> Vec<f64> {
    dataset.read_raw::<f64>().unwrap()
}

#[test]
fn a_pattern_for_the_parts_may_match_their_lists_of_failures() {
    let place = place();
    place.ok(&["--input", "photos", "--output", "whole.csv"]);
    for shard in ["1", "2"] {
        let (part, number) = (format!("part-{shard}.csv"), format!("{shard}/2"));
        place.ok(&["--input", "photos", "--output", &part, "--shard", &number]);
    }
    let names = place.names();
    let names = names.iter().map(String::as_str);
    let parts: Vec<&str> = names.filter(|n| n.starts_with("part-") && n.ends_with(".csv")).collect();
    assert_eq!(parts.len(), 4, "two parts and two lists: {parts:?}");
    place.merge(&parts, "merged.csv");
    assert_eq!(place.text("merged.csv"), place.text("whole.csv"));
}

#[test]
fn a_wrong_set_of_parts_is_refused() {
    let place = place();
    for shard in ["1", "2", "3"] {
        let (part, number) = (format!("p{shard}.csv"), format!("{shard}/3"));
        place.ok(&["--input", "set.h5", "--output", &part, "--shard", &number]);
    }
    place.ok(&["--input", "set.h5", "--output", "q.csv", "--shard", "3/3", "--min-confidence", "0.9"]);
    place.ok(&["--input", "set.h5", "--output", "r.csv", "--shard", "1/2"]);
    std::fs::copy(place.path("p3.csv"), place.path("alone.csv")).unwrap();
    for (parts, reason) in [
        (&["p1.csv", "p2.csv"][..], "shard 3 of 3 is missing"),
        (&["p1.csv", "p2.csv", "p2.csv"], "shard 2/3 is there twice"),
        (&["p1.csv", "p2.csv", "q.csv"], "min_confidence was null and is now 0.9"),
        (&["p1.csv", "p2.csv", "r.csv"], "it is shard 1/2"),
        (&["p1.csv", "p2.csv", "alone.csv"], "alone.csv.job.json is missing"),
        (&["p1.csv", "p2.csv", "no.csv"], "no.csv"),
    ] {
        refused(place.run([&["merge", "--output", "all.csv"], parts].concat()), 1, reason);
        assert!(!place.path("all.csv").exists());
    }
    let merge = |output: &str| place.run(["merge", "p1.csv", "p2.csv", "p3.csv", "--output", output]);
    refused(merge("all.h5"), 1, "it has no images in it");
    // A part that lost its end is noticed.
    let text = place.text("p2.csv");
    let short: String = text.lines().take(20).map(|line| format!("{line}\n")).collect();
    place.write("p2.csv", short);
    refused(merge("all.csv"), 1, "no part has row");
    assert!(!place.path("all.csv").exists());
}

/// Eight bytes differed: the time at which a set without images was made, and its checksum.
#[test]
fn equal_runs_give_equal_datasets() {
    let place = place();
    place.write("bad/1.png", "no image");
    for input in ["photos", "bad"] {
        let files = ["a.h5", "b.h5"].map(|output| {
            let said = place.label(&["--input", input, "--force", "--output", output]).output().unwrap();
            // A set of which no image can be labelled is written all the same.
            assert_eq!(said.status.success(), input == "photos");
            // The times in the file had whole seconds.
            std::thread::sleep(std::time::Duration::from_millis(1100));
            place.read(output)
        });
        assert!(files[0] == files[1], "{input}");
    }
}

#[test]
fn more_shards_than_images_give_empty_parts_that_merge() {
    let place = Place::new();
    place.images("photos", 70);
    place.ok(&["--input", "photos", "--output", "whole.csv"]);
    for ending in ["csv", "jsonl", "parquet", "h5"] {
        let parts: Vec<String> = (1..=4).map(|i| format!("part-{i}.{ending}")).collect();
        for (i, part) in parts.iter().enumerate() {
            place.ok(&["--input", "photos", "--output", part, "--shard", &format!("{}/4", i + 1)]);
        }
        place.merge(&parts.iter().map(String::as_str).collect::<Vec<_>>(), "merged.csv");
        assert!(place.text("merged.csv") == place.text("whole.csv"), "{ending}");
    }
}
