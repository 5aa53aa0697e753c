//! What is allowed, checked on the header before anything is decoded.

use dtkc_item::ItemError;

use crate::{decode, error};

/// Decoding may go so many times over as many pixels as an image may have. A progressive JPEG as programs write it goes
/// about five times over its picture; a hundred times is possible.
const PASSES: u64 = 8;

/// Room for tables and rows.
const TABLES: u64 = 16 << 20;
/// The hungriest decoder is that of progressive JPEGs in four colours: two bytes for each of them, and three for the
/// result.
const BYTES_PER_PIXEL: u64 = 12;

/// How much one image may cost. Checked before decoding, so a small file that claims to be huge
/// costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the encoded file.
    pub max_bytes: u64,
    /// Pixels per side.
    pub max_side: u32,
    /// Pixels in all.
    pub max_pixels: u64,
}

impl Default for Limits {
    /// 64 MiB, 16384 pixels per side, 64 Mpixel.
    fn default() -> Self {
        Self { max_bytes: 64 << 20, max_side: 16384, max_pixels: 64 << 20 }
    }
}

impl Limits {
    /// The most memory that decoding one image takes, whatever is in it, besides copies of the file.
    pub fn memory(&self) -> u64 {
        self.max_pixels.saturating_mul(BYTES_PER_PIXEL).saturating_add(TABLES)
    }

    /// Checks the number of encoded bytes.
    pub(crate) fn check_bytes(&self, bytes: usize) -> Result<(), ItemError> {
        match bytes as u64 {
            0 => Err(error::empty()),
            n if n > self.max_bytes => Err(ItemError::too_many_bytes(n, self.max_bytes)),
            _ => Ok(()),
        }
    }

    /// Checks the size that a header claims.
    pub(crate) fn check_size(&self, width: u32, height: u32) -> Result<(), ItemError> {
        if width == 0 || height == 0 {
            return Err(error::no_pixels(width, height));
        }
        let pixels = u64::from(width) * u64::from(height);
        if width.max(height) > self.max_side || pixels > self.max_pixels {
            return Err(error::too_many_pixels(width, height, self.max_side, self.max_pixels));
        }
        Ok(())
    }

    /// Checks how many pixels decoding would go over, where the picture itself has `pixels`.
    pub(crate) fn check_work(&self, pixels: u64, work: u64) -> Result<(), ItemError> {
        let most = self.max_pixels.saturating_mul(PASSES);
        if work > most { Err(error::too_costly(pixels, work, most)) } else { Ok(()) }
    }

    /// Bytes that a decoder may allocate: four channels of 16 bits for every allowed pixel, and some
    /// room for tables and rows.
    pub(crate) fn max_alloc(&self) -> u64 {
        self.max_pixels.saturating_mul(8).saturating_add(TABLES)
    }
}

/// What decoding one image costs, known from its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Pixels that it goes over: more than the image has where that happens in several passes.
    pub work: u64,
    /// Bytes that it takes, at most.
    pub memory: u64,
}

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Columns, after orientation.
    pub width: u32,
    /// Rows, after orientation.
    pub height: u32,
    /// Channels, alpha included: 1 to 4. A palette counts as the colours that it stands for.
    pub channels: u8,
}

/// Reads size and channels from the header and checks them against `limits`; nothing is decoded.
pub fn probe(bytes: &[u8], limits: &Limits) -> Result<Probe, ItemError> {
    decode::probe(bytes, limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked_at_the_edge() {
        let limits = Limits { max_bytes: 10, max_side: 100, max_pixels: 5000 };
        let code = |checked: Result<(), ItemError>| checked.map_or_else(|error| error.code, |()| "ok".into());
        for (bytes, expected) in [(0, "empty"), (10, "ok"), (11, "too_large")] {
            assert_eq!(code(limits.check_bytes(bytes)), expected);
        }
        let too_large = [(101, 1), (100, 51), (u32::MAX, u32::MAX)];
        assert_eq!(code(limits.check_size(100, 50)), "ok");
        assert!(too_large.into_iter().all(|(width, height)| code(limits.check_size(width, height)) == "too_large"));
        assert_eq!(code(limits.check_size(0, 5)), "no_pixels");
        assert_eq!(
            (code(limits.check_work(10, 40_000)), code(limits.check_work(10, 40_001))),
            ("ok".into(), "too_costly".into())
        );
    }
}
