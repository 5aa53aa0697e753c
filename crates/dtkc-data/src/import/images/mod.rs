//! Sources of encoded images: folders, zip and tar archives, lists of files.

pub mod folder;
pub mod names;
pub mod tar;
pub mod zip;

use std::path::Path;

use dtkc_image::{Limits, probe};

use super::record::Sample;

/// Whether a path below a source is an image that the user means: not hidden, not a macOS shadow.
pub fn is_wanted(path: &str) -> bool {
    let visible = |part: &str| !part.starts_with('.') && part != "__MACOSX";
    path.split('/').filter(|p| !p.is_empty() && *p != "." && *p != "..").all(visible)
        && dtkc_image::looks_like_image(Path::new(path))
}

/// Whether the first bytes are those of an image format that we read.
pub fn matches(head: &[u8]) -> bool {
    let starts: [&[u8]; 8] =
        [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*", b"RIFF"];
    let pnm = matches!(head, [b'P', b'1'..=b'7', b' ' | b'\n' | b'\r' | b'\t' | b'#', ..]);
    pnm || starts.iter().any(|s| head.starts_with(s))
        && !(head.starts_with(b"RIFF") && head.get(8..12) != Some(b"WEBP"))
}

/// Size and colour from the header; `None` where it cannot be read.
pub fn sample(bytes: &[u8], limits: &Limits) -> Option<Sample> {
    let probe = probe(bytes, limits).ok()?;
    Some(Sample { height: probe.height, width: probe.width, rgb: probe.channels >= 3 })
}

/// `wanted` places spread evenly over `count`, the first one included.
pub fn spread(count: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let wanted = wanted.min(count);
    (0..wanted).map(move |i| (i as u128 * count as u128 / wanted as u128) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_are_not_meant() {
        for path in ["a.png", "x/a.JPG", "./a.webp", "../x/a.tif"] {
            assert!(is_wanted(path), "{path}");
        }
        for path in ["a.txt", "._a.png", "x/.thumbs/a.png", "__MACOSX/a.png", "png"] {
            assert!(!is_wanted(path), "{path}");
        }
    }

    #[test]
    fn places_are_spread_evenly() {
        assert_eq!(spread(3, 10).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(spread(100, 4).collect::<Vec<_>>(), [0, 25, 50, 75]);
        assert_eq!(spread(0, 4).count(), 0);
    }

    #[test]
    fn image_heads_are_known() {
        assert!(matches(b"\x89PNG\r\n\x1a\n") && matches(b"P5\n3 3") && matches(b"RIFF\0\0\0\0WEBP"));
        assert!(!matches(b"RIFF\0\0\0\0WAVE") && !matches(b"PK\x03\x04") && !matches(b"P8 ") && !matches(b""));
    }
}
