//! JPEG: the end, the orientation and how often the scans go over the picture.

use image::metadata::Orientation;

use super::u16_at;

const END: u8 = 0xd9;
const SCAN: u8 = 0xda;
const APP1: u8 = 0xe1;
const EXIF: &[u8] = b"Exif\0\0";

/// What the segments of a JPEG file say.
#[derive(Debug, PartialEq, Eq)]
pub struct Segments {
    /// False where the data ends before the picture does: the decoder would fill the rest with gray.
    pub complete: bool,
    pub orientation: Orientation,
    /// Pixels of all scans together, a scan of one of three components counting a third.
    pub work: u64,
}

/// Walks over the segments up to the first scan and looks for the end marker and further scans behind it. Inside a scan
/// no marker can occur by chance; a thumbnail lies in a segment before, which is skipped.
pub fn walk(bytes: &[u8]) -> Segments {
    let mut found = Segments { complete: false, orientation: Orientation::NoTransforms, work: 0 };
    let mut frame = Frame::default();
    let mut at = 2;
    while let Some(&[marker, kind, high, low]) = bytes.get(at..at + 4) {
        if marker != 0xff || kind == SCAN {
            // Not at a segment: a decoder that copes will find its own way, and so do we.
            let scans = Scans::of(&bytes[at..], frame);
            (found.complete, found.work) = (scans.ended, scans.work);
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
                frame = Frame::read(kind, content).unwrap_or(frame);
                2 + length.max(2)
            }
        };
    }
    found
}

/// The pixels that the scans of one JPEG go over, where a file holds several: the costliest one's.
pub fn costliest(bytes: &[u8]) -> u64 {
    Scans::of(bytes, Frame::default()).costliest
}

/// The size of a picture and its components.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    pixels: u64,
    components: u64,
}

impl Frame {
    /// From the content of a segment, where it starts a frame.
    fn read(kind: u8, content: &[u8]) -> Option<Self> {
        let starts = matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc);
        let (&components, true) = (content.get(5)?, starts) else { return None };
        let side = |at| u16_at(content, at, true).map(u64::from);
        Some(Self { pixels: side(1)? * side(3)?, components: u64::from(components) })
    }
}

/// Everything that looks like a scan. A decoder may find its way through damage in other ways than we do, but it never
/// starts a scan, or a frame, where there is no marker for one.
#[derive(Debug, Default)]
struct Scans {
    ended: bool,
    work: u64,
    costliest: u64,
    of_frame: u64,
}

impl Scans {
    fn of(bytes: &[u8], mut frame: Frame) -> Self {
        let mut found = Self::default();
        let mut at = 0;
        while let Some(next) = bytes.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == 0xff)) {
            at += next + 1;
            match bytes.get(at) {
                Some(&END) => found.ended = true,
                Some(&SCAN) => {
                    let components = bytes.get(at + 3).map_or(1, |&n| u64::from(n));
                    // The frame's own components are the most that a scan can go over.
                    let part = frame.pixels.saturating_mul(components.clamp(1, frame.components.max(1)));
                    found.add(part.div_ceil(frame.components.max(1)));
                }
                Some(&kind) => {
                    if let Some(other) = bytes.get(at + 3..).and_then(|content| Frame::read(kind, content)) {
                        frame = other;
                        found.of_frame = 0;
                    }
                }
                None => break,
            }
        }
        found
    }

    fn add(&mut self, pixels: u64) {
        self.work = self.work.saturating_add(pixels);
        self.of_frame = self.of_frame.saturating_add(pixels);
        self.costliest = self.costliest.max(self.of_frame);
    }
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

    #[test]
    fn scans_are_counted_by_what_they_go_over() {
        let head = [0xff, 0xd8, 0xff, 0xc2, 0, 17, 8, 0, 20, 0, 30, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0];
        let all = [0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 0, 0, 7, 7];
        let one = [0xff, 0xda, 0, 8, 1, 1, 0, 1, 63, 0, 7, 7];
        let file = [&head[..], &all, &one, &one, &[0xff, 0xd9]].concat();
        let found = walk(&file);
        assert_eq!((found.complete, found.work), (true, 600 + 200 + 200));
        assert_eq!(costliest(&[&file[..], &head, &all, &[0xff, 0xd9]].concat()), 1000);
        // Damage between two scans hides none of them.
        let torn = [&head[..], &all, &[0, 1, 2, 0xff, 0xe2, 0xff, 0xff], &one].concat();
        assert_eq!(walk(&torn).work, 800);
    }
}
