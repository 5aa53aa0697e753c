//! From bytes to the wanted pixels.

use dtkc_item::{Color, ImageShape, ImageSpec, ItemError};
use image::metadata::Orientation;

use crate::color::rgb_to_gray;
use crate::decode::{Decoded, Wanted, decode, swaps_sides};
use crate::fingerprint::Fingerprinter;
use crate::fit::{Fitter, Picture, Size, scale};
use crate::{Cost, Fingerprint, Limits, error, reduced};

/// A buffer larger than this is given back after use, so that one huge photo does not stay for ever.
const KEEP_BYTES: usize = 32 << 20;

/// Turns encoded images into pixels as one [`ImageSpec`] wants them. Owns the resizer and its buffers, which are
/// reused from image to image: keep one per thread.
///
/// ```
/// use dtkc_image::{Limits, Preparer};
/// use dtkc_item::{Color, ImageSpec, Resize};
///
/// let spec = ImageSpec { height: 2, width: 2, color: Color::Gray, resize: Resize::Fit };
/// let mut preparer = Preparer::new(spec, Limits::default());
/// let pgm = b"P5 4 4 255\n\0\0\xff\xff\0\0\xff\xff\0\0\xff\xff\0\0\xff\xff";
/// let pixels = preparer.prepare(pgm)?;
/// assert_eq!(pixels.len(), spec.bytes());
/// assert!(pixels[0] < pixels[1]);
/// # Ok::<(), dtkc_item::ItemError>(())
/// ```
#[derive(Debug)]
pub struct Preparer {
    spec: ImageSpec,
    limits: Limits,
    pixels: Vec<u8>,
    fitter: Fitter,
    prints: Option<Prints>,
    size: (usize, usize),
}

/// Where fingerprints are asked for: what takes them, and the last one.
#[derive(Debug, Default)]
struct Prints {
    taker: Fingerprinter,
    last: Option<Fingerprint>,
}

impl Preparer {
    /// A preparer for such images, within those limits.
    pub fn new(spec: ImageSpec, limits: Limits) -> Self {
        Self { spec, limits, pixels: Vec::new(), fitter: Fitter::default(), prints: None, size: (0, 0) }
    }

    /// The same, which takes fingerprints, too: of every image that it makes ready, before it is brought to its size.
    pub fn with_fingerprints(self) -> Self {
        Self { prints: Some(Prints::default()), ..self }
    }

    /// Another of the same kind, for one that a panic may have left half done.
    pub fn afresh(&self) -> Self {
        let new = Self::new(self.spec, self.limits);
        if self.prints.is_some() { new.with_fingerprints() } else { new }
    }

    /// The fingerprint of the image that was made ready last, once.
    pub fn take_fingerprint(&mut self) -> Option<Fingerprint> {
        self.prints.as_mut()?.last.take()
    }

    /// Width and height of the image that was made ready last: its own, as people see it, once it is turned.
    pub fn size(&self) -> (usize, usize) {
        self.size
    }

    /// What images are turned into.
    pub fn spec(&self) -> ImageSpec {
        self.spec
    }

    /// What one image may cost.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The pixels of one encoded image: `height * width * channels` bytes, row by row.
    pub fn prepare(&mut self, bytes: &[u8]) -> Result<Vec<u8>, ItemError> {
        let mut out = vec![0; self.spec.bytes()];
        self.prepare_into(bytes, &mut out)?;
        Ok(out)
    }

    /// Like [`Preparer::prepare`], into a buffer of exactly [`ImageSpec::bytes`] bytes. After an error the
    /// buffer's content is not defined.
    pub fn prepare_into(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<(), ItemError> {
        self.prepare_if(bytes, out, |_| Ok(()))
    }

    /// Like [`Preparer::prepare_into`], but asks first: `admit` hears what decoding will cost. Its refusal is the image's
    /// error.
    pub fn prepare_if(
        &mut self,
        bytes: &[u8],
        out: &mut [u8],
        admit: impl FnOnce(Cost) -> Result<(), ItemError>,
    ) -> Result<(), ItemError> {
        self.check_out(out)?;
        let prints = self.prints.is_some().then(|| Fingerprinter::spec(self.spec.color));
        let reduction = |height: usize, width: usize| {
            let specs = std::iter::once(&self.spec).chain(&prints);
            let least = specs.map(|spec| scale(Size { height, width }, spec)).fold(0.0, f64::max);
            reduced::reduction(height, width, least)
        };
        let wanted = Wanted { color: self.spec.color, reduction: &reduction };
        let decoded = decode(bytes, &self.limits, &wanted, &mut self.pixels, admit);
        let result = decoded.and_then(|Decoded { width, height, reduced, color, orientation }| {
            let picture = Picture { pixels: &self.pixels, height, width, reduced, color, orientation };
            self.size = if swaps_sides(orientation) { (height, width) } else { (width, height) };
            remember(&mut self.prints, &picture, bytes.len() as u64, &mut self.fitter)?;
            self.fitter.fit(&picture, &self.spec, out)
        });
        if self.pixels.capacity() > KEEP_BYTES {
            self.pixels = Vec::new();
        }
        result
    }

    /// The same for pixels that need no decoding: an image of `shape`.
    pub fn resize_pixels(&mut self, pixels: &[u8], shape: ImageShape, out: &mut [u8]) -> Result<(), ItemError> {
        self.check_out(out)?;
        let color = shape.color().ok_or_else(|| error::wrong_channels(shape.channels))?;
        let ImageShape { height, width, .. } = shape;
        self.size = (width, height);
        self.limits.check_size(side(width), side(height))?;
        if pixels.len() != shape.len() {
            return Err(error::wrong_length("pixel", pixels.len(), shape.len()));
        }
        let orientation = Orientation::NoTransforms;
        if color == Color::Rgb && self.spec.color == Color::Gray {
            rgb_to_gray(pixels, &mut self.pixels);
            let picture = Picture { pixels: &self.pixels, height, width, reduced: 1, color: Color::Gray, orientation };
            remember(&mut self.prints, &picture, 0, &mut self.fitter)?;
            return self.fitter.fit(&picture, &self.spec, out);
        }
        let picture = Picture { pixels, height, width, reduced: 1, color, orientation };
        remember(&mut self.prints, &picture, 0, &mut self.fitter)?;
        self.fitter.fit(&picture, &self.spec, out)
    }

    /// The fingerprint alone, of pixels that are as the model wants them; `None` where no fingerprints are asked for.
    pub fn fingerprint(&mut self, pixels: &[u8], shape: ImageShape) -> Result<Option<Fingerprint>, ItemError> {
        let color = shape.color().ok_or_else(|| error::wrong_channels(shape.channels))?;
        let ImageShape { height, width, .. } = shape;
        let picture = Picture { pixels, height, width, reduced: 1, color, orientation: Orientation::NoTransforms };
        remember(&mut self.prints, &picture, 0, &mut self.fitter)?;
        Ok(self.take_fingerprint())
    }

    fn check_out(&self, out: &[u8]) -> Result<(), ItemError> {
        let expected = self.spec.bytes();
        if expected == 0 {
            return Err(error::no_pixels(side(self.spec.width), side(self.spec.height)));
        }
        if out.len() != expected {
            return Err(error::wrong_length("output", out.len(), expected));
        }
        Ok(())
    }
}

/// Takes the fingerprint of a picture, where fingerprints are asked for.
fn remember(
    prints: &mut Option<Prints>,
    picture: &Picture<'_>,
    bytes: u64,
    fitter: &mut Fitter,
) -> Result<(), ItemError> {
    if let Some(Prints { taker, last }) = prints {
        *last = Some(taker.of(picture, bytes, fitter)?);
    }
    Ok(())
}

/// A side that does not fit is beyond every limit anyway.
fn side(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
