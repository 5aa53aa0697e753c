//! Large JPEGs are decoded at a smaller size, and nobody sees it.
#![allow(clippy::unwrap_used)]

use dtkc_image::{Cost, Limits, Preparer};
use dtkc_item::{Color, ImageShape, ImageSpec, Resize};
use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageFormat};

/// No whole number of blocks along either side.
const WIDTH: usize = 1531;
const HEIGHT: usize = 1045;

/// Waves of many lengths, edges and noise, as photographs have them.
fn photo(channels: usize) -> Vec<u8> {
    let mut noise = 1u32;
    let mut pixels = Vec::with_capacity(WIDTH * HEIGHT * channels);
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            for c in 0..channels {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (u, v) = (x as f32, y as f32);
                let slow = (u / 170.0 + c as f32).sin() * (v / 130.0).cos() * 60.0;
                let fast = ((u + 2.0 * v) / 9.0).sin() * 25.0;
                let edge = if (x / 97 + y / 61 + c) % 3 == 0 { 45.0 } else { 0.0 };
                pixels.push((110.0 + slow + fast + edge + (noise >> 28) as f32) as u8);
            }
        }
    }
    pixels
}

fn jpeg(channels: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let kind = if channels == 1 { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
    let mut encoder = JpegEncoder::new_with_quality(&mut file, 90);
    encoder.encode(&photo(channels), WIDTH as u32, HEIGHT as u32, kind).unwrap();
    file
}

/// The same picture, to be turned by a quarter.
fn turned(file: &[u8]) -> Vec<u8> {
    let exif = b"\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    [&file[..2], exif, &file[2..]].concat()
}

/// What the whole picture becomes: decoded by the library itself, without our way to smaller ones.
fn from_whole(file: &[u8], spec: ImageSpec) -> Vec<u8> {
    let whole = image::load_from_memory_with_format(file, ImageFormat::Jpeg).unwrap();
    let channels = usize::from(whole.color().channel_count());
    let shape = ImageShape { height: whole.height() as usize, width: whole.width() as usize, channels };
    let mut out = vec![0; spec.bytes()];
    Preparer::new(spec, Limits::default()).resize_pixels(whole.as_bytes(), shape, &mut out).unwrap();
    out
}

fn difference(a: &[u8], b: &[u8]) -> (f64, u8) {
    let all = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
    (all.clone().map(f64::from).sum::<f64>() / a.len() as f64, all.max().unwrap())
}

#[test]
fn small_pictures_of_large_ones_are_those_of_the_whole() {
    for channels in [1, 3] {
        let file = jpeg(channels);
        for (height, width, resize) in [
            (64, 64, Resize::Fit),
            (128, 90, Resize::Fit),
            (64, 64, Resize::Stretch),
            (64, 64, Resize::Crop),
            (40, 96, Resize::Crop),
            (180, 180, Resize::Fit),
            (32, 32, Resize::Stretch),
        ] {
            for color in [Color::Gray, Color::Rgb] {
                let spec = ImageSpec { height, width, color, resize };
                let found = Preparer::new(spec, Limits::default()).prepare(&file).unwrap();
                let (mean, worst) = difference(&found, &from_whole(&file, spec));
                assert!(mean < 1.0 && worst <= 8, "{channels} to {spec:?}: {mean} in the mean, {worst} at most");
            }
        }
    }
}

#[test]
fn a_turned_picture_is_the_upright_one_turned() {
    let file = jpeg(3);
    let spec = ImageSpec { height: 64, width: 48, color: Color::Rgb, resize: Resize::Stretch };
    let across = ImageSpec { height: 48, width: 64, ..spec };
    let found = Preparer::new(spec, Limits::default()).prepare(&turned(&file)).unwrap();
    let flat = from_whole(&file, across);
    let upright: Vec<u8> = (0..64)
        .flat_map(|y| (0..48).map(move |x| (47 - x) * 64 + y))
        .flat_map(|at| flat[at * 3..at * 3 + 3].to_vec())
        .collect();
    let (mean, worst) = difference(&found, &upright);
    assert!(mean < 1.0 && worst <= 8, "{mean} in the mean, {worst} at most");
}

#[test]
fn a_fingerprint_knows_the_size_of_the_whole() {
    let spec = ImageSpec { height: 16, width: 16, color: Color::Rgb, resize: Resize::Fit };
    let mut preparer = Preparer::new(spec, Limits::default()).with_fingerprints();
    let file = jpeg(3);
    preparer.prepare(&file).unwrap();
    let small = preparer.take_fingerprint().unwrap();
    assert_eq!((small.width, small.height), (WIDTH as u32, HEIGHT as u32));
    let whole = image::load_from_memory_with_format(&file, ImageFormat::Jpeg).unwrap();
    let shape = ImageShape { height: HEIGHT, width: WIDTH, channels: 3 };
    let expected = preparer.fingerprint(whole.as_bytes(), shape).unwrap().unwrap();
    let apart: u32 = small.views[0].iter().zip(expected.views[0]).map(|(a, b)| (a ^ b).count_ones()).sum();
    assert!(apart <= 8, "{apart} of 256 bits differ");
}

/// The bound that is told before decoding is that of the whole, which is decoded where the short way fails.
#[test]
fn what_is_admitted_is_enough_for_the_whole() {
    let spec = ImageSpec { height: 16, width: 16, color: Color::Gray, resize: Resize::Fit };
    let mut heard = Cost { work: 0, memory: 0 };
    let note = |cost| {
        heard = cost;
        Ok(())
    };
    Preparer::new(spec, Limits::default()).prepare_if(&jpeg(3), &mut [0; 256], note).unwrap();
    assert_eq!(heard, Cost { work: (WIDTH * HEIGHT) as u64, memory: (3 * WIDTH * HEIGHT) as u64 });
}

/// Decoding at a smaller size takes a part of the memory.
#[test]
#[cfg(target_os = "linux")]
fn a_large_picture_takes_little_memory() {
    let side = 6000u32;
    let mut file = Vec::new();
    let gray = vec![90; (side * side) as usize];
    JpegEncoder::new_with_quality(&mut file, 50).encode(&gray, side, side, ExtendedColorType::L8).unwrap();
    drop(gray);
    let spec = ImageSpec { height: 32, width: 32, color: Color::Gray, resize: Resize::Fit };
    // The peak so far is the picture itself; what follows is measured against the present.
    let now = resident("VmRSS:");
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    Preparer::new(spec, Limits::default()).prepare(&file).unwrap();
    let more = resident("VmHWM:").saturating_sub(now);
    assert!(more < 20 << 20, "{} MiB more for {} MiB of pixels", more >> 20, (side * side) >> 20);
}

#[cfg(target_os = "linux")]
fn resident(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
