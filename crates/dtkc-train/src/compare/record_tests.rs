//! What is left to do, what is refused, and the record on the disk.
#![allow(clippy::unwrap_used)]

use super::*;

fn cell(words: &str) -> Cell {
    Cell {
        set: "a".into(),
        variant: "dtkc".parse().unwrap(),
        data: "a.h5".into(),
        settings: words.split(' ').map(str::to_owned).collect(),
        restarts: 2,
    }
}

/// A place in which the cell is in this state, with these files of its run.
fn place(root: &Path, state: State, files: &[&str]) -> Place {
    let mut place = Place::open(root).unwrap();
    place.record.add_sets(&[SetRecord::named("a")]).unwrap();
    place.record.add_cells(&[cell("--epochs 2")]);
    place.record.change(&cell(""), |known| known.state = state);
    let folder = cell("").folder(root);
    std::fs::create_dir_all(&folder).unwrap();
    files.iter().for_each(|name| std::fs::write(folder.join(name), "x").unwrap());
    place
}

#[test]
fn what_is_left_depends_on_what_is_there() {
    let left = |state: State, files: &[&str], asked: Cell| {
        let folder = tempfile::tempdir().unwrap();
        place(folder.path(), state, files).left(&asked)
    };
    let (config, both) = (&["config.toml"][..], &["config.toml", "summary.json"][..]);
    assert_eq!(left(State::Waiting, &[], cell("--epochs 2")), Some(Begin::New));
    assert_eq!(left(State::Begun, config, cell("--epochs 2")), Some(Begin::Resume));
    assert_eq!(left(State::Failed("x".into()), config, cell("--epochs 2")), Some(Begin::Resume));
    assert_eq!(left(State::Failed("x".into()), both, cell("--epochs 2")), Some(Begin::Resume));
    assert_eq!(left(State::Done, both, cell("--epochs 2")), None);
    assert_eq!(left(State::Done, both, cell("--epochs 3")), Some(Begin::Anew));
    assert_eq!(left(State::Done, both, Cell { restarts: 3, ..cell("--epochs 2") }), Some(Begin::Resume));
    assert_eq!(left(State::Done, both, Cell { restarts: 1, ..cell("--epochs 2") }), None, "more is there");
    assert_eq!(left(State::Done, &[], cell("--epochs 2")), Some(Begin::New), "its folder was removed");
}

#[test]
fn other_settings_are_refused_where_something_would_be_lost() {
    let said = |state: State, files: &[&str], force: bool| {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path(), state, files);
        place.record.check_settings(place.root(), &[cell("--epochs 3 --set x=1")], force).map_err(|e| e.to_string())
    };
    let text = said(State::Done, &[], false).unwrap_err();
    assert!(text.contains("(--epochs 2 then, --epochs 3 --set x=1 now)") && text.contains("--force"), "{text}");
    assert!(said(State::Begun, &[], false).is_err());
    assert!(said(State::Failed("export".into()), &["summary.json"], false).is_err(), "it is trained");
    assert_eq!(said(State::Failed("x".into()), &[], false), Ok(()));
    assert_eq!(said(State::Done, &[], true), Ok(()));
}

#[test]
fn the_record_comes_back_and_foreign_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("cmp");
    let made = place(&root, State::Failed("one \"sentence\"".into()), &[]);
    made.save().unwrap();
    let held = Place::open(&root).unwrap_err().to_string();
    assert!(held.contains("another process"), "{held}");
    let record = made.record.clone();
    drop(made);
    assert_eq!(Place::open(&root).unwrap().record, record);
    std::fs::write(folder.path().join("thesis.tex"), "x").unwrap();
    let text = Place::open(folder.path()).unwrap_err().to_string();
    assert!(text.contains("other files and no comparison"), "{text}");
    assert!(Place::open(&folder.path().join("thesis.tex")).unwrap_err().to_string().contains("is a file"));
    assert!(Record::read(folder.path()).unwrap_err().to_string().contains("holds no comparison"));
}

#[test]
fn another_content_under_the_same_name_is_refused() {
    let mut record = Record::default();
    record.add_sets(&[SetRecord::named("a")]).unwrap();
    let moved = SetRecord { path: "elsewhere/a.h5".into(), ..SetRecord::named("a") };
    record.add_sets(std::slice::from_ref(&moved)).unwrap();
    assert_eq!(record.sets, [moved]);
    let other = SetRecord { fingerprint: "other".into(), ..SetRecord::named("a") };
    let text = record.add_sets(&[other]).unwrap_err().to_string();
    assert!(text.contains("a.h5 is not the dataset a"), "{text}");
}

#[test]
fn a_cell_keeps_its_name_in_other_words() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &str| Cell { variant: name.parse().unwrap(), ..cell("--epochs 2") };
    let mut record = Record::default();
    record.add_cells(&[named("dec+lambda=0.1+tolerance=0"), named("dec"), named("dec+tolerance=0+loss.lambda=0.1")]);
    assert_eq!(record.cells.len(), 2, "the same changes twice are one cell");
    let mut asked = [named("dec+tolerance=0+loss.lambda=0.1")];
    record.name_as_known(&mut asked);
    assert_eq!(asked[0].folder(folder.path()), folder.path().join("a/dec+lambda=0.1+tolerance=0"));
}

#[test]
fn a_record_of_methods_alone_is_read() {
    let text = r#"{"sets": [], "spent_seconds": 1.5, "cells": [{"set": "a", "method": "idec", "settings": ["--no-prune"],
        "restarts": 2, "pretrained_by": "dec", "state": "done"}]}"#;
    let record: Record = serde_json::from_str(text).unwrap();
    let known = record.cell("a", &"idec".parse().unwrap()).unwrap();
    assert!(known.variant.is_plain() && known.pretrained_by == Some("dec".parse().unwrap()));
    assert!(serde_json::to_string(&record).unwrap().contains(r#""method":"idec""#));
}
