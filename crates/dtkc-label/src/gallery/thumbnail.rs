//! Small pictures that live inside the page.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dtkc_image::{Limits, Preparer, probe};
use dtkc_item::{Color, ImageShape, ImageSpec, Resize};
use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageFormat};

/// The longest side: sharp on a dense screen at half this size.
const SIDE: u32 = 192;
/// Below this, pixels are shown as they are.
const TINY: u32 = 64;

/// A picture for an `<img>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thumbnail {
    /// A `data:` address.
    pub source: String,
    /// Whether it is so small that it should be enlarged without blurring.
    pub tiny: bool,
}

/// From an encoded image of any size.
pub fn from_encoded(bytes: &[u8], limits: Limits) -> Option<Thumbnail> {
    let size = probe(bytes, &limits).ok()?;
    let color = if size.channels < 3 { Color::Gray } else { Color::Rgb };
    let (width, height) = fit(size.width, size.height);
    let spec = ImageSpec { height: height as usize, width: width as usize, color, resize: Resize::Stretch };
    let pixels = Preparer::new(spec, limits).prepare(bytes).ok()?;
    encode(&pixels, spec)
}

/// From a dataset's pixels.
pub fn from_pixels(pixels: &[u8], shape: ImageShape) -> Option<Thumbnail> {
    let color = shape.color()?;
    let (width, height) = fit(shape.width as u32, shape.height as u32);
    let spec = ImageSpec { height: height as usize, width: width as usize, color, resize: Resize::Stretch };
    let mut resized = vec![0; spec.bytes()];
    let mut preparer = Preparer::new(spec, Limits::default());
    preparer.resize_pixels(pixels, shape, &mut resized).ok()?;
    encode(&resized, spec)
}

/// From a drawing, which should stay sharp.
pub fn as_png(pixels: &[u8], spec: ImageSpec) -> Option<Thumbnail> {
    let color = if spec.color == Color::Gray { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
    let mut bytes = Cursor::new(Vec::new());
    let (width, height) = (spec.width as u32, spec.height as u32);
    image::write_buffer_with_format(&mut bytes, pixels, width, height, color, ImageFormat::Png).ok()?;
    let source = format!("data:image/png;base64,{}", STANDARD.encode(bytes.into_inner()));
    Some(Thumbnail { source, tiny: false })
}

/// The size within [`SIDE`], never enlarged.
fn fit(width: u32, height: u32) -> (u32, u32) {
    let scale = (f64::from(SIDE) / f64::from(width.max(height).max(1))).min(1.0);
    let side = |n: u32| ((f64::from(n) * scale).round() as u32).max(1);
    (side(width), side(height))
}

fn encode(pixels: &[u8], spec: ImageSpec) -> Option<Thumbnail> {
    let (width, height) = (spec.width as u32, spec.height as u32);
    if width.max(height) <= TINY {
        return as_png(pixels, spec).map(|drawn| Thumbnail { tiny: true, ..drawn });
    }
    let color = if spec.color == Color::Gray { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
    let mut bytes = Cursor::new(Vec::new());
    JpegEncoder::new_with_quality(&mut bytes, 80).encode(pixels, width, height, color).ok()?;
    let source = format!("data:image/jpeg;base64,{}", STANDARD.encode(bytes.into_inner()));
    Some(Thumbnail { source, tiny: false })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn decode(thumbnail: &Thumbnail) -> image::DynamicImage {
        let (_, data) = thumbnail.source.split_once("base64,").unwrap();
        image::load_from_memory(&STANDARD.decode(data).unwrap()).unwrap()
    }

    #[test]
    fn large_images_shrink_and_small_ones_stay() {
        let mut png = Cursor::new(Vec::new());
        image::RgbImage::from_pixel(800, 200, image::Rgb([200, 10, 10])).write_to(&mut png, ImageFormat::Png).unwrap();
        let large = from_encoded(png.get_ref(), Limits::default()).unwrap();
        assert!(large.source.starts_with("data:image/jpeg;base64,") && !large.tiny);
        let picture = decode(&large).to_rgb8();
        assert_eq!(picture.dimensions(), (192, 48));
        assert!(picture.get_pixel(90, 20)[0] > 180);
        let small = from_pixels(&[7; 28 * 20], ImageShape { height: 28, width: 20, channels: 1 }).unwrap();
        assert!(small.tiny);
        assert_eq!(decode(&small).to_luma8(), image::GrayImage::from_pixel(20, 28, image::Luma([7])));
        assert_eq!(from_encoded(b"no image", Limits::default()), None);
    }
}
