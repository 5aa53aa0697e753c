//! Every format, pixel type, orientation and way to resize, against Pillow and NumPy. The references are made
//! by fixtures/make.py.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use dtkc_image::{Limits, Preparer, probe};
use dtkc_item::{Color, ImageSpec, Resize};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    file: String,
    height: usize,
    width: usize,
    color: Color,
    resize: Resize,
    tolerance: u8,
    pixels: String,
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

fn cases() -> Vec<Case> {
    serde_json::from_slice(&fixture("expected.json")).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn pixels_follow_pillow() {
    let cases = cases();
    assert!(cases.len() > 100);
    for case in cases {
        let spec = ImageSpec { height: case.height, width: case.width, color: case.color, resize: case.resize };
        let found = Preparer::new(spec, Limits::default()).prepare(&fixture(&case.file)).unwrap();
        let expected = bytes(&case.pixels);
        assert_eq!(found.len(), expected.len(), "{}", case.file);
        let worst = found.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        let what = format!("{} as {}x{} {} {}", case.file, case.height, case.width, case.color, case.resize);
        assert!(worst <= case.tolerance, "{what}: off by {worst}\n{found:?}\n{expected:?}");
    }
}

#[test]
fn a_preparer_forgets_the_image_before() {
    let spec = ImageSpec { height: 9, width: 9, color: Color::Rgb, resize: Resize::Fit };
    let mut one_for_all = Preparer::new(spec, Limits::default());
    for case in cases() {
        let file = fixture(&case.file);
        let mut out = vec![7; spec.bytes()];
        one_for_all.prepare_into(&file, &mut out).unwrap();
        assert_eq!(out, Preparer::new(spec, Limits::default()).prepare(&file).unwrap(), "{}", case.file);
    }
}

#[test]
fn the_header_tells_size_and_channels() {
    let limits = Limits::default();
    for (file, width, height, channels) in [
        ("rgb.png", 5, 4, 3),
        ("rgba16.png", 5, 4, 4),
        ("gray_alpha.png", 5, 4, 2),
        ("gray.pgm", 5, 4, 1),
        ("turned1.png", 14, 9, 3),
        ("turned6.png", 14, 9, 3),
        ("turned.jpg", 24, 32, 3),
        ("gray.jpg", 32, 24, 1),
    ] {
        let probe = probe(&fixture(file), &limits).unwrap();
        assert_eq!((probe.width, probe.height, probe.channels), (width, height, channels), "{file}");
    }
}

#[test]
fn raw_pixels_give_what_a_file_gives() {
    for case in cases().iter().filter(|case| case.file == "wide.png") {
        let spec = ImageSpec { height: case.height, width: case.width, color: case.color, resize: case.resize };
        let whole = ImageSpec { height: 31, width: 57, color: Color::Rgb, resize: Resize::Stretch };
        let file = fixture("wide.png");
        let pixels = Preparer::new(whole, Limits::default()).prepare(&file).unwrap();
        let mut preparer = Preparer::new(spec, Limits::default());
        let mut out = vec![0; spec.bytes()];
        preparer.resize_pixels(&pixels, whole.shape(), &mut out).unwrap();
        assert_eq!(out, preparer.prepare(&file).unwrap());
    }
}
