//! Small files that would cost much are refused, or cost little, and ordinary ones are not.
#![allow(clippy::unwrap_used)]

use dtkc_image::{Cost, Limits, Preparer};
use dtkc_item::{Color, ImageSpec, ItemError, Resize};
use dtkc_testing::{files, hostile};

const SPEC: ImageSpec = ImageSpec { height: 8, width: 8, color: Color::Gray, resize: Resize::Fit };

fn preparer(max_pixels: u64) -> Preparer {
    Preparer::new(SPEC, Limits { max_pixels, ..Limits::default() })
}

/// What `admit` hears of a file.
fn cost(bytes: &[u8]) -> Cost {
    let mut heard = Cost { work: 0, memory: 0 };
    let note = |cost| {
        heard = cost;
        Ok(())
    };
    preparer(1 << 26).prepare_if(bytes, &mut [0; 64], note).unwrap();
    heard
}

/// 39 KB of them kept a service busy for 87 s.
#[test]
fn a_progressive_jpeg_pays_for_every_scan() {
    let (once, often) = (hostile::progressive_jpeg(64, 1), hostile::progressive_jpeg(64, 100));
    assert_eq!((cost(&once).work, cost(&often).work), (64 * 64, 100 * 64 * 64));
    // One byte for a pixel of the result, two for what is kept until the last scan.
    assert_eq!((cost(&once).memory, cost(&files::gray_png(64, 64, 7)).memory), (3 * 64 * 64, 64 * 64));
    // Eight passes over as many pixels as allowed, and no more.
    let mut small = preparer(64 * 64);
    small.prepare(&hostile::progressive_jpeg(64, 8)).unwrap();
    let refused = small.prepare(&hostile::progressive_jpeg(64, 9)).unwrap_err();
    assert_eq!(refused.code, "too_costly");
    assert!(refused.message.contains("not progressive"), "{refused}");
    assert_eq!(preparer(1 << 26).prepare(&hostile::progressive_jpeg(8192, 100)).unwrap_err().code, "too_costly");
}

#[test]
fn scans_behind_damage_count_too() {
    let jpeg = hostile::progressive_jpeg(64, 9);
    let second = jpeg.windows(2).enumerate().filter(|(_, pair)| pair == &[0xff, 0xda]).nth(1).unwrap().0;
    let torn = [&jpeg[..second], &[0xff, 0xe2, 0xff, 0xff, 1, 2, 3], &jpeg[second..]].concat();
    assert_eq!(preparer(64 * 64).prepare(&torn).unwrap_err().code, "too_costly");
}

/// A TIFF with these tags, each with one number, and what follows them.
fn tiff(tags: &[(u16, u32)], behind: &[u8]) -> Vec<u8> {
    let mut file = b"II\x2a\0\x08\0\0\0".to_vec();
    file.extend((tags.len() as u16).to_le_bytes());
    for (tag, value) in tags {
        file.extend([tag.to_le_bytes(), 4u16.to_le_bytes()].concat());
        file.extend([1u32.to_le_bytes(), value.to_le_bytes()].concat());
    }
    file.extend([&[0; 4], behind].concat());
    file
}

/// The decoder would unpack rows of a gigabyte for a picture of 28 x 28, or a JPEG of 8192 x 8192 for each of its tiles.
#[test]
fn tiles_larger_than_their_picture_are_paid_for() {
    let common = [(256, 28), (257, 28), (258, 8), (259, 1), (262, 1), (277, 1)];
    let tiles = |side: u32| [(322, side), (323, side), (324, 200), (325, 784)];
    let small = tiff(&[&common[..], &tiles(32)].concat(), &[7; 2000]);
    preparer(1 << 20).prepare(&small).unwrap();
    let wide = tiff(&[&common[..], &tiles(1 << 30)].concat(), &[7; 2000]);
    assert_eq!(preparer(1 << 20).prepare(&wide).unwrap_err().code, "too_costly");
    let mut jpeg = [&common[..], &tiles(32)].concat();
    jpeg[3] = (259, 7);
    let jpeg = tiff(&jpeg, &hostile::progressive_jpeg(8192, 3));
    assert_eq!(preparer(1 << 20).prepare(&jpeg).unwrap_err().code, "too_costly");
}

#[test]
fn a_gif_whose_picture_is_larger_than_its_screen_is_refused() {
    let gif = b"GIF89a\x08\0\x08\0\x80\0\0\0\0\0\xff\xff\xff\x2c\0\0\0\0\x10\x27\x10\x27\0\x02\x02\x44\x01\0;";
    assert_eq!(preparer(1 << 26).prepare(gif).unwrap_err().code, "too_large");
}

/// 32 MiB of nothing but tables, which a zip holds in 40 KB, took five seconds.
#[test]
fn files_of_countless_parts_are_refused() {
    let jpeg = hostile::progressive_jpeg(64, 1);
    let tables = [&[0xff, 0xc4, 0, 20, 0x10, 1][..], &[0; 16]].concat();
    let with = |count: usize| [&jpeg[..2], &tables.repeat(count), &jpeg[2..]].concat();
    preparer(1 << 26).prepare(&with(1000)).unwrap();
    let refused = preparer(1 << 26).prepare(&with(10_000)).unwrap_err();
    assert!(refused.code == "too_costly" && refused.message.contains("parts"), "{refused}");
    // Its decoder looks at all of these again for every segment that follows: 8 MB took more than a minute.
    let extension = [b"http://ns.adobe.com/xmp/extension/\0", &[7; 40][..], b"x"].concat();
    let segment = [&[0xff, 0xe1, 0, extension.len() as u8 + 2][..], &extension].concat();
    let with = |count: usize| [&jpeg[..2], &segment.repeat(count), &jpeg[2..]].concat();
    preparer(1 << 26).prepare(&with(500)).unwrap();
    assert_eq!(preparer(1 << 26).prepare(&with(2500)).unwrap_err().code, "too_costly");
    let png = files::gray_png(8, 8, 7);
    let chunks = [&png[..33], &b"\0\0\0\0abCd\0\0\0\0".repeat(100_000), &png[33..]].concat();
    assert_eq!(preparer(1 << 26).prepare(&chunks).unwrap_err().code, "too_costly");
    let gif = [&b"GIF89a\x08\0\x08\0\0\0\0"[..], &b"\x21\xfe\0".repeat(100_001)].concat();
    assert_eq!(preparer(1 << 26).prepare(&gif).unwrap_err().code, "too_costly");
}

#[test]
fn a_refusal_comes_before_the_decoding() {
    let stop = |_| Err(ItemError::new("mine", "not now"));
    // A picture without pixels behind its header: decoding it would find that out.
    let empty = files::png_that_claims(1000, 1000);
    assert_eq!(preparer(1 << 26).prepare_if(&empty, &mut [0; 64], stop).unwrap_err().code, "mine");
    assert_eq!(preparer(1 << 26).prepare(&empty).unwrap_err().code, "damaged");
}

/// A 28 x 28 PNG with a profile that unpacks to half a gigabyte took a gigabyte.
#[test]
#[cfg(target_os = "linux")]
fn what_nobody_looks_at_is_not_unpacked() {
    let plain = preparer(1 << 26).prepare(&files::gray_png(28, 28, 7)).unwrap();
    for kind in [b"iCCP", b"zTXt"] {
        let file = hostile::png_with(kind, 200 << 20, 28);
        let before = peak();
        assert_eq!(preparer(1 << 26).prepare(&file).unwrap(), plain);
        assert!(peak() - before < 50 << 20, "{} MiB more", (peak() - before) >> 20);
    }
}

/// The most memory that this process has had at one time.
#[cfg(target_os = "linux")]
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
