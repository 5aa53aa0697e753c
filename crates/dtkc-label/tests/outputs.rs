//! What the labeller refuses to write over, and who may write.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use common::{Place, column, png, refused, rows};
use dtkc_label::journal::Reader;
use dtkc_testing::{Said, files, wait_until};

fn place() -> Place {
    let place = Place::new();
    place.dataset("set.h5", 20);
    place.images("photos", 5);
    place.write("names.csv", "0,zero\n");
    std::fs::hard_link(place.path("set.h5"), place.path("hard.h5")).unwrap();
    std::os::unix::fs::symlink("set.h5", place.path("soft.h5")).unwrap();
    std::os::unix::fs::symlink("photos", place.path("way")).unwrap();
    place
}

/// Every file with its content.
fn contents(place: &Place) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for folder in [place.folder().to_owned(), place.path("photos")] {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        all.extend(files.map(|path| (path.clone(), std::fs::read(path).unwrap())));
    }
    all
}

/// `dtkc-label -i s.h5 -o s.h5` replaced the source, with exit code 0.
#[test]
fn an_input_is_never_replaced_however_it_is_spelled() {
    let place = place();
    let before = contents(&place);
    for (line, words) in [
        ("--input set.h5 --output set.h5", "is one of the inputs"),
        ("--input set.h5 --output ./photos/../set.h5", "is one of the inputs"),
        ("--input set.h5 --output hard.h5", "is one of the inputs"),
        ("--input set.h5 --output soft.h5", "is one of the inputs"),
        ("--input soft.h5 --output set.h5", "is one of the inputs"),
        ("--input photos --output photos/labels.csv", "lies in photos"),
        ("--input photos --output way/labels.csv", "lies in photos"),
        ("--input way --output photos/labels.csv", "lies in way"),
        ("--input photos --output labels.csv --gallery photos/page.html", "lies in photos"),
        ("--input photos --output labels.csv --failed model.onnx", "model.onnx is one of the inputs"),
        ("--input photos --output names.csv --names names.csv", "names.csv is one of the inputs"),
        ("--input photos/* --output photos/labels.csv", "matches a pattern"),
        ("--input *.h5 --output set.h5", "matches a pattern"),
        ("--input photos --output labels.csv --failed labels.csv", "two outputs would be the same file"),
        ("--input photos --output labels.csv --gallery ./labels.csv", "two outputs would be the same file"),
        ("--input photos --output labels.csv --gallery labels.csv.journal", "two outputs would be the same file"),
    ] {
        for force in [&[][..], &["--force"], &["--resume"]] {
            let arguments: Vec<&str> = line.split(' ').chain(force.iter().copied()).collect();
            place.refused(&arguments, 2, words);
            assert!(contents(&place) == before, "{line} {force:?} changed something");
        }
    }
    // A neighbour of what is read is nobody's input.
    place.ok(&["--input", "photos/0001.png", "--output", "photos/labels.csv"]);
    place.ok(&["--input", "photos/*.png", "--output", "photos/labels.csv"]);
}

/// What a list names is known only when it is read.
#[test]
fn an_input_that_a_list_names_is_not_replaced_either() {
    let place = place();
    let before = contents(&place);
    for list in ["photos/0001.png\nset.h5\n", "hard.h5\n", "photos/../soft.h5\n"] {
        let said = place.label_with_input(&["--input", "-", "--output", "set.h5", "--force"], list);
        refused(said, 2, "is one of the inputs and one of the outputs");
        assert!(contents(&place) == before, "{list}");
    }
}

#[test]
fn existing_outputs_need_force() {
    let place = place();
    let run =
        |more: &[&str]| place.label(&[&["--input", "photos", "--output", "out.csv"], more].concat()).output().unwrap();
    for (name, more) in
        [("out.csv", &[][..]), ("fail.csv", &["--failed", "fail.csv"]), ("page.html", &["--gallery", "page.html"])]
    {
        place.write(name, "precious");
        for resume in [&[][..], &["--resume"]] {
            let words = format!("{name} exists already; add --force to replace it");
            refused(run(&[more, resume].concat()).into(), 2, &words);
            assert_eq!(place.text(name), "precious");
        }
        assert!(run(&[more, &["--force"]].concat()).status.success());
        for made in ["out.csv", "out.csv.job.json"] {
            std::fs::remove_file(place.path(made)).unwrap();
        }
    }
}

#[test]
fn a_merge_replaces_no_part() {
    let place = place();
    for shard in ["1", "2"] {
        place.ok(&["--input", "set.h5", "--output", &format!("p{shard}.csv"), "--shard", &format!("{shard}/2")]);
    }
    let merge = |output: &str, more: &[&str]| -> Said {
        place.run([&["merge", "-q", "p1.csv", "p2.csv", "--output", output], more].concat())
    };
    std::fs::hard_link(place.path("p1.csv"), place.path("link.csv")).unwrap();
    let before = contents(&place);
    for output in ["p1.csv", "./p2.csv", "link.csv"] {
        refused(merge(output, &["--force"]), 2, "is one of the inputs");
    }
    refused(merge("all.csv", &["--failed", "p1.csv.job.json", "--force"]), 2, "is one of the inputs");
    refused(merge("all.csv", &["--gallery", "all.csv"]), 2, "two outputs");
    assert!(contents(&place) == before);
    merge("all.csv", &[]).ok();
    refused(merge("all.csv", &[]), 2, "all.csv exists already");
    merge("all.csv", &["--force"]).ok();
}

/// A run that waits for the rest of its list.
fn waiting(place: &Place) -> Child {
    let mut command = place.label(&["--input", "-", "--batch", "1", "--threads", "1", "--output", "out.csv"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"photos/0000.png\nphotos/0001.png\n").unwrap();
    wait_until("two rows are in the journal", || {
        let Ok(mut journal) = Reader::open(&place.path("out.csv")) else { return false };
        std::iter::from_fn(|| journal.next_block().unwrap()).map(|rows| rows.len()).sum::<usize>() == 2
    });
    child
}

/// A second run advised to delete the journal of the first.
#[test]
fn a_second_run_is_told_whose_the_output_is() {
    let place = place();
    let mut first = waiting(&place);
    let who = format!("out.csv.journal: another run is writing it (dtkc-label, process {} ", first.id());
    for more in [&[][..], &["--resume"], &["--force"]] {
        let said =
            place.label_with_input(&[&["--input", "-", "--output", "out.csv"], more].concat(), "photos/0000.png\n");
        refused(said, 1, &who);
    }
    first.stdin.take().unwrap().write_all(b"photos/0002.png\n").unwrap();
    assert!(first.wait().unwrap().success());
    assert_eq!(rows(&place.text("out.csv")).len(), 3);
    assert!(place.names().iter().all(|name| !name.starts_with('.')), "{:?}", place.names());
}

/// The first then reported success with rows missing.
#[test]
fn a_journal_that_vanished_is_an_error() {
    for replaced in [false, true] {
        let place = place();
        let mut child = waiting(&place);
        let bytes = place.read("out.csv.journal");
        std::fs::remove_file(place.path("out.csv.journal")).unwrap();
        if replaced {
            place.write("out.csv.journal", bytes);
        }
        child.stdin.take().unwrap().write_all(b"photos/0002.png\n").unwrap();
        let said: Said = child.wait_with_output().unwrap().into();
        refused(said, 1, "out.csv.journal was removed or replaced while this run was writing it");
        assert!(!place.path("out.csv").exists());
    }
}

#[test]
fn an_unfinished_run_can_be_started_over() {
    let place = place();
    let mut child = waiting(&place);
    child.kill().unwrap();
    child.wait().unwrap();
    place.refused(
        &["--input", "photos", "--output", "out.csv"],
        1,
        "--resume to go on with it, or --force to start over",
    );
    place.ok(&["--input", "photos", "--output", "out.csv", "--force"]);
    assert_eq!(rows(&place.text("out.csv")).len(), 5);
    let left: Vec<String> =
        place.names().into_iter().filter(|name| name.starts_with('.') || name.contains("journal")).collect();
    assert_eq!(left, [""; 0], "what was left of the killed run is gone");
}

/// A name that a spreadsheet would take for a formula is text there, and the name itself everywhere else.
#[test]
fn formulas_are_made_harmless_and_read_back_unchanged() {
    let place = Place::new();
    let names = ["=1+1.png", "+a.png", "-b.png", "@c.png", "'=d.png", "plain.png", "'e.png", "-bad.png"];
    for (number, name) in names.iter().enumerate() {
        let bytes = if name.contains("bad") { b"no image".to_vec() } else { png(number) };
        place.write(name, bytes);
    }
    place.write("names.json", r#"["=zero", "-one", "@two", "+three", "four"]"#);
    place.write("classes.zip", files::zip(&[("=cat/1.png", png(1)), ("-dog/1.png", png(2))]));
    let list = names.map(|name| format!("{name}\n")).concat();
    let label = |output: &str, more: &[&str]| {
        place.ok_with_input(&[&["--input", "-", "--names", "names.json", "--output", output], more].concat(), &list)
    };
    label("out.csv", &[]);
    label("out.jsonl", &[]);
    let text = place.text("out.csv");
    let expected = names.map(|name| {
        if name.starts_with(['=', '+', '-', '@']) || name == "'=d.png" { format!("'{name}") } else { name.into() }
    });
    assert_eq!(column(&text, "path"), expected);
    assert!(column(&text, "cluster_name").iter().all(|name| !name.starts_with(['=', '+', '-', '@'])), "{text}");
    assert_eq!(column(&place.text("out.csv.failed.csv"), "path"), ["'-bad.png"]);
    // Merging reads it back: the same rows as lines, and the same bytes again.
    place.merge(&["out.csv"], "merged.jsonl");
    assert!(place.text("merged.jsonl") == place.text("out.jsonl"));
    place.merge(&["out.csv"], "merged.csv");
    assert!(place.text("merged.csv") == text);
    // So does resuming: a complete output is read for its figures.
    let again = place.label_with_input(
        &["--input", "-", "--names", "names.json", "--output", "out.csv", "--resume", "--json"],
        &list,
    );
    assert_eq!(common::json(&again.ok())["images"], names.len());
    place.ok(&["--input", "classes.zip", "--truth", "--output", "truth.csv"]);
    assert_eq!(column(&place.text("truth.csv"), "truth"), ["'-dog", "'=cat"]);
    place.merge(&["truth.csv"], "truth.jsonl");
    assert!(place.text("truth.jsonl").contains(r#""truth":"-dog""#));
}
