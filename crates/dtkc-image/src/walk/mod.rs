//! What a file says about itself that its decoder does not tell, or tells too late: how often every pixel is gone over,
//! pictures inside the file that are larger than the file's own size, and what lies around the pixels.
//!
//! A decoder trusts the file. A file of a few hundred bytes can ask for a hundred passes over 64 million pixels, or for
//! a colour profile of a gigabyte that nobody looks at. Walking over markers and chunks costs next to nothing, so it is
//! done first.

mod gif;
mod jpeg;
mod png;
mod tiff;
mod webp;

use std::borrow::Cow;

use dtkc_item::ItemError;
use image::ImageFormat;
use image::metadata::Orientation;

use crate::{Limits, error};

/// A decoder takes a while for every part of a file, however small: chunks of a PNG, blocks before a GIF's first picture,
/// segments and tables of a JPEG, which count ten or more each. A photograph of 64 MiB has a few thousand.
const MOST_PARTS: usize = 100_000;

/// What a file says about itself.
#[derive(Debug)]
pub struct Walk<'a> {
    /// What to decode: the file, or the file without what nobody looks at.
    pub bytes: Cow<'a, [u8]>,
    /// Pixels that are gone over where that is not simply each pixel of the picture once.
    pub work: Option<u64>,
    /// Bytes that the decoder takes for each pixel besides those that it gives.
    pub beside: u64,
    /// False where the data ends before the picture does and the decoder would not mind.
    pub complete: bool,
    /// The orientation, where the decoder would read tables once more to tell it.
    pub orientation: Option<Orientation>,
    /// True for a JPEG that may be decoded at a smaller size.
    pub reducible: bool,
}

impl<'a> Walk<'a> {
    fn plain(bytes: &'a [u8]) -> Self {
        Self { bytes: Cow::Borrowed(bytes), work: None, beside: 0, complete: true, orientation: None, reducible: false }
    }
}

/// Walks over a file; fails where a picture inside it is larger than allowed, or where it is in too many parts.
pub fn walk<'a>(bytes: &'a [u8], format: ImageFormat, limits: &Limits) -> Result<Walk<'a>, ItemError> {
    let plain = Walk::plain(bytes);
    Ok(match format {
        ImageFormat::Jpeg => {
            let jpeg::Segments { complete, orientation, work, parts, beside, usual } = jpeg::walk(bytes);
            check_parts(parts)?;
            Walk { work: Some(work), beside, complete, orientation: Some(orientation), reducible: usual, ..plain }
        }
        ImageFormat::Png => {
            check_parts(png::parts(bytes))?;
            Walk { bytes: png::without_ancillary(bytes), ..plain }
        }
        ImageFormat::WebP => {
            check_parts(webp::parts(bytes))?;
            // Colours with transparency, whether there is any or not.
            Walk { complete: webp::check(bytes, limits)?, beside: 4, ..plain }
        }
        ImageFormat::Gif => {
            let gif::First { parts, size } = gif::first(bytes);
            check_parts(parts)?;
            if let Some((width, height)) = size {
                limits.check_size(width, height)?;
            }
            // The picture, before it is put in its place on the screen.
            Walk { beside: 4, ..plain }
        }
        ImageFormat::Tiff => {
            check_parts(tiff::parts(bytes))?;
            Walk { work: tiff::work(bytes), ..plain }
        }
        _ => plain,
    })
}

fn check_parts(parts: usize) -> Result<(), ItemError> {
    if parts > MOST_PARTS { Err(error::too_many_parts()) } else { Ok(()) }
}

/// A number of two bytes at `at`; `None` past the end.
fn u16_at(bytes: &[u8], at: usize, big: bool) -> Option<u16> {
    let pair: [u8; 2] = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) })
}

/// A number of four bytes at `at`; `None` past the end.
fn u32_at(bytes: &[u8], at: usize, big: bool) -> Option<u32> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
}
