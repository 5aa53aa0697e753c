//! What the JPEG decoder does not tell, or tells only by reading the tables once more.

use image::metadata::Orientation;

const SCAN: u8 = 0xda;
const APP1: u8 = 0xe1;
const EXIF: &[u8] = b"Exif\0\0";

/// What the segments of a JPEG file say.
#[derive(Debug, PartialEq, Eq)]
pub struct Segments {
    /// False where the data ends before the picture does: the decoder would fill the rest with gray.
    pub complete: bool,
    pub orientation: Orientation,
}

/// Walks over the segments up to the first scan and looks for the end marker behind it. Inside a scan the
/// marker cannot occur by chance; a thumbnail's own end marker lies in a segment before, which is skipped.
pub fn walk(bytes: &[u8]) -> Segments {
    let mut found = Segments { complete: false, orientation: Orientation::NoTransforms };
    let mut at = 2;
    while let Some(&[marker, kind, high, low]) = bytes.get(at..at + 4) {
        if marker != 0xff || kind == SCAN {
            // Not at a segment: a decoder that copes will find its own way, and so do we.
            found.complete = bytes[at + 2..].windows(2).any(|pair| pair == [0xff, 0xd9]);
            break;
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        at += match kind {
            0xff => 1,
            0x01 | 0xd0..=0xd8 => 2,
            _ => {
                let content = bytes.get(at + 4..at + 2 + length.max(2)).unwrap_or_default();
                if kind == APP1
                    && let Some(exif) = content.strip_prefix(EXIF)
                {
                    found.orientation = Orientation::from_exif_chunk(exif).unwrap_or(found.orientation);
                }
                2 + length.max(2)
            }
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_looked_for_behind_the_scan() {
        let thumbnail = [0xff, 0xd8, 0xff, 0xe1, 0, 6, 0xff, 0xd9, 0, 0, 0xff, 0xda, 0, 2, 1, 2, 3];
        assert!(!walk(&thumbnail).complete);
        let whole = [&thumbnail[..], &[0xff, 0xd9]].concat();
        assert!(walk(&whole).complete);
        for odd in [&[0xff, 0xd8][..], &[0xff, 0xd8, 0xff, 0xe1, 0xff, 0xff, 0, 0], &[0xff, 0xd8, 0xff, 0xe1, 0, 0, 0]]
        {
            assert!(!walk(odd).complete);
        }
    }
}
