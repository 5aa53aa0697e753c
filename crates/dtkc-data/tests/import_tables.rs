//! `dtkc-data import` of sequences in tables, NumPy arrays and sounds.
#![allow(clippy::unwrap_used)]

use dtkc_dataset::Dataset;
use dtkc_testing::files::{gz, tar, zip};
use dtkc_testing::{Place, labels, paths};

const LONG: &str = "id,time,x,y,label\na,0,1,2,up\na,1,3,4,up\nb,0,5,6,down\n";
const WIDE: &str = "label,x0,x1,y0,y1\nup,1,3,2,4\ndown,5,,6,\n";

/// Both tables, and the files below, hold the same sequences.
fn check(dataset: &Dataset) {
    assert_eq!((dataset.len(), dataset.shape().dim()), (2, Some(2)));
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["down", "up"]);
    let up = labels(dataset).iter().position(|&label| label == 1).unwrap();
    assert_eq!(dataset.read_sequence(up).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(dataset.read_sequence(1 - up).unwrap(), [5.0, 6.0]);
}

#[test]
fn tables_are_known_by_their_columns() {
    let place = Place::of("dtkc-data");
    place.write("long.csv", LONG);
    place.write("wide.csv.gz", gz(WIDE.as_bytes()));
    let long = place.made(&["import", "long.csv", "--out", "a.h5"], "a.h5");
    check(&long);
    assert_eq!(paths(&long), ["a", "b"]);
    check(&place.made(&["import", "wide.csv.gz", "--out", "b.h5"], "b.h5"));
    let said = place.run(["import", "long.csv", "--out", "a.h5", "--force"]).ok();
    assert!(said.contains("note: sequence: id, time: time, class: label, values: x, y"), "{said}");
}

#[test]
fn a_table_that_could_be_either_asks() {
    let place = Place::of("dtkc-data");
    place.write("bare.csv", "1,2,3\n1,4,5\n2,6,7\n");
    let error = place.fails(&["import", "bare.csv", "--out", "a.h5"], 2);
    for flag in ["--format csv-wide", "--format csv-long --id-column", "--format csv-each", "--dim"] {
        assert!(error.contains(flag), "{error}");
    }
    let import = |flags: &str| {
        let line = format!("import bare.csv --out a.h5 --force {flags}");
        place.run(line.split_whitespace()).ok();
        let dataset = place.open("a.h5");
        (dataset.sequence_lengths().unwrap(), dataset.shape().dim().unwrap(), dataset.has_labels())
    };
    assert_eq!(import("--id-column 1"), (vec![2, 1], 2, false));
    assert_eq!(import("--format csv-wide"), (vec![3, 3, 3], 1, false));
    assert_eq!(import("--format csv-wide --label-column 1 --dim 2"), (vec![1, 1, 1], 2, true));
    assert_eq!(import("--format csv-each"), (vec![3], 3, false));
    let error = place.fails(&["import", "bare.csv", "--id-column", "9", "--out", "b.h5"], 1);
    assert!(error.contains("no column '9' (--id-column); there are columns 1 to 3"), "{error}");
}

#[test]
fn files_of_one_sequence_lie_in_folders_that_are_classes() {
    let place = Place::of("dtkc-data");
    let files: &[(&str, &str)] = &[
        ("set/up/1.csv", "time,x,y\n0,1,2\n1,3,4\n"),
        ("set/down/2.csv", "5,6\n"),
        ("set/up/odd.csv", "1,2,3\n"),
        ("set/up/bad.csv", "1,2\n3\n"),
        ("set/up/empty.csv", ""),
        ("set/up/notes.txt", "hello"),
    ];
    files.iter().for_each(|(name, text)| drop(place.write(name, text)));
    place.write("set.zip", zip(files));
    place.write("set.tar.gz", gz(&tar(files)));
    for source in ["set", "set.zip", "set.tar.gz"] {
        let said = place.run(["import", source, "--out", "a.h5", "--force"]).ok();
        assert!(said.contains("skipped: 3 sequences") && said.contains("passed over: 1 file"), "{source}: {said}");
        check(&place.open("a.h5"));
        let list = place.text("a.h5.skipped.csv");
        for part in [
            "odd.csv,other_dimension,\"it has 3 values a step, the first file has 2\"",
            "bad.csv,bad_table,line 2 has 1 columns instead of 2",
            "empty.csv,",
        ] {
            assert!(list.contains(part), "{source} {part}: {list}");
        }
    }
    place.write("train.csv", LONG);
    place.write("test.csv", LONG.replace(",up", ",left").replace(",down", ",right"));
    let both = place.made(&["import", "train.csv", "test.csv", "--out", "b.h5"], "b.h5");
    assert_eq!(both.label_names().unwrap().unwrap(), ["down", "left", "right", "up"]);
    assert_eq!(paths(&both), ["train.csv/a", "train.csv/b", "test.csv/a", "test.csv/b"]);
}

#[test]
fn a_missing_value_in_a_table_is_told_with_its_sequence() {
    let place = Place::of("dtkc-data");
    place.write("long.csv", LONG.replace("a,1,3,4", "a,1,,4"));
    let error = place.fails(&["import", "long.csv", "--out", "a.h5"], 1);
    assert!(error.contains("long.csv: in sequence 1, counted from 1, 1 of 4 values is missing"), "{error}");
    let dataset = place.made(&["import", "long.csv", "--missing", "fill", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.read_sequence(0).unwrap(), [1.0, 2.0, 1.0, 4.0]);
}

/// A .npy file.
fn npy(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    [b"\x93NUMPY\x01\x00\x76\x00".as_slice(), format!("{header:<117}\n").as_bytes(), bytes].concat()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn integers(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn numpy_files_hold_sequences_in_three_ways() {
    let place = Place::of("dtkc-data");
    let values = npy("<f4", "(3, 2)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let offsets = npy("<i8", "(3,)", &integers(&[0, 2, 3]));
    let words = npy("|S4", "(2,)", b"up\0\0down");
    place.write("p.npz", zip(&[("values.npy", &values), ("offsets.npy", &offsets), ("labels.npy", &words)]));
    check(&place.made(&["import", "p.npz", "--out", "a.h5"], "a.h5"));
    let padded = npy("<f4", "(2, 2, 2)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, f32::NAN, f32::NAN]));
    place.write("x.npz", zip(&[("x.npy", &padded), ("y.npy", &words)]));
    check(&place.made(&["import", "x.npz", "--sequences", "--out", "a.h5"], "a.h5"));
    place.write("n/x.npy", &padded);
    let dataset = place.made(&["import", "n/x.npy", "--sequences", "--out", "a.h5"], "a.h5");
    assert_eq!((dataset.sequence_lengths().unwrap(), dataset.has_labels()), (vec![2, 1], false));
    place.write("o.npy", npy("|O", "(3,)", b"\x80\x03]q\x00."));
    let error = place.fails(&["import", "o.npy", "--out", "b.h5"], 1);
    assert!(error.contains("a pickle") && error.contains("numpy.savez('x.npz', values="), "{error}");
}

#[test]
fn faults_of_numpy_files_are_one_sentence() {
    let place = Place::of("dtkc-data");
    let values = npy("<f4", "(3, 2)", &floats(&[0.0; 6]));
    for (offsets, shape, words) in [
        (&[0, 2, 4][..], "(3,)", "must lead from 0 to the 3 rows"),
        (&[0, 2, 1, 3][..], "(4,)", "must lead from 0 to the 3 rows"),
        (&[0, -2, 3][..], "(3,)", "a list of whole numbers"),
        (&[0, 3][..], "(99999999999,)", "has 99999999999 numbers"),
        (&[0, 3][..], "(3,)", "cut off"),
    ] {
        let offsets = npy("<i8", shape, &integers(offsets));
        place.write("p.npz", zip(&[("values.npy", &values), ("offsets.npy", &offsets)]));
        let error = place.fails(&["import", "p.npz", "--out", "a.h5"], 1);
        assert!(error.contains(words), "{error}");
    }
    for (shape, words) in [
        ("(2, 2, 2)", "after 0 of 2 sequences"),
        ("(2, 0, 2)", "sequences of 0 values"),
        ("(9, 9999999, 9999999)", "sequences of 99999980000001 values"),
        ("(2,)", "save [n, time, dim]"),
        ("(2, 2, 2, 2)", "save [n, time, dim]"),
    ] {
        place.write("x.npy", npy("<f4", shape, &floats(&[1.0; 3])));
        let error = place.fails(&["import", "x.npy", "--sequences", "--out", "a.h5"], 1);
        assert!(error.contains(words), "{error}");
    }
}

/// A WAV file of 16 bits and 8000 samples a second.
fn wav(samples: &[i16]) -> Vec<u8> {
    let data: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let size = (data.len() as u32 + 36).to_le_bytes();
    let format = [1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0];
    let length = (data.len() as u32).to_le_bytes();
    [b"RIFF".as_slice(), &size[..], b"WAVEfmt \x10\0\0\0", &format, b"data", &length, &data].concat()
}

#[test]
fn sounds_become_spectra() {
    let place = Place::of("dtkc-data");
    let tone: Vec<i16> = (0..800).map(|i| if i / 8 % 2 == 0 { 9000 } else { -9000 }).collect();
    place.write("s/low/1.wav", wav(&tone));
    place.write("s/high/2.wav", wav(&tone[..100]));
    place.write("s/high/bad.wav", &wav(&tone)[..300]);
    place.write("s/readme.txt", "hello");
    let said = place.run(["import", "s", "--out", "a.h5"]).ok();
    assert!(said.contains("2 sequences of 129 dimensions") && said.contains("skipped: 1 sequence,"), "{said}");
    assert!(said.contains("windows of 25 ms, one every 10 ms"), "{said}");
    let dataset = place.open("a.h5");
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["high", "low"]);
    assert_eq!(dataset.sequence_lengths().unwrap(), [1, 8]);
    // A square wave of 500 Hz: bin 16 of 256 at 8000 samples a second is the greatest.
    let step = &dataset.read_sequence(1).unwrap()[..129];
    assert_eq!(step.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0, 16);
    place.run("import s --sound mfcc --window 50 --hop 20 --out b.h5".split_whitespace()).ok();
    let dataset = place.open("b.h5");
    assert_eq!((dataset.shape().dim(), dataset.sequence_lengths().unwrap()), (Some(13), vec![1, 3]));
    let error = place.fails(&["import", "s", "--window", "0", "--out", "c.h5"], 2);
    assert!(error.contains("milliseconds"), "{error}");
    place.run(["preview", "a.h5", "--out", "a.png"]).ok();
}
