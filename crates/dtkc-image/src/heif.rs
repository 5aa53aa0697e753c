//! HEIC and AVIF through libheif, a library in C++ (feature `heif`).
//!
//! The library gets our limits before it reads anything, decodes in the thread that asks, and applies rotations and mirror
//! images itself. Its memory errors cannot be contained as a panic can: that is why this is a feature that must be asked for.

use dtkc_item::{Color, ItemError};
use image::ColorType;
use image::metadata::Orientation;
use libheif_rs::{
    ColorSpace, HeifContext, HeifError, HeifErrorCode, HeifErrorSubCode, ImageHandle, LibHeif, RgbChroma,
    SecurityLimits,
};

use crate::color::reduce;
use crate::decode::Decoded;
use crate::{Cost, Limits, Probe, error};

/// Bytes that decoding takes for each pixel: planes of brightness and colour in 16 bits, and the result with transparency.
const BYTES_PER_PIXEL: u64 = 10;
/// Parts of one picture, and parts of a file. Photos of phones have some dozens.
const MOST_TILES: u64 = 4096;
const MOST_ITEMS: u32 = 4096;

/// A file whose header was read and whose size is allowed.
struct Opened<'a> {
    // Holds what the handle points into.
    _context: HeifContext<'a>,
    handle: ImageHandle,
    width: u32,
    height: u32,
}

/// Decodes the main picture into `buffer`.
pub fn decode(
    bytes: &[u8],
    format: &'static str,
    limits: &Limits,
    wanted: Color,
    buffer: &mut Vec<u8>,
    admit: impl FnOnce(Cost) -> Result<(), ItemError>,
) -> Result<Decoded, ItemError> {
    let opened = Opened::new(bytes, format, limits)?;
    let pixels = u64::from(opened.width) * u64::from(opened.height);
    admit(Cost { work: pixels, memory: pixels.saturating_mul(BYTES_PER_PIXEL) })?;
    let (chroma, kind) = match opened.handle.has_alpha_channel() {
        true => (RgbChroma::Rgba, ColorType::Rgba8),
        false => (RgbChroma::Rgb, ColorType::Rgb8),
    };
    let failed = |error: HeifError| explain(&error, format, limits);
    let image = LibHeif::new().decode(&opened.handle, ColorSpace::Rgb(chroma), None).map_err(failed)?;
    let plane = image.planes().interleaved.ok_or_else(|| error::damaged(format, "it has no pixels"))?;
    let row = opened.width as usize * usize::from(kind.channel_count());
    let is_whole = (plane.width, plane.height) == (opened.width, opened.height) && plane.stride >= row;
    if !is_whole || plane.data.len() < plane.stride * (opened.height as usize - 1) + row {
        return Err(error::damaged(format, "its pictures have another size than it says"));
    }
    buffer.clear();
    plane.data.chunks(plane.stride).take(opened.height as usize).for_each(|line| buffer.extend(&line[..row]));
    let color = reduce(buffer, kind, wanted).unwrap_or(wanted);
    let (width, height) = (opened.width as usize, opened.height as usize);
    Ok(Decoded { width, height, reduced: 1, color, orientation: Orientation::NoTransforms })
}

/// Size and channels from the header.
pub fn probe(bytes: &[u8], format: &'static str, limits: &Limits) -> Result<Probe, ItemError> {
    let Opened { width, height, handle, .. } = Opened::new(bytes, format, limits)?;
    Ok(Probe { width, height, channels: if handle.has_alpha_channel() { 4 } else { 3 } })
}

impl<'a> Opened<'a> {
    fn new(bytes: &'a [u8], format: &'static str, limits: &Limits) -> Result<Self, ItemError> {
        if lays_pictures_over_each_other(bytes) {
            return Err(error::unsupported(format, "several pictures are laid over each other"));
        }
        let failed = |error: HeifError| explain(&error, format, limits);
        let mut context = HeifContext::new().map_err(failed)?;
        let mut allowed = SecurityLimits::new();
        allowed.set_max_image_size_pixels(limits.max_pixels);
        allowed.set_max_memory_block_size(limits.max_alloc());
        allowed.set_max_total_memory(limits.memory());
        allowed.set_max_number_of_tiles(MOST_TILES);
        allowed.set_max_items(MOST_ITEMS);
        context.set_security_limits(&allowed).map_err(failed)?;
        context.set_max_decoding_threads(0);
        context.read_bytes(bytes).map_err(failed)?;
        let handle = context.primary_image_handle().map_err(failed)?;
        let (width, height) = (handle.width(), handle.height());
        limits.check_size(width, height)?;
        Ok(Self { _context: context, handle, width, height })
    }
}

/// Whether the file has an item of the kind `iovl`: each layer costs as much as the whole, and a small file can have
/// thousands.
fn lays_pictures_over_each_other(bytes: &[u8]) -> bool {
    let entries = bytes.windows(4).enumerate().filter(|(_, word)| *word == b"infe");
    entries.into_iter().any(|(at, _)| {
        // Version and flags, an id of 16 or 32 bits, and one of protection lie before it.
        [at + 12, at + 14].iter().any(|&kind| bytes.get(kind..kind + 4) == Some(b"iovl"))
    })
}

fn explain(cause: &HeifError, format: &str, limits: &Limits) -> ItemError {
    match (cause.code, cause.sub_code) {
        (HeifErrorCode::MemoryAllocationError, _) | (_, HeifErrorSubCode::SecurityLimitExceeded) => {
            error::too_much_memory(format, limits.max_alloc())
        }
        (_, HeifErrorSubCode::EndOfData) => error::truncated(format),
        (HeifErrorCode::UnsupportedFeature | HeifErrorCode::UnsupportedFileType, _) => {
            error::unsupported(format, &words(&cause.message))
        }
        _ => error::damaged(format, &words(&cause.message)),
    }
}

/// The library's own words in one line.
fn words(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    line.trim_end_matches('.').chars().filter(|c| !c.is_control()).take(160).collect()
}
