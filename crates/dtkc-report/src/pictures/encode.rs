//! Pixels to files that browsers read.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use thiserror::Error;

/// Why a picture could not be made.
#[derive(Debug, Error)]
pub enum PictureError {
    /// The pixels are not those of such a picture.
    #[error("a picture of {width}x{height}x{channels} cannot be made of {bytes} bytes")]
    Pixels {
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
        /// Values of a pixel.
        channels: usize,
        /// Bytes that were given.
        bytes: usize,
    },
    /// The encoder refused them.
    #[error("a picture could not be encoded: {0}")]
    Encode(#[from] image::ImageError),
}

/// Pixels, gray or RGB, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 or 3.
    pub channels: usize,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Pixels {
    fn color(&self) -> Result<ExtendedColorType, PictureError> {
        let Self { width, height, channels, .. } = *self;
        let color = match channels {
            1 => Some(ExtendedColorType::L8),
            3 => Some(ExtendedColorType::Rgb8),
            _ => None,
        };
        let bytes = self.bytes.len();
        color.filter(|_| bytes == width * height * channels && bytes > 0).ok_or(PictureError::Pixels {
            width,
            height,
            channels,
            bytes,
        })
    }

    /// As JPEG.
    pub(super) fn jpeg(&self, quality: u8) -> Result<Vec<u8>, PictureError> {
        let color = self.color()?;
        let mut bytes = Cursor::new(Vec::new());
        JpegEncoder::new_with_quality(&mut bytes, quality).encode(
            &self.bytes,
            self.width as u32,
            self.height as u32,
            color,
        )?;
        Ok(bytes.into_inner())
    }

    fn png(&self) -> Result<Vec<u8>, PictureError> {
        let color = self.color()?;
        let mut bytes = Cursor::new(Vec::new());
        let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, FilterType::Adaptive);
        encoder.write_image(&self.bytes, self.width as u32, self.height as u32, color)?;
        Ok(bytes.into_inner())
    }
}

/// A picture as a file of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// `image/png` or `image/jpeg`.
    pub mime: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
}

impl Picture {
    /// Without loss: for drawings and for pictures of few pixels.
    pub fn sharp(pixels: &Pixels) -> Result<Self, PictureError> {
        Ok(Self { width: pixels.width, height: pixels.height, mime: "image/png", bytes: pixels.png()? })
    }

    /// As JPEG of that quality, from 1 to 100.
    pub fn small(pixels: &Pixels, quality: u8) -> Result<Self, PictureError> {
        Ok(Self { width: pixels.width, height: pixels.height, mime: "image/jpeg", bytes: pixels.jpeg(quality)? })
    }

    /// As an address that holds the picture itself.
    pub fn address(&self) -> String {
        format!("data:{};base64,{}", self.mime, STANDARD.encode(&self.bytes))
    }

    /// Whether it is so small that it should be enlarged without blurring.
    pub fn is_tiny(&self) -> bool {
        self.width.max(self.height) <= 64
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pixels_come_back() {
        let pixels = Pixels { width: 3, height: 2, channels: 1, bytes: vec![0, 50, 100, 150, 200, 250] };
        let sharp = Picture::sharp(&pixels).unwrap();
        let (_, data) = sharp.address().split_once("base64,").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        let back = image::load_from_memory(&STANDARD.decode(data).unwrap()).unwrap().to_luma8();
        assert_eq!(back.into_raw(), pixels.bytes);
        let red = Pixels { width: 16, height: 16, channels: 3, bytes: [200, 10, 10].repeat(256) };
        let small = Picture::small(&red, 80).unwrap();
        assert!(small.address().starts_with("data:image/jpeg;base64,"));
        assert!(image::load_from_memory(&small.bytes).unwrap().to_rgb8().get_pixel(8, 8)[0] > 180);
    }

    #[test]
    fn wrong_pixels_are_refused_in_a_sentence() {
        let wrong = Pixels { width: 3, height: 2, channels: 2, bytes: vec![0; 12] };
        assert!(Picture::sharp(&wrong).unwrap_err().to_string().contains("3x2x2"));
        let none = Pixels { width: 0, height: 0, channels: 1, bytes: Vec::new() };
        assert!(Picture::small(&none, 50).is_err());
    }
}
