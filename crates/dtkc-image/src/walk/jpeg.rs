//! JPEG: the end, the orientation, how often the scans go over the picture, and how many parts there are.

use image::metadata::Orientation;

use super::u16_at;

const TABLES: u8 = 0xc4;
const SMALLEST_TABLE: usize = 17;
const START: u8 = 0xd8;
const END: u8 = 0xd9;
const SCAN: u8 = 0xda;
const APP1: u8 = 0xe1;
const APP14: u8 = 0xee;
const EXIF: &[u8] = b"Exif\0\0";

/// What the segments of a JPEG file say.
#[derive(Debug, PartialEq, Eq)]
pub struct Segments {
    /// False where the data ends before the picture does: the decoder would fill the rest with gray.
    pub complete: bool,
    pub orientation: Orientation,
    /// Pixels of all scans together, a scan of one of three components counting a third.
    pub work: u64,
    /// What the segments and the tables in them count.
    pub parts: usize,
    /// Bytes for each pixel that the decoder keeps until the last scan.
    pub beside: u64,
    /// True for what cameras write: gray or YCbCr, not progressive, its scans in order and over the picture once.
    pub usual: bool,
}

/// Walks over the segments up to the first scan, and over the scans and what lies between them up to the end. A
/// thumbnail lies in a segment, which is skipped; whatever follows the end (a film, often) is not looked at.
pub fn walk(bytes: &[u8]) -> Segments {
    let mut found = Segments {
        complete: false,
        orientation: Orientation::NoTransforms,
        work: 0,
        parts: 0,
        beside: 0,
        usual: false,
    };
    let (mut frame, mut frames, mut other_colours) = (Frame::default(), 0, false);
    let mut at = 2;
    while let Some(&[marker, kind, high, low]) = bytes.get(at..at + 4) {
        if marker != 0xff || kind == SCAN {
            // Not at a segment: a decoder that copes will find its own way, and we look at all it could find.
            let rest = &bytes[at..];
            let in_order = Scans::in_order(rest, frame);
            found.usual = in_order.as_ref().is_some_and(|scans| frame.is_usual() && scans.work <= frame.pixels)
                && frames == 1
                && !other_colours;
            let scans = in_order.unwrap_or_else(|| Scans::anywhere(rest, frame));
            (found.complete, found.work) = (scans.ended, scans.work);
            found.parts += scans.parts;
            found.beside = frame.beside();
            break;
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        found.parts += parts(kind, length);
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
                other_colours |= kind == APP14 && names_other_colours(content);
                if let Some(read) = Frame::read(kind, length, content) {
                    (frame, frames) = (read, frames + 1);
                }
                2 + length.max(2)
            }
        };
    }
    found
}

/// Whether Adobe's segment says anything but YCbCr.
fn names_other_colours(content: &[u8]) -> bool {
    content.starts_with(b"Adobe") && content.get(11) != Some(&1)
}

/// What a segment of that kind and length counts. For a table the decoder makes a much larger one; what applications
/// leave is looked through again for every segment behind it.
fn parts(kind: u8, length: usize) -> usize {
    match kind {
        TABLES => 10 * (1 + length / SMALLEST_TABLE),
        0xe0..=0xef => 50,
        // Filling bytes, and marks that every scan has many of.
        0x00 | 0xd0..=0xd7 | 0xff => 0,
        _ => 10,
    }
}

/// The costliest of the JPEGs inside a file: the pixels that its scans go over, and what its parts count.
pub fn costliest(bytes: &[u8]) -> (u64, usize) {
    let found = Scans::anywhere(bytes, Frame::default());
    (found.costliest, found.most_parts)
}

/// The size of a picture and its components.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    pixels: u64,
    components: u64,
    progressive: bool,
}

impl Frame {
    /// Two bytes for every component of a progressive picture; one that was not found is taken for the largest.
    fn beside(&self) -> u64 {
        match (self.components, self.progressive) {
            (0, _) => 8,
            (components, true) => 2 * components.min(4),
            (_, false) => 0,
        }
    }

    fn is_usual(&self) -> bool {
        !self.progressive && matches!(self.components, 1 | 3)
    }

    /// From the content of a segment, where it starts a frame that the decoder would take.
    fn read(kind: u8, length: usize, content: &[u8]) -> Option<Self> {
        let (&precision, &components) = (content.first()?, content.get(5)?);
        let side = |at| u16_at(content, at, true).map(u64::from);
        let starts = matches!(kind, 0xc0..=0xc2) && precision == 8 && length == 8 + 3 * usize::from(components);
        let pixels = side(1)? * side(3)?;
        starts.then_some(Self { pixels, components: u64::from(components), progressive: kind == 0xc2 })
    }
}

#[derive(Debug, Default)]
struct Scans {
    ended: bool,
    work: u64,
    parts: usize,
    /// The same of one picture, where a file has several.
    costliest: u64,
    of_frame: u64,
    most_parts: usize,
    of_picture: usize,
}

impl Scans {
    /// Scan after scan with ordinary segments between them, up to the end; `None` where anything is out of order.
    fn in_order(bytes: &[u8], frame: Frame) -> Option<Self> {
        let mut found = Self::default();
        let mut at = 0;
        loop {
            let kind = *bytes.get(at + 1).filter(|_| bytes[at] == 0xff)?;
            if kind == END {
                found.ended = true;
                return Some(found);
            }
            let length = usize::from(u16_at(bytes, at + 2, true)?);
            found.count(kind, length);
            match kind {
                SCAN => {
                    found.scan(frame, bytes.get(at + 4).copied());
                    at = next_marker(bytes, at + 2 + length)?;
                }
                TABLES | 0xdb | 0xdd | 0xe0..=0xef | 0xfe if length >= 2 => at += 2 + length,
                _ => return None,
            }
        }
    }

    /// Everything that looks like a scan. A decoder may find its way through damage in other ways than we do, but it
    /// never starts a scan, or a frame, where there is no marker for one.
    fn anywhere(bytes: &[u8], mut frame: Frame) -> Self {
        let mut found = Self::default();
        let mut at = 0;
        while let Some(next) = bytes.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == 0xff)) {
            at += next + 1;
            let Some(&kind) = bytes.get(at) else { break };
            let length = usize::from(u16_at(bytes, at + 1, true).unwrap_or(0));
            found.count(kind, length);
            match kind {
                START => (found.of_frame, found.of_picture) = (0, 0),
                END => found.ended = true,
                SCAN => found.scan(frame, bytes.get(at + 3).copied()),
                _ => {
                    let content = bytes.get(at + 3..).unwrap_or_default();
                    if let Some(other) = Frame::read(kind, length, content) {
                        (frame, found.of_frame) = (other, 0);
                    }
                }
            }
        }
        found
    }

    fn count(&mut self, kind: u8, length: usize) {
        let parts = parts(kind, length);
        self.parts += parts;
        self.of_picture += parts;
        self.most_parts = self.most_parts.max(self.of_picture);
    }

    fn scan(&mut self, frame: Frame, components: Option<u8>) {
        let all = frame.components.max(1);
        // The frame's own components are the most that a scan can go over.
        let part = u64::from(components.unwrap_or(1)).clamp(1, all);
        let pixels = frame.pixels.saturating_mul(part).div_ceil(all);
        self.work = self.work.saturating_add(pixels);
        self.of_frame = self.of_frame.saturating_add(pixels);
        self.costliest = self.costliest.max(self.of_frame);
    }
}

/// Where the data of a scan end. Inside them no marker can occur by chance.
fn next_marker(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == 0xff)?;
        match bytes.get(at + 1)? {
            0x00 | 0xd0..=0xd7 => at += 2,
            0xff => return None,
            _ => return Some(at),
        }
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
    fn tables_are_counted_before_the_scan_and_behind_it() {
        let tables = [&[0xff, 0xc4, 0, 53][..], &[0; 51]].concat();
        let scan = [0xff, 0xda, 0, 2, 1, 0xff, 0, 0xff, 0xd0, 2];
        let file = [&[0xff, 0xd8][..], &tables, &tables, &scan, &tables, &[0xff, 0xd9]].concat();
        // Three tables and their segment each time, and the scan.
        assert_eq!(walk(&file).parts, 10 * (3 * 4 + 1));
    }

    #[test]
    fn scans_are_counted_by_what_they_go_over() {
        let head = [0xff, 0xd8, 0xff, 0xc2, 0, 17, 8, 0, 20, 0, 30, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0];
        let all = [0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 0, 0, 7, 7];
        let one = [0xff, 0xda, 0, 8, 1, 1, 0, 1, 63, 0, 7, 7];
        let file = [&head[..], &all, &one, &one, &[0xff, 0xd9]].concat();
        let found = walk(&file);
        assert_eq!((found.complete, found.work, found.beside), (true, 600 + 200 + 200, 6));
        assert_eq!(costliest(&[&file[..], &head, &all, &[0xff, 0xd9]].concat()).0, 1000);
        // An end marker inside a segment is no end, and a film behind the end is no part of the picture.
        let comment = [0xff, 0xfe, 0, 4, 0xff, 0xd9];
        let film = [&one[..], &head, &all, &all].concat();
        let photo = [&head[..], &all, &comment, &one, &[0xff, 0xd9], &film].concat();
        assert_eq!((walk(&photo).work, walk(&photo).complete), (800, true));
        // Damage between two scans hides none of them.
        let torn = [&head[..], &all, &[0, 1, 2, 0xff, 0xe2, 0xff, 0xff], &one].concat();
        assert_eq!(walk(&torn).work, 800);
    }
}
