//! Against Pillow, SciPy and Python's imagehash: scripts/golden/fingerprint_golden.py prints the values.
#![allow(clippy::unwrap_used)]

use image::metadata::Orientation;

use super::basis::GRID;
use super::*;

fn picture(side: usize, kind: usize) -> Vec<u8> {
    let pixel = |x: usize, y: usize| (x * x * kind / 8 + y * y / (4 + kind) + 40 * ((x / 9 + y / 7) % 3)) % 256;
    (0..side * side).map(|i| pixel(i % side, i / side) as u8).collect()
}

const PILLOW: [[Hash; VIEWS]; 3] = [
    [
        [0xb1634fd9d890b0b1, 0x64657db8a69ea462, 0x9b0f5290756f24dc, 0x6b10d62e8c7e89a1],
        [0xf0234fd9d814b0b1, 0x2474fdb9869ea422, 0xbb0f721874ef645c, 0x6546da1294efa991],
        [0xd0a70ed9d816b0b1, 0x44e4d9911e5cf423, 0xb303225866e364ee, 0x44eec910d8efb1d1],
        [0xd0a70ed8581690b1, 0x4cc149d99e58d6a7, 0xb311266866e074ef, 0x2e4e4dd1daf1b5c1],
        [0xa1634fd99094a0b1, 0x4d4549212cb82d4e, 0x321f52b0656fecd8, 0xca14963e99debba1],
        [0xa3434dd99090b0b1, 0x647d99b88e9e2462, 0x774c74b0656fecd8, 0xcb0094efa9d53ba1],
        [0xf1a36f495890f091, 0xb236159cd64f96b2, 0xc90e8b90932f365c, 0x25806b3e447ecdb1],
        [0xf8e3474dd894b0b1, 0xa4647db9a48ea462, 0x9ba79b1812a3654f, 0x24ef6b10d66e8cf4],
    ],
    [
        [0x70c3083960e1e0c1, 0x962d4b535636a4a4, 0x6d86df16ace05bbf, 0x01fb4e06b8ff63dc],
        [0x78c10e3960e1c1c1, 0x12a46b72563694a4, 0x4f04da3e90e1a9bb, 0x9aff760698e663fb],
        [0x78c01e3860c1c3c9, 0x3b542dfa4616d494, 0x6e00587793e1b1fd, 0x1ef7f023c486abf9],
        [0x78c21e7062c3c3c9, 0xab66a5ebca3e5684, 0xae284867d3f1d7c1, 0x3811c1e706069ff9],
        [0xe087387160a3c1c1, 0xb6a95b56d424ac2c, 0xcc169c36a9c1533b, 0x77fbfc16a1ef4718],
        [0x60861e3160e3e0c9, 0xb66d5356f6a6a4a8, 0x8e009279b0e9533f, 0x75e3fe04f1f94718],
        [0x70c18d3920e16041, 0x5a94a92b7a9256d4, 0x27866f1e54e1a9bf, 0x81ff57025cf7b39a],
        [0x79e08f3960e0e0c1, 0x52a46b5356b6a4a4, 0x67d0cf069670a8ab, 0x8afc037fae06b0ff],
    ],
    [
        [0x7cc00f7cc0c0c081, 0xc89367ccdcb1b371, 0x9e803e03d9e0636e, 0x31f78e0f3c93e27e],
        [0x7c800ff8c0c0c381, 0x689b67ccb8b1b3f1, 0x8e803403e16c636c, 0x3fe3e74ffc1323fe],
        [0x7c801ffcc0c38781, 0x6599a74cd891b3a1, 0x9f4c308361ece3ec, 0x3fd7f1068c1b25f8],
        [0x3c811ff8c0c30719, 0xa618b66c59d39381, 0xef2cb00767eecfac, 0xff60e08f0c7c71b0],
        [0xfc001ff880c00701, 0xc933ced999332743, 0x3881741793c0c76e, 0xe7e19e0fe0b38efe],
        [0x70801ff0c0c0c301, 0xdc936edc9cb1b371, 0x1d81716fe1fc636e, 0x7bc6ce0879f0c36c],
        [0x7cc00f7cc0e0c081, 0x6c99236c6cd9dbb9, 0xcec09e0358e0312e, 0x19f7ef073e93617e],
        [0x7ee00e3cc0c0c081, 0x6299634cd999b379, 0xcafe1e817c7733ec, 0x843933ef8e033433],
    ],
];

const IMAGEHASH: [Hash; 3] = [
    [0xa64ad10ea94a30cd, 0xa857788776b5b54a, 0xad695292952d6a55, 0xa515aab256cef5b5],
    [0x6b9a324d58d428a9, 0x9b6a91a7ad325355, 0xb4c1893c56cbe5b6, 0x32e2cd32ba4de53c],
    [0x5da731ce90a258d1, 0xa429d96696bcb6b4, 0xace233194c53d32e, 0x2d61d3286edfd338],
];

fn differing(a: &Hash, b: &Hash) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

fn take(pixels: &[u8], side: usize, orientation: Orientation) -> Fingerprint {
    let picture = Picture { pixels, height: side, width: side, reduced: 1, color: Color::Gray, orientation };
    Fingerprinter::default().of(&picture, 7, &mut Fitter::default()).unwrap()
}

#[test]
fn views_are_those_of_pillow_and_scipy() {
    for (kind, expected) in (1..).zip(PILLOW) {
        let found = take(&picture(SIDE, kind), SIDE, Orientation::NoTransforms);
        // Single precision may move a frequency that lies at the limit across it.
        let wrong: u32 = found.views.iter().zip(&expected).map(|(a, b)| differing(a, b)).sum();
        assert!(wrong <= 2, "picture {kind}: {wrong} of 2048 bits");
        assert!(!found.flat && (found.width, found.height, found.bytes) == (64, 64, 7));
    }
}

#[test]
fn without_the_limit_it_is_the_hash_that_others_use() {
    for (kind, expected) in (1..).zip(IMAGEHASH) {
        let whole = basis(GRID, 0.0, 0.0);
        let found = bits(&along_columns(&along_rows(&picture(GRID, kind), &whole), &whole), 0.0);
        let wrong = differing(&found, &expected);
        assert!(wrong <= 1, "picture {kind}: {wrong} of 256 bits");
    }
}

#[test]
fn nothing_to_see_has_no_hash_and_no_noise() {
    for (value, noise) in [(0u8, 0), (255, 0), (100, 1)] {
        let pixels: Vec<u8> = (0..SIDE * SIDE).map(|i| value + (i * i % 7 % 2) as u8 * noise).collect();
        let found = take(&pixels, SIDE, Orientation::NoTransforms);
        assert!(found.flat && found.views == [[0; 4]; VIEWS] && found.mean.abs_diff(value) <= 1, "{found:?}");
    }
}

/// Stripes have no vertical frequencies at all: the signs of rounding errors would differ in every copy.
#[test]
fn stripes_keep_their_hash_when_they_get_brighter() {
    let stripes =
        |high: u8| -> Vec<u8> { (0..SIDE * SIDE).map(|i| if i % SIDE % 20 < 7 { high } else { 20 }).collect() };
    let [dark, bright] = [120, 150].map(|high| take(&stripes(high), SIDE, Orientation::NoTransforms));
    assert!(differing(&dark.views[0], &bright.views[0]) <= 2);
}

#[test]
fn the_orientation_is_honoured() {
    let upright = picture(SIDE, 2);
    let turned: Vec<u8> = (0..SIDE * SIDE).map(|i| upright[(SIDE - 1 - i / SIDE) * SIDE + i % SIDE]).collect();
    let a = take(&upright, SIDE, Orientation::NoTransforms);
    let b = take(&turned, SIDE, Orientation::FlipVertical);
    assert_eq!(a, b);
    assert_ne!(a.views, take(&turned, SIDE, Orientation::NoTransforms).views);
}

#[test]
fn the_whole_of_a_cut_copy_meets_a_part_of_its_original() {
    let large = |x: f64, y: f64| {
        let coarse = 40.0 * (9.0 * x).sin() + 40.0 * (7.0 * y + 4.0 * x * x).cos();
        (128.0 + coarse + 20.0 * (31.0 * x * y + 11.0 * y).sin() + 20.0 * (37.0 * (x - y * y)).cos()) as u8
    };
    let draw = |from: f64, to: f64| -> Vec<u8> {
        let at = |i: usize| from + (to - from) * (i as f64 + 0.5) / 256.0;
        (0..256 * 256).map(|i| large(at(i % 256), at(i / 256))).collect()
    };
    let whole = take(&draw(0.0, 1.0), 256, Orientation::NoTransforms);
    let cut = take(&draw(0.06, 0.94), 256, Orientation::NoTransforms);
    assert!(differing(&whole.views[2], &cut.views[0]) <= 4);
    assert!(differing(&whole.views[0], &cut.views[0]) > 16);
}
