//! TIFF: the tiles or strips may be much larger than the picture, and so may JPEGs inside them.

use super::{jpeg, u16_at, u32_at};

const WIDTH: u16 = 256;
const HEIGHT: u16 = 257;
const COMPRESSION: u16 = 259;
const SAMPLES: u16 = 277;
const ROWS_PER_STRIP: u16 = 278;
const PLANES: u16 = 284;
const TILE_WIDTH: u16 = 322;
const TILE_HEIGHT: u16 = 323;
const JPEG: u64 = 7;

/// Pixels that decoding goes over: whole tiles or strips, or the JPEGs in them. `None` where the tags cannot be read;
/// then the decoder cannot read them either.
pub fn work(bytes: &[u8]) -> Option<u64> {
    let directory = Directory::first(bytes)?;
    let Tiles { count, each } = directory.tiles()?;
    let each = if directory.holds_jpegs() { jpeg::costliest(bytes).0.max(each) } else { each };
    Some(count.saturating_mul(each))
}

/// How many tags there are. The parts of a JPEG count for every tile: many may share one.
pub fn parts(bytes: &[u8]) -> usize {
    let Some(directory) = Directory::first(bytes) else { return 0 };
    let jpegs = match directory.tiles() {
        Some(Tiles { count, .. }) if directory.holds_jpegs() => {
            (jpeg::costliest(bytes).1 as u64).saturating_mul(count) / PARTS_PER_TAG
        }
        _ => 0,
    };
    directory.entries().saturating_add(usize::try_from(jpegs).unwrap_or(usize::MAX))
}

/// A scan of a large plan has ten thousand tiles, each of them a JPEG of a few segments.
const PARTS_PER_TAG: u64 = 100;

/// How many tiles or strips there are, and the pixels of one.
struct Tiles {
    count: u64,
    each: u64,
}

/// The first directory of tags; the decoder reads no other.
struct Directory<'a> {
    bytes: &'a [u8],
    big_endian: bool,
    /// BigTIFF: counts and offsets of eight bytes.
    big: bool,
    first: usize,
    count: usize,
}

impl<'a> Directory<'a> {
    fn first(bytes: &'a [u8]) -> Option<Self> {
        let big_endian = bytes.starts_with(b"MM");
        let big = u16_at(bytes, 2, big_endian)? == 43;
        let at = |place: usize| {
            if big { long(bytes, place, big_endian) } else { u32_at(bytes, place, big_endian).map(u64::from) }
        };
        let start = usize::try_from(at(if big { 8 } else { 4 })?).ok()?;
        let (count, head) = match big {
            true => (long(bytes, start, big_endian)?, 8),
            false => (u64::from(u16_at(bytes, start, big_endian)?), 2),
        };
        Some(Self { bytes, big_endian, big, first: start.checked_add(head)?, count: usize::try_from(count).ok()? })
    }

    fn tiles(&self) -> Option<Tiles> {
        let (width, height) = (self.number(WIDTH)?, self.number(HEIGHT)?);
        let (tile_width, tile_height) = match (self.number(TILE_WIDTH), self.number(TILE_HEIGHT)) {
            (Some(width), Some(height)) => (width.max(1), height.max(1)),
            _ => (width.max(1), self.number(ROWS_PER_STRIP).unwrap_or(height).clamp(1, height.max(1))),
        };
        // Each colour may have tiles of its own. Of a tile no more rows are read than the picture has.
        let planes = if self.number(PLANES) == Some(2) { self.number(SAMPLES).unwrap_or(1).max(1) } else { 1 };
        let count = width.div_ceil(tile_width).saturating_mul(height.div_ceil(tile_height)).saturating_mul(planes);
        Some(Tiles { count, each: tile_width.saturating_mul(tile_height.min(height.max(1))) })
    }

    fn holds_jpegs(&self) -> bool {
        self.number(COMPRESSION) == Some(JPEG)
    }

    /// Bytes of one entry.
    fn each(&self) -> usize {
        if self.big { 20 } else { 12 }
    }

    /// Entries that are really there.
    fn entries(&self) -> usize {
        self.count.min(self.bytes.len().saturating_sub(self.first) / self.each())
    }

    /// The first value of a tag of whole numbers, where it is there.
    fn number(&self, tag: u16) -> Option<u64> {
        let places = (0..self.entries()).map(|n| self.first + n * self.each());
        let tag_at = |place: &usize| u16_at(self.bytes, *place, self.big_endian) == Some(tag);
        // Of a tag that comes twice decoders differ in which one counts: the larger value is the safer one.
        places.filter(tag_at).filter_map(|place| self.value(place)).max()
    }

    fn value(&self, place: usize) -> Option<u64> {
        let value = place + if self.big { 12 } else { 8 };
        match u16_at(self.bytes, place + 2, self.big_endian)? {
            1 => self.bytes.get(value).map(|&byte| u64::from(byte)),
            3 => u16_at(self.bytes, value, self.big_endian).map(u64::from),
            4 => u32_at(self.bytes, value, self.big_endian).map(u64::from),
            16 => long(self.bytes, value, self.big_endian),
            _ => None,
        }
    }
}

fn long(bytes: &[u8], at: usize, big_endian: bool) -> Option<u64> {
    let eight: [u8; 8] = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
    Some(if big_endian { u64::from_be_bytes(eight) } else { u64::from_le_bytes(eight) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(tags: &[(u16, u32)]) -> Vec<u8> {
        let mut file = b"II\x2a\0\x08\0\0\0".to_vec();
        file.extend((tags.len() as u16).to_le_bytes());
        for (tag, value) in tags {
            file.extend([tag.to_le_bytes(), 4u16.to_le_bytes()].concat());
            file.extend([1u32.to_le_bytes(), value.to_le_bytes()].concat());
        }
        file
    }

    #[test]
    fn tiles_count_whole() {
        let size = [(WIDTH, 100), (HEIGHT, 50)];
        assert_eq!(work(&file(&size)), Some(5000));
        assert_eq!(work(&file(&[&size[..], &[(ROWS_PER_STRIP, u32::MAX)]].concat())), Some(5000));
        let tiles = [(TILE_WIDTH, 64), (TILE_HEIGHT, 64)];
        assert_eq!(work(&file(&[&size[..], &tiles].concat())), Some(2 * 64 * 50));
        let wide = [(TILE_WIDTH, 1 << 30), (TILE_HEIGHT, 1)];
        assert_eq!(work(&file(&[&size[..], &wide].concat())), Some(50 << 30));
    }

    #[test]
    fn a_jpeg_inside_counts_for_every_tile() {
        let tags = file(&[(WIDTH, 64), (HEIGHT, 64), (TILE_WIDTH, 16), (TILE_HEIGHT, 16), (COMPRESSION, 7)]);
        let jpeg =
            [0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0x10, 0, 0x10, 0, 1, 1, 0x11, 0, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0];
        assert_eq!(work(&[&tags[..], &jpeg].concat()), Some(16 << 24));
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        let whole = file(&[(WIDTH, 64), (HEIGHT, 64)]);
        assert!((0..whole.len()).all(|end| work(&whole[..end]).is_none()));
    }
}
