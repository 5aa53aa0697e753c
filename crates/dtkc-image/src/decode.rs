//! From encoded bytes to 8-bit pixels of one or three channels.

use std::error::Error;
use std::io::{Cursor, ErrorKind};

use dtkc_item::{Color, ItemError};
use image::codecs::tiff::TiffDecoder;
use image::metadata::Orientation;
use image::{ImageDecoder, ImageFormat, ImageReader};

use crate::color::reduce;
use crate::contain::contain;
use crate::walk::{Walk, walk};
use crate::{Cost, Limits, Probe, brand, error, reduced};

/// The longest that a decoder's own words may be in a sentence.
const MOST_WORDS: usize = 160;

/// Decoded pixels, as they lie in the file: the orientation is still to be applied.
pub struct Decoded {
    /// The file's own size.
    pub width: usize,
    pub height: usize,
    /// How many of its pixels, along a side, became one: 1, or more where fewer are wanted.
    pub reduced: usize,
    /// Gray or RGB; gray stays gray even if RGB is wanted, because three equal channels cost more.
    pub color: Color,
    pub orientation: Orientation,
}

/// What becomes of the pixels.
pub struct Wanted<'a> {
    /// Colour becomes gray where this says so.
    pub color: Color,
    /// By how much an image of that height and width, once it is turned, may be reduced.
    pub reduction: &'a dyn Fn(usize, usize) -> usize,
}

/// Decodes `bytes` into `buffer`, which is reused and grows as needed. `admit` hears before the decoding what it will
/// cost at most, and may refuse.
pub fn decode(
    bytes: &[u8],
    limits: &Limits,
    wanted: &Wanted<'_>,
    buffer: &mut Vec<u8>,
    admit: impl FnOnce(Cost) -> Result<(), ItemError>,
) -> Result<Decoded, ItemError> {
    #[cfg(feature = "heif")]
    if let Some(name) = brand::known(bytes) {
        limits.check_bytes(bytes.len())?;
        return crate::heif::decode(bytes, name, limits, wanted.color, buffer, admit);
    }
    let format = format_of(bytes, limits)?;
    contained(format, || {
        let walked = walk(bytes, format, limits)?;
        let (decoder, orientation) = open(&walked, format, limits)?;
        let (width, height) = decoder.dimensions();
        let pixels = u64::from(width) * u64::from(height);
        let work = walked.work.unwrap_or(0).max(pixels);
        limits.check_work(pixels, work)?;
        let (kind, total) = (decoder.color_type(), decoder.total_bytes());
        // The TIFF decoder gives the pixels only after it has all of them.
        let copies = if format == ImageFormat::Tiff { 2 } else { 1 };
        if total.saturating_mul(copies) > limits.max_alloc() {
            return Err(too_much_memory(format, limits));
        }
        let memory = total.saturating_mul(copies).saturating_add(walked.beside.saturating_mul(pixels));
        admit(Cost { work, memory })?;
        let whole =
            Decoded { width: width as usize, height: height as usize, reduced: 1, color: Color::Gray, orientation };
        if walked.reducible {
            let (mut tall, mut wide) = (height as usize, width as usize);
            if swaps_sides(orientation) {
                (tall, wide) = (wide, tall);
            }
            let reduction = (wanted.reduction)(tall, wide);
            if let Some((pixels, kind)) = reduced::decode(bytes, (width, height), reduction) {
                *buffer = pixels;
                let color = reduce(buffer, kind, wanted.color).unwrap_or(Color::Gray);
                return Ok(Decoded { reduced: reduction, color, ..whole });
            }
        }
        // Zeroed every time: a decoder that leaves a hole must not show the image before.
        buffer.clear();
        buffer.resize(total as usize, 0);
        decoder.read_image(buffer).map_err(|e| explain(e, format, limits))?;
        let unknown = || error::unsupported(name(format), &format!("pixels of type {kind:?}"));
        let color = reduce(buffer, kind, wanted.color).ok_or_else(unknown)?;
        Ok(Decoded { color, ..whole })
    })
}

/// Size and channels from the header.
pub fn probe(bytes: &[u8], limits: &Limits) -> Result<Probe, ItemError> {
    #[cfg(feature = "heif")]
    if let Some(name) = brand::known(bytes) {
        limits.check_bytes(bytes.len())?;
        return crate::heif::probe(bytes, name, limits);
    }
    let format = format_of(bytes, limits)?;
    contained(format, || {
        let walked = walk(bytes, format, limits)?;
        let (decoder, orientation) = open(&walked, format, limits)?;
        let channels = decoder.color_type().channel_count();
        let (mut width, mut height) = decoder.dimensions();
        if swaps_sides(orientation) {
            (width, height) = (height, width);
        }
        Ok(Probe { width, height, channels })
    })
}

/// True where the orientation turns the image on its side.
pub fn swaps_sides(orientation: Orientation) -> bool {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    matches!(orientation, Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH)
}

fn format_of(bytes: &[u8], limits: &Limits) -> Result<ImageFormat, ItemError> {
    limits.check_bytes(bytes.len())?;
    if let Some(name) = brand::known(bytes) {
        return Err(error::not_read(name));
    }
    match image::guess_format(bytes) {
        Ok(format) if format.reading_enabled() => Ok(format),
        _ => Err(error::not_an_image()),
    }
}

fn contained<T>(format: ImageFormat, body: impl FnOnce() -> Result<T, ItemError>) -> Result<T, ItemError> {
    contain(body).unwrap_or_else(|| Err(error::decoder_failed(name(format))))
}

/// A decoder that has read the header, with the claimed size checked, and the orientation.
fn open<'a>(
    walked: &'a Walk<'_>,
    format: ImageFormat,
    limits: &Limits,
) -> Result<(Box<dyn ImageDecoder + 'a>, Orientation), ItemError> {
    if format == ImageFormat::WebP && !walked.complete {
        // Its decoder would ask for as much memory as a chunk claims to need.
        return Err(error::truncated(name(format)));
    }
    let failed = |e| explain(e, format, limits);
    // Sides are not limited here but below, where the size is known and can be told.
    let mut decoder_limits = image::Limits::no_limits();
    decoder_limits.max_alloc = Some(limits.max_alloc());
    let content = Cursor::new(&walked.bytes[..]);
    let (decoder, orientation): (Box<dyn ImageDecoder + 'a>, _) = if format == ImageFormat::Tiff {
        let mut decoder = TiffDecoder::new(content).map_err(failed)?;
        // While its own limits hold: ours would let one tag fill the memory for all pixels.
        let orientation = decoder.orientation().ok();
        limits.check_size(decoder.dimensions().0, decoder.dimensions().1)?;
        decoder.set_limits(decoder_limits).map_err(failed)?;
        (Box::new(decoder), orientation)
    } else {
        let mut reader = ImageReader::with_format(content, format);
        reader.limits(decoder_limits);
        let mut decoder = reader.into_decoder().map_err(failed)?;
        limits.check_size(decoder.dimensions().0, decoder.dimensions().1)?;
        let orientation = walked.orientation.or_else(|| decoder.orientation().ok());
        (Box::new(decoder), orientation)
    };
    match walked.complete {
        true => Ok((decoder, orientation.unwrap_or(Orientation::NoTransforms))),
        false => Err(error::truncated(name(format))),
    }
}

fn too_much_memory(format: ImageFormat, limits: &Limits) -> ItemError {
    error::too_much_memory(name(format), limits.max_alloc())
}

fn explain(cause: image::ImageError, format: ImageFormat, limits: &Limits) -> ItemError {
    if let image::ImageError::Limits(_) = cause {
        return too_much_memory(format, limits);
    }
    let format = name(format);
    if ends_early(&cause) {
        return error::truncated(format);
    }
    match cause {
        image::ImageError::Unsupported(e) => error::unsupported(format, &one_line(&e)),
        image::ImageError::Decoding(e) => error::damaged(format, &one_line(&e)),
        other => error::damaged(format, &one_line(&other)),
    }
}

/// Decoders say "the data ended" in several ways: as an I/O error somewhere in the chain, or in words.
fn ends_early(error: &image::ImageError) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(e) = next {
        if e.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::UnexpectedEof) {
            return true;
        }
        if let Some(image::ImageError::IoError(e)) = e.downcast_ref()
            && e.kind() == ErrorKind::UnexpectedEof
        {
            return true;
        }
        let text = e.to_string().to_ascii_lowercase();
        if ["unexpected end", "unexpected eof", "exhausted", "no more bytes", "premature", "failed to fill"]
            .iter()
            .any(|words| text.contains(words))
        {
            return true;
        }
        next = e.source();
    }
    false
}

fn one_line(error: &dyn Error) -> String {
    let text = error.to_string();
    // "Format error decoding Png: ..." says twice what the sentence around it says already.
    let text = match text.split_once(": ") {
        Some((before, after)) if before.starts_with("Format error decoding") => after,
        _ => &text,
    };
    // Some decoders give their words in quotes, as a program would write them.
    let text = text.trim().trim_matches('"').trim_end_matches('.');
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_WORDS).collect()
}

fn name(format: ImageFormat) -> &'static str {
    match format {
        ImageFormat::Png => "PNG",
        ImageFormat::Jpeg => "JPEG",
        ImageFormat::Gif => "GIF",
        ImageFormat::Bmp => "BMP",
        ImageFormat::WebP => "WebP",
        ImageFormat::Tiff => "TIFF",
        ImageFormat::Pnm => "PNM",
        _ => "image",
    }
}
