//! HEIC and AVIF through libheif: pixels of pictures that are known by a formula (fixtures/heif/make.py), and what is refused.
#![cfg(feature = "heif")]
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use dtkc_image::{Limits, Preparer, probe};
use dtkc_item::{Color, ImageSpec, ItemError, Resize};
use proptest::prelude::*;

const HEIGHT: usize = 48;
const WIDTH: usize = 64;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/heif").join(name)).unwrap()
}

fn prepare(bytes: &[u8], [height, width]: [usize; 2], color: Color, limits: Limits) -> Result<Vec<u8>, ItemError> {
    let spec = ImageSpec { height, width, color, resize: Resize::Stretch };
    Preparer::new(spec, limits).prepare(bytes)
}

/// The largest difference from what a formula says of row, column and channel.
fn worst(pixels: &[u8], width: usize, channels: usize, expected: impl Fn(usize, usize, usize) -> f64) -> f64 {
    let one = |(at, &found): (usize, &u8)| {
        let (place, channel) = (at / channels, at % channels);
        (f64::from(found) - expected(place / width, place % width, channel)).abs()
    };
    pixels.iter().enumerate().map(one).fold(0.0, f64::max)
}

fn picture(y: usize, x: usize, channel: usize) -> f64 {
    [4 * x, 5 * y, 2 * (x + y)][channel] as f64
}

#[test]
fn pixels_are_those_of_the_picture() {
    for name in ["plain.heic", "plain.avif"] {
        let pixels = prepare(&fixture(name), [HEIGHT, WIDTH], Color::Rgb, Limits::default()).unwrap();
        assert!(worst(&pixels, WIDTH, 3, picture) < 12.0, "{name}: {}", worst(&pixels, WIDTH, 3, picture));
        let found = probe(&fixture(name), &Limits::default()).unwrap();
        assert_eq!((found.height, found.width, found.channels), (48, 64, 3), "{name}");
    }
    let gray = prepare(&fixture("gray.heic"), [HEIGHT, WIDTH], Color::Gray, Limits::default()).unwrap();
    assert!(worst(&gray, WIDTH, 1, |_, x, _| 4.0 * x as f64) < 6.0);
}

#[test]
fn a_turned_picture_is_turned_and_a_clear_one_laid_over_a_ground() {
    let turned = prepare(&fixture("turned.heic"), [WIDTH, HEIGHT], Color::Rgb, Limits::default()).unwrap();
    // A quarter to the right: the lowest row is now the first column.
    assert!(worst(&turned, HEIGHT, 3, |y, x, channel| picture(HEIGHT - 1 - x, y, channel)) < 12.0);
    let clear = prepare(&fixture("clear.heic"), [HEIGHT, WIDTH], Color::Rgb, Limits::default()).unwrap();
    let at = |y: usize, x: usize| &clear[(y * WIDTH + x) * 3..][..3];
    let ground = at(5, 60).to_vec();
    assert!(ground.iter().all(|&value| value == 0 || value == 255), "{ground:?}");
    assert!((40..64).all(|x| at(20, x) == ground), "one ground");
    let near = |x: usize| at(20, x).iter().enumerate().all(|(c, &v)| (f64::from(v) - picture(20, x, c)).abs() < 16.0);
    assert!((4..24).all(near));
}

#[test]
fn limits_hold_before_anything_is_decoded() {
    let small = Limits { max_pixels: 1000, ..Limits::default() };
    for name in ["plain.heic", "plain.avif"] {
        let error = prepare(&fixture(name), [8, 8], Color::Rgb, small).unwrap_err();
        assert_eq!(error.code, "too_large", "{error}");
        let few = Limits { max_bytes: 100, ..Limits::default() };
        assert_eq!(probe(&fixture(name), &few).unwrap_err().code, "too_large");
    }
}

#[test]
fn layers_are_refused() {
    let mut bytes = fixture("plain.heic");
    let entry = bytes.windows(4).position(|word| word == b"infe").unwrap();
    let kind = (entry..entry + 20).find(|&at| &bytes[at..at + 4] == b"hvc1").unwrap();
    bytes[kind..kind + 4].copy_from_slice(b"iovl");
    let error = prepare(&bytes, [8, 8], Color::Rgb, Limits::default()).unwrap_err();
    assert!(error.code == "unsupported" && error.message.contains("laid over"), "{error}");
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    for name in ["plain.heic", "plain.avif", "clear.heic"] {
        let bytes = fixture(name);
        for end in (12..bytes.len() - 8).step_by(7) {
            let error = prepare(&bytes[..end], [8, 8], Color::Rgb, Limits::default()).err();
            assert!(error.is_none_or(|error| error.message.lines().count() == 1), "{name} cut at {end}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn damage_is_a_result_or_a_sentence(file in 0..4usize, changes in prop::collection::vec((0..4000usize, any::<u8>()), 1..12)) {
        let name = ["plain.heic", "plain.avif", "clear.heic", "turned.heic"][file];
        let mut bytes = fixture(name);
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if let Err(error) = prepare(&bytes, [8, 8], Color::Rgb, Limits::default()) {
            prop_assert!(error.message.lines().count() == 1, "{error}");
        }
    }
}
