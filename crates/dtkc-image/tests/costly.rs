//! Small files that would cost much are refused, or cost little, and ordinary ones are not.
#![allow(clippy::unwrap_used)]

use dtkc_image::{Limits, Preparer};
use dtkc_item::{Color, ImageSpec, ItemError, Resize};
use dtkc_testing::{files, hostile};

const SPEC: ImageSpec = ImageSpec { height: 8, width: 8, color: Color::Gray, resize: Resize::Fit };

fn preparer(max_pixels: u64) -> Preparer {
    Preparer::new(SPEC, Limits { max_pixels, ..Limits::default() })
}

/// What `admit` hears of a file.
fn work(bytes: &[u8]) -> u64 {
    let mut heard = 0;
    let note = |work| {
        heard = work;
        Ok(())
    };
    preparer(1 << 26).prepare_if(bytes, &mut [0; 64], note).unwrap();
    heard
}

/// 39 KB of them kept a service busy for 87 s.
#[test]
fn a_progressive_jpeg_pays_for_every_scan() {
    let (once, often) = (hostile::progressive_jpeg(64, 1), hostile::progressive_jpeg(64, 100));
    assert_eq!((work(&once), work(&often)), (64 * 64, 100 * 64 * 64));
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
