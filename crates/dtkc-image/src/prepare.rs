//! From bytes to the wanted pixels.

use dtkc_item::{Color, ImageSpec};
use image::metadata::Orientation;

use crate::color::rgb_to_gray;
use crate::decode::{Decoded, decode};
use crate::fit::{Fitter, Picture};
use crate::{ImageError, Limits};

/// A buffer larger than this is given back after use, so that one huge photo does not stay for ever.
const KEEP_BYTES: usize = 32 << 20;

/// Turns encoded images into pixels of one [`ImageSpec`]. Owns the resizer and its buffers, which are
/// reused from image to image: keep one per thread.
///
/// ```
/// use dtkc_image::{Color, Limits, Preparer, Resize, ImageSpec};
///
/// let shape = ImageSpec { height: 2, width: 2, color: Color::Gray, resize: Resize::Fit };
/// let mut preparer = Preparer::new(shape, Limits::default());
/// let pgm = b"P5 4 4 255\n\0\0\xff\xff\0\0\xff\xff\0\0\xff\xff\0\0\xff\xff";
/// let pixels = preparer.prepare(pgm)?;
/// assert_eq!(pixels.len(), shape.bytes());
/// assert!(pixels[0] < pixels[1]);
/// # Ok::<(), dtkc_image::ImageError>(())
/// ```
#[derive(Debug)]
pub struct Preparer {
    shape: ImageSpec,
    limits: Limits,
    pixels: Vec<u8>,
    fitter: Fitter,
}

impl Preparer {
    /// A preparer for images of that shape, within those limits.
    pub fn new(shape: ImageSpec, limits: Limits) -> Self {
        Self { shape, limits, pixels: Vec::new(), fitter: Fitter::default() }
    }

    /// The wanted shape.
    pub fn shape(&self) -> ImageSpec {
        self.shape
    }

    /// The pixels of one encoded image: `height * width * channels` bytes, row by row.
    pub fn prepare(&mut self, bytes: &[u8]) -> Result<Vec<u8>, ImageError> {
        let mut out = vec![0; self.shape.bytes()];
        self.prepare_into(bytes, &mut out)?;
        Ok(out)
    }

    /// Like [`Preparer::prepare`], into a buffer of exactly [`ImageSpec::bytes`] bytes. After an error the
    /// buffer's content is not defined.
    pub fn prepare_into(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<(), ImageError> {
        self.check_out(out)?;
        let decoded = decode(bytes, &self.limits, self.shape.color, &mut self.pixels);
        let result = decoded.and_then(|Decoded { width, height, color, orientation }| {
            let picture = Picture { pixels: &self.pixels, height, width, color, orientation };
            self.fitter.fit(&picture, &self.shape, out)
        });
        if self.pixels.capacity() > KEEP_BYTES {
            self.pixels = Vec::new();
        }
        result
    }

    /// The same for pixels that need no decoding: `height * width * color.channels()` bytes.
    pub fn resize_pixels(
        &mut self,
        pixels: &[u8],
        height: usize,
        width: usize,
        color: Color,
        out: &mut [u8],
    ) -> Result<(), ImageError> {
        self.check_out(out)?;
        let sides = (u32::try_from(width).unwrap_or(u32::MAX), u32::try_from(height).unwrap_or(u32::MAX));
        self.limits.check_size(sides.0, sides.1)?;
        let expected = height * width * color.channels();
        if pixels.len() != expected {
            return Err(ImageError::WrongLength { what: "pixel", found: pixels.len(), expected });
        }
        let orientation = Orientation::NoTransforms;
        if color == Color::Rgb && self.shape.color == Color::Gray {
            rgb_to_gray(pixels, &mut self.pixels);
            let picture = Picture { pixels: &self.pixels, height, width, color: Color::Gray, orientation };
            return self.fitter.fit(&picture, &self.shape, out);
        }
        self.fitter.fit(&Picture { pixels, height, width, color, orientation }, &self.shape, out)
    }

    fn check_out(&self, out: &[u8]) -> Result<(), ImageError> {
        let expected = self.shape.bytes();
        if expected == 0 {
            let (width, height) = (self.shape.width as u32, self.shape.height as u32);
            return Err(ImageError::NoPixels { width, height });
        }
        if out.len() != expected {
            return Err(ImageError::WrongLength { what: "output", found: out.len(), expected });
        }
        Ok(())
    }
}
