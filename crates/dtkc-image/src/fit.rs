//! Resizing, orientation and placement.

use dtkc_item::{Color, ImageSpec, ItemError, Resize};
use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{CropBox, FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};
use image::metadata::Orientation;

use crate::decode::swaps_sides;
use crate::error;

/// Pixels as they lie in memory, still to be turned as `orientation` says.
pub struct Picture<'a> {
    pub pixels: &'a [u8],
    /// Rows and columns of the whole picture.
    pub height: usize,
    pub width: usize,
    /// How many of them, rounded up, are one of `pixels`.
    pub reduced: usize,
    pub color: Color,
    pub orientation: Orientation,
}

impl Picture<'_> {
    /// Height and width once it is turned.
    pub fn upright(&self) -> (usize, usize) {
        let Size { height, width } = Size { height: self.height, width: self.width }.turned(self.orientation);
        (height, width)
    }
}

/// Brings pictures to a size.
#[derive(Debug, Default)]
pub struct Fitter {
    resizer: Resizer,
    scaled: Vec<u8>,
}

/// A height and a width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub height: usize,
    pub width: usize,
}

impl Size {
    fn turned(self, orientation: Orientation) -> Self {
        if swaps_sides(orientation) { Self { height: self.width, width: self.height } } else { self }
    }
}

impl Fitter {
    /// Fills `out`, which has exactly the bytes of `spec`. The picture is gray or has the wanted colour.
    ///
    /// The small result is turned rather than the large original: the filter is symmetric, so that the
    /// pixels are the same but for rounding, and a photo is turned at no cost.
    pub fn fit(&mut self, picture: &Picture<'_>, spec: &ImageSpec, out: &mut [u8]) -> Result<(), ItemError> {
        let wanted = Size { height: spec.height, width: spec.width };
        let upright = Size { height: picture.height, width: picture.width }.turned(picture.orientation);
        let visible = match spec.resize {
            Resize::Fit => inside(upright, wanted),
            Resize::Stretch | Resize::Crop => wanted,
        };
        let scaled = visible.turned(picture.orientation);
        let straight = picture.orientation == Orientation::NoTransforms && picture.color == spec.color;
        if straight && visible == wanted {
            return self.resize(picture, scaled, spec.resize, out);
        }
        let mut buffer = std::mem::take(&mut self.scaled);
        buffer.clear();
        buffer.resize(scaled.height * scaled.width * picture.color.channels(), 0);
        let result = self.resize(picture, scaled, spec.resize, &mut buffer);
        if result.is_ok() {
            let placed =
                Placed { pixels: &buffer, size: scaled, color: picture.color, orientation: picture.orientation };
            placed.draw(visible, spec, out);
        }
        self.scaled = buffer;
        result
    }

    fn resize(&mut self, picture: &Picture<'_>, to: Size, how: Resize, out: &mut [u8]) -> Result<(), ItemError> {
        match picture.color {
            Color::Gray => self.resize_pixels::<U8>(picture, to, how, out),
            Color::Rgb => self.resize_pixels::<U8x3>(picture, to, how, out),
        }
    }

    /// By type and not by value: the library's own choice among all kinds of pixels compiles each of them, for minutes.
    fn resize_pixels<P: PixelTrait>(
        &mut self,
        picture: &Picture<'_>,
        to: Size,
        how: Resize,
        out: &mut [u8],
    ) -> Result<(), ItemError> {
        let failed = |reason: &dyn std::error::Error| error::damaged("image", &reason.to_string());
        let [width, height] = [picture.width, picture.height].map(|side| side.div_ceil(picture.reduced) as u32);
        let source = TypedImageRef::<P>::from_buffer(width, height, picture.pixels).map_err(|e| failed(&e))?;
        let mut target =
            TypedImage::<P>::from_buffer(to.width as u32, to.height as u32, out).map_err(|e| failed(&e))?;
        let mut options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
        match (how, picture.reduced) {
            (Resize::Crop, 1) => options = options.fit_into_destination(None),
            (_, 1) => {}
            (_, by) => {
                // The last of the small pixels may lie half outside the picture.
                let CropBox { left, top, width, height } = part(picture, to, how);
                let by = by as f64;
                options = options.crop(left / by, top / by, width / by, height / by);
            }
        }
        self.resizer.resize_typed(&source, &mut target, &options).map_err(|e| failed(&e))
    }
}

/// What is seen of a picture, in its own pixels.
fn part(picture: &Picture<'_>, to: Size, how: Resize) -> CropBox {
    let (width, height) = (picture.width as u32, picture.height as u32);
    match how {
        Resize::Crop => CropBox::fit_src_into_dst_size(width, height, to.width as u32, to.height as u32, None),
        Resize::Fit | Resize::Stretch => CropBox { left: 0.0, top: 0.0, width: width.into(), height: height.into() },
    }
}

/// How long a side of an upright picture becomes, as a part of what it was, along the side where it shrinks least.
pub fn scale(upright: Size, spec: &ImageSpec) -> f64 {
    let wanted = Size { height: spec.height, width: spec.width };
    let visible = match spec.resize {
        Resize::Fit => inside(upright, wanted),
        // What is cut away is made smaller, too.
        Resize::Stretch | Resize::Crop => wanted,
    };
    (visible.height as f64 / upright.height as f64).max(visible.width as f64 / upright.width as f64)
}

/// The largest size with the proportions of `picture` inside `wanted`.
fn inside(picture: Size, wanted: Size) -> Size {
    let scale = (wanted.height as f64 / picture.height as f64).min(wanted.width as f64 / picture.width as f64);
    let side = |length: usize, limit: usize| ((length as f64 * scale).round() as usize).clamp(1, limit);
    Size { height: side(picture.height, wanted.height), width: side(picture.width, wanted.width) }
}

/// The scaled picture, to be turned, centred on black and brought to the wanted colour.
struct Placed<'a> {
    pixels: &'a [u8],
    size: Size,
    color: Color,
    orientation: Orientation,
}

impl Placed<'_> {
    fn draw(&self, visible: Size, spec: &ImageSpec, out: &mut [u8]) {
        out.fill(0);
        let (top, left) = ((spec.height - visible.height) / 2, (spec.width - visible.width) / 2);
        let (from, to) = (self.color.channels(), spec.color.channels());
        for y in 0..visible.height {
            let start = ((top + y) * spec.width + left) * to;
            let row = &mut out[start..start + visible.width * to];
            for (x, pixel) in row.chunks_exact_mut(to).enumerate() {
                let at = self.source_of(x, y) * from;
                if from == to {
                    pixel.copy_from_slice(&self.pixels[at..at + to]);
                } else {
                    pixel.fill(self.pixels[at]);
                }
            }
        }
    }

    /// The stored pixel that is seen at column `x` and row `y` of the upright picture.
    fn source_of(&self, x: usize, y: usize) -> usize {
        let Size { height, width } = self.size;
        let (column, row) = match self.orientation {
            Orientation::NoTransforms => (x, y),
            Orientation::FlipHorizontal => (width - 1 - x, y),
            Orientation::Rotate180 => (width - 1 - x, height - 1 - y),
            Orientation::FlipVertical => (x, height - 1 - y),
            Orientation::Rotate90FlipH => (y, x),
            Orientation::Rotate90 => (y, height - 1 - x),
            Orientation::Rotate270FlipH => (width - 1 - y, height - 1 - x),
            Orientation::Rotate270 => (width - 1 - y, x),
        };
        row * width + column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proportions_are_kept_and_nothing_vanishes() {
        let wanted = Size { height: 28, width: 28 };
        assert_eq!(inside(Size { height: 480, width: 640 }, wanted), Size { height: 21, width: 28 });
        assert_eq!(inside(Size { height: 14, width: 7 }, wanted), Size { height: 28, width: 14 });
        assert_eq!(inside(Size { height: 16384, width: 1 }, wanted), Size { height: 28, width: 1 });
        assert_eq!(inside(Size { height: 5, width: 5 }, Size { height: 8, width: 2 }), Size { height: 2, width: 2 });
    }
}
