//! `dtkc-data synth`.
#![allow(clippy::unwrap_used)]

mod import_support;

use import_support::{Work, labels};

#[test]
fn a_larger_set_begins_with_the_smaller_one() {
    let work = Work::new();
    let small = work.made(&["synth", "--kind", "glyphs", "--count", "30", "--seed", "5", "--out", "a.h5"], "a.h5");
    let large = work.made(&["synth", "--count", "2100", "--seed", "5", "--out", "b.h5"], "b.h5");
    assert_eq!(small.read_range(0..30).unwrap(), large.read_range(0..30).unwrap());
    assert_eq!(labels(&small), labels(&large)[..30]);
    assert_eq!(small.image_shape().unwrap().to_string(), "28x28x1");
    assert_eq!(small.label_names().unwrap().unwrap()[..3], ["ring", "cross", "triangle"]);
    let mut counts = [0; 10];
    labels(&large).iter().for_each(|&l| counts[l as usize] += 1);
    assert_eq!(counts, [210; 10]);
}

#[test]
fn seeds_and_threads() {
    let work = Work::new();
    let one = work.made(&["synth", "--count", "50", "--seed", "1", "--out", "a.h5"], "a.h5");
    let two = work.made(&["synth", "--count", "50", "--seed", "2", "--out", "b.h5"], "b.h5");
    assert_ne!(one.fingerprint().unwrap(), two.fingerprint().unwrap());
    let mut alone = assert_cmd::Command::cargo_bin("dtkc-data").unwrap();
    alone.env("RAYON_NUM_THREADS", "1").current_dir(work.path(""));
    alone.args(["synth", "--count", "50", "--seed", "1", "--out", "c.h5"]).assert().success();
    assert_eq!(std::fs::read(work.path("a.h5")).unwrap(), std::fs::read(work.path("c.h5")).unwrap());
}

#[test]
fn sizes_and_faults() {
    let work = Work::new();
    let dataset = work.made(&["synth", "--count", "10", "--size", "20x36", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.image_shape().unwrap().to_string(), "20x36x1");
    assert!(work.fails(&["synth", "--size", "8x8", "--out", "b.h5"], "b.h5", 2).contains("12x12"));
    assert_eq!(work.run(&["synth", "--kind", "faces", "--out", "b.h5"]).code, 2);
    assert_eq!(work.run(&["synth", "--count", "0", "--out", "b.h5"]).code, 2);
    assert_eq!(work.run(&["synth", "--out", "gone/b.h5"]).code, 1);
}
