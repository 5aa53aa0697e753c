//! What cannot be used is refused with the right reason, and nothing ever panics.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use dtkc_image::{Limits, Preparer, probe};
use dtkc_item::{Color, ImageShape, ImageSpec, ItemError, Resize};
use proptest::prelude::*;

const SPEC: ImageSpec = ImageSpec { height: 8, width: 8, color: Color::Rgb, resize: Resize::Fit };

const fn shape(height: usize, width: usize, channels: usize) -> ImageShape {
    ImageShape { height, width, channels }
}

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| dtkc_source::rules::has_image_extension(path))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    assert!(files.len() > 30);
    files
}

fn fixture(name: &str) -> Vec<u8> {
    fixtures().into_iter().find(|(file, _)| file == name).unwrap().1
}

fn refused(bytes: &[u8]) -> ItemError {
    Preparer::new(SPEC, Limits::default()).prepare(bytes).unwrap_err()
}

/// A PNG that claims a size and has no pixels.
fn png_header(width: u32, height: u32) -> Vec<u8> {
    let mut ihdr = b"IHDR".to_vec();
    ihdr.extend(width.to_be_bytes());
    ihdr.extend(height.to_be_bytes());
    ihdr.extend([8, 2, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    png.extend(&ihdr);
    png.extend(crc32(&ihdr).to_be_bytes());
    png.extend(b"\0\0\0\0IDAT\x35\xaf\x06\x1e\0\0\0\0IEND\xae\x42\x60\x82");
    png
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn no_bytes() {
    assert_eq!(refused(b"").code, "empty");
}

#[test]
fn a_text_file_is_not_an_image() {
    for text in [&b"hello, I am named .png"[..], b"\n", b"{\"a\": 1}", b"<svg></svg>", b"%PDF-1.7"] {
        assert_eq!(refused(text).code, "not_an_image");
    }
}

/// Photos of phones are no images that we read unless that was asked for, but they are told from what is none.
#[cfg(not(feature = "heif"))]
#[test]
fn avif_and_heic_are_named() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/unread");
    for (file, name) in [("photo.avif", "AVIF"), ("photo.heic", "HEIC")] {
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let error = refused(&bytes);
        assert_eq!(error.code, "unsupported");
        assert!(error.message.contains(name) && error.message.contains("save it as JPEG"), "{error}");
        assert_eq!(probe(&bytes, &Limits::default()).unwrap_err(), error);
        assert!(dtkc_source::rules::is_image_head(&bytes[..dtkc_source::rules::HEAD]), "{file}");
        assert!(dtkc_source::rules::has_image_extension(file.as_ref()), "{file}");
    }
}

#[test]
fn a_huge_claim_costs_nothing() {
    let error = refused(&png_header(60_000, 60_000));
    assert_eq!(error.code, "too_large");
    let text = error.to_string();
    assert!(text.contains("60000x60000") && text.contains("16384"), "{text}");
    // Short sides, but too many pixels.
    assert_eq!(refused(&png_header(16_384, 16_384)).code, "too_large");
    assert_eq!(probe(&png_header(60_000, 60_000), &Limits::default()).unwrap_err().code, "too_large");
    let mut pnm = b"P6 60000 60000 255\n".to_vec();
    pnm.resize(1000, 0);
    assert_eq!(refused(&pnm).code, "too_large");
}

#[test]
fn a_claim_inside_the_limits_is_cut_off() {
    // An image without a single pixel is damaged; one that stops after the header is cut off.
    let png = png_header(1000, 1000);
    assert_eq!(refused(&png).code, "damaged");
    assert_eq!(refused(&png[..33]).code, "truncated");
}

#[test]
fn limits_are_the_callers() {
    let photo = fixture("photo.jpg");
    for limits in [
        Limits { max_bytes: 100, ..Limits::default() },
        Limits { max_side: 31, ..Limits::default() },
        Limits { max_pixels: 32 * 24 - 1, ..Limits::default() },
    ] {
        assert_eq!(Preparer::new(SPEC, limits).prepare(&photo).unwrap_err().code, "too_large");
        assert_eq!(probe(&photo, &limits).unwrap_err().code, "too_large");
    }
    let just = Limits { max_bytes: photo.len() as u64, max_side: 32, max_pixels: 32 * 24 };
    Preparer::new(SPEC, just).prepare(&photo).unwrap();
}

#[test]
fn half_an_image_is_cut_off() {
    for (name, bytes) in fixtures() {
        let error = refused(&bytes[..bytes.len() / 2]);
        // Half of a tiny file may end inside its header, where some decoders find fault with the header.
        let fine = ["truncated", "damaged"].contains(&&*error.code);
        assert!(fine, "{name}: {error}");
        let usual = ["photo.jpg", "progressive.jpg", "gray.jpg", "wide.png", "tall.png", "rgb.ppm", "rgba.webp"];
        if usual.contains(&name.as_str()) {
            assert_eq!(error.code, "truncated", "{name}: {error}");
        }
    }
}

#[test]
fn no_prefix_panics_or_passes_for_whole() {
    for (name, bytes) in fixtures() {
        let mut preparer = Preparer::new(SPEC, Limits::default());
        for end in 0..bytes.len() * 3 / 4 {
            match preparer.prepare(&bytes[..end]) {
                Err(error) if error.code == "decoder_failed" => panic!("{name}: the decoder panics on {end} bytes"),
                Err(_) => {}
                // A container may end with what is not pixels: then the pixels must be the same.
                Ok(pixels) => assert_eq!(pixels, preparer.prepare(&bytes).unwrap(), "{name} {end}"),
            }
        }
    }
}

#[test]
fn wrong_buffers_are_named() {
    let mut preparer = Preparer::new(SPEC, Limits::default());
    let error = preparer.prepare_into(&fixture("rgb.png"), &mut [0; 10]).unwrap_err();
    assert_eq!(error.to_string(), "the output buffer has 10 bytes instead of 192");
    let mut out = vec![0; SPEC.bytes()];
    let error = preparer.resize_pixels(&[0; 11], shape(3, 4, 1), &mut out).unwrap_err();
    assert_eq!(error.to_string(), "the pixel buffer has 11 bytes instead of 12");
    let code = |shape, preparer: &mut Preparer| preparer.resize_pixels(&[], shape, &mut [0; 192]).unwrap_err().code;
    assert_eq!(code(shape(0, 4, 1), &mut preparer), "no_pixels");
    assert_eq!(code(shape(4, 4, 2), &mut preparer), "unsupported");
}

#[test]
fn every_reason_is_one_line() {
    for bytes in [&b""[..], b"text", &png_header(60_000, 60_000), &png_header(9, 9), b"P6 0 3 255\n", b"BM123"] {
        let text = refused(bytes).to_string();
        assert!(!text.contains('\n') && text.len() < 200, "{text}");
    }
}

/// What is looked for in folders and archives is what is decoded here.
#[test]
fn every_format_is_known_by_its_first_bytes() {
    for (name, bytes) in fixtures() {
        assert!(dtkc_source::rules::is_image_head(&bytes[..dtkc_source::rules::HEAD.min(bytes.len())]), "{name}");
        assert!(probe(&bytes, &Limits::default()).is_ok(), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_bytes_never_panic(pick in 0usize..1000, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let files = fixtures();
        let (name, mut bytes) = files[pick % files.len()].clone();
        for (place, value) in flips {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        // Small limits, so that a damaged header cannot make the test slow.
        let limits = Limits { max_pixels: 1 << 20, ..Limits::default() };
        if Preparer::new(SPEC, limits).prepare(&bytes).is_err_and(|error| error.code == "decoder_failed") {
            // Contained, which is what matters; told here because it would be worth a report upstream.
            eprintln!("the decoder panicked on a damaged {name}");
        }
    }

    #[test]
    fn any_size_to_any_size(height in 1usize..40, width in 1usize..40, to_height in 1usize..20, to_width in 1usize..20, value: u8) {
        for (color, wanted) in [(Color::Gray, Color::Rgb), (Color::Rgb, Color::Gray), (Color::Rgb, Color::Rgb)] {
            for resize in [Resize::Fit, Resize::Stretch, Resize::Crop] {
                let spec = ImageSpec { height: to_height, width: to_width, color: wanted, resize };
                let shape = shape(height, width, color.channels());
                let mut out = vec![1; spec.bytes()];
                Preparer::new(spec, Limits::default()).resize_pixels(&vec![value; shape.len()], shape, &mut out).unwrap();
                // A flat image stays flat; only `fit` may add black.
                let flat = out.iter().all(|&v| v == value || (resize == Resize::Fit && v == 0));
                prop_assert!(flat && out.contains(&value));
            }
        }
    }
}
