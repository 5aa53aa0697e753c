//! JPEGs at a half, a quarter or an eighth of their size: the cosine transform gives small pictures at once.
//!
//! A photo of twelve million pixels that becomes 128 x 128 need not be unpacked whole. Only what cameras write is decoded
//! so ([`Walk::reducible`](crate::walk::Walk)); everything else, and whatever fails here, goes the usual way, whose cost was
//! admitted. A progressive JPEG gains nothing: its scans take the time.

use image::ColorType;
use jpeg_decoder::{ColorTransform, Decoder, PixelFormat};

use crate::contain::contain;

/// Pictures of fewer pixels are decoded whole: they cost little, and their pixels stay what they were.
const LEAST_PIXELS: usize = 1 << 20;
/// The reduced picture has at least so many pixels, along a side, for one of the result, so that the filter behind it sees
/// nearly what it would see of the whole.
const FINER: f64 = 4.0;

/// By how much a picture of that size may be reduced where it will be made smaller by the factor `scale` along that side
/// where it shrinks least.
pub fn reduction(height: usize, width: usize, scale: f64) -> usize {
    if height * width < LEAST_PIXELS {
        return 1;
    }
    [8, 4, 2].into_iter().find(|&by| by as f64 * FINER * scale <= 1.0).unwrap_or(1)
}

/// The pixels of a JPEG of that width and height at `1 / by` of its size, rounded up, and their type; `None` where this
/// does not work.
pub fn decode(bytes: &[u8], (width, height): (u32, u32), by: usize) -> Option<(Vec<u8>, ColorType)> {
    if by <= 1 {
        return None;
    }
    contain(|| read(bytes, (u16::try_from(width).ok()?, u16::try_from(height).ok()?), by)).flatten()
}

fn read(bytes: &[u8], (width, height): (u16, u16), by: usize) -> Option<(Vec<u8>, ColorType)> {
    let mut decoder = Decoder::new(bytes);
    let by = u16::try_from(by).ok()?;
    let wanted = (width.div_ceil(by), height.div_ceil(by));
    if decoder.scale(wanted.0, wanted.1).ok()? != wanted {
        return None;
    }
    let kind = match decoder.info()?.pixel_format {
        PixelFormat::L8 => ColorType::L8,
        PixelFormat::RGB24 => {
            // As the decoder of whole pictures sees them, whatever their components are called.
            decoder.set_color_transform(ColorTransform::YCbCr);
            ColorType::Rgb8
        }
        PixelFormat::L16 | PixelFormat::CMYK32 => return None,
    };
    let pixels = decoder.decode().ok()?;
    let whole = usize::from(wanted.0) * usize::from(wanted.1) * usize::from(kind.channel_count());
    (pixels.len() == whole).then_some((pixels, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decoded_stays_finer_than_what_is_wanted() {
        assert_eq!(reduction(3000, 4000, 125.0 / 4000.0), 8);
        assert_eq!(reduction(3000, 4000, 126.0 / 4000.0), 4);
        assert_eq!(reduction(3000, 4000, 250.0 / 4000.0), 4);
        assert_eq!(reduction(3000, 4000, 0.125), 2);
        assert_eq!(reduction(3000, 4000, 0.126), 1);
        assert_eq!(reduction(1023, 1024, 0.01), 1, "small pictures are decoded whole");
    }
}
