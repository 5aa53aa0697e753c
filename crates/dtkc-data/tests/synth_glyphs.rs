//! `dtkc-data synth`.
#![allow(clippy::unwrap_used)]

use dtkc_testing::{Place, labels};

#[test]
fn a_larger_set_begins_with_the_smaller_one() {
    let place = Place::of("dtkc-data");
    let small = place.made(&["synth", "--kind", "glyphs", "--count", "30", "--seed", "5", "--out", "a.h5"], "a.h5");
    let large = place.made(&["synth", "--count", "2100", "--seed", "5", "--out", "b.h5"], "b.h5");
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
    let place = Place::of("dtkc-data");
    let one = place.made(&["synth", "--count", "50", "--seed", "1", "--out", "a.h5"], "a.h5");
    let two = place.made(&["synth", "--count", "50", "--seed", "2", "--out", "b.h5"], "b.h5");
    assert_ne!(one.fingerprint().unwrap(), two.fingerprint().unwrap());
    let mut alone = place.command();
    alone.env("RAYON_NUM_THREADS", "1").args(["synth", "--count", "50", "--seed", "1", "--out", "c.h5"]);
    assert!(alone.status().unwrap().success());
    assert!(place.read("a.h5") == place.read("c.h5"));
}

#[test]
fn sizes_and_faults() {
    let place = Place::of("dtkc-data");
    let dataset = place.made(&["synth", "--count", "10", "--size", "20x36", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.image_shape().unwrap().to_string(), "20x36x1");
    assert!(place.fails(&["synth", "--size", "8x8", "--out", "b.h5"], 2).contains("12x12"));
    assert_eq!(place.run(["synth", "--kind", "faces", "--out", "b.h5"]).code, 2);
    assert_eq!(place.run(["synth", "--count", "0", "--out", "b.h5"]).code, 2);
    assert_eq!(place.run(["synth", "--out", "gone/b.h5"]).code, 1);
}
