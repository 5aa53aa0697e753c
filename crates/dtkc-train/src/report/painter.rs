//! Items as small pictures.

use dtkc_dataset::Dataset;
use dtkc_draw::{Measure, Pictures, Style};
use dtkc_image::{Limits, Preparer};
use dtkc_item::{Color, ImageShape, ImageSpec, ItemRef, ItemShape, Resize};
use dtkc_report::Pixels;

use crate::backbone::Recipe;
use crate::error::TrainError;
use crate::spread::spread;

/// Sequences by which the scale of drawings is chosen.
const MEASURED: usize = 256;
/// Steps that are drawn of a sequence: far more than a picture is wide.
const STEPS: usize = 4096;

/// Draws items of one dataset.
pub(super) struct Painter {
    /// The longest side of pictures on the map.
    pub(super) side: usize,
    source: Source,
    /// What brings pixels to the size that was last asked for.
    resizer: Option<Preparer>,
}

enum Source {
    Images(ImageShape),
    /// Images that features were made of.
    Described {
        images: Box<Dataset>,
        shape: ImageShape,
    },
    Sequences {
        dim: usize,
        pictures: Pictures,
    },
}

impl Painter {
    /// For the items of a dataset. Sequences are drawn on one scale; of features the images are shown that they were made of.
    pub(super) fn new(dataset: &Dataset) -> Result<Self, TrainError> {
        let source = match dataset.shape() {
            ItemShape::Image(shape) => Source::Images(shape),
            ItemShape::Sequence { dim } => {
                let measured = spread(dataset.len(), MEASURED);
                let mut measure = Measure::new(dim, Style::of(dim, false), false, measured.len());
                for index in measured {
                    measure.add(&thinned(&dataset.read_sequence(index)?, dim));
                }
                Source::Sequences { dim, pictures: measure.finish() }
            }
            ItemShape::Features(_) => {
                let images = Box::new(Recipe::of(dataset)?.images(dataset)?);
                let shape = images.require_images()?;
                Source::Described { images, shape }
            }
        };
        Ok(Self { side: 0, source, resizer: None })
    }

    /// The longest side of an item's own picture.
    pub(super) fn source(&self) -> usize {
        match &self.source {
            Source::Images(shape) | Source::Described { shape, .. } => shape.height.max(shape.width),
            Source::Sequences { pictures, .. } => pictures.size().0.max(pictures.size().1),
        }
    }

    /// Whether pictures are drawings, with much paper and few lines.
    pub(super) fn is_drawing(&self) -> bool {
        matches!(self.source, Source::Sequences { .. })
    }

    /// The item of that number, its longest side `side`; never larger than it is.
    pub(super) fn paint(&mut self, number: usize, item: ItemRef<'_>, side: usize) -> Result<Pixels, TrainError> {
        match (&self.source, item) {
            (Source::Images(shape), ItemRef::Pixels(pixels)) => {
                let shape = *shape;
                self.resized(pixels, shape, side)
            }
            (Source::Sequences { dim, pictures }, ItemRef::Steps(values)) => {
                let (height, width) = pictures.size();
                let drawn = pictures.draw(&thinned(values, *dim));
                self.resized(&drawn, ImageShape { height, width, channels: 3 }, side)
            }
            (Source::Described { images, shape }, ItemRef::Features(_)) => {
                let (pixels, shape) = (images.read(&[number])?, *shape);
                self.resized(&pixels, shape, side)
            }
            _ => Err(TrainError::Mismatch("an item of another kind than its dataset".into())),
        }
    }

    /// Pixels whose longest side is at most `side`.
    pub(super) fn resized(&mut self, pixels: &[u8], shape: ImageShape, side: usize) -> Result<Pixels, TrainError> {
        let (width, height) = fit(shape, side);
        let channels = shape.channels;
        if (width, height) == (shape.width, shape.height) {
            return Ok(Pixels { width, height, channels, bytes: pixels.to_vec() });
        }
        let color = if channels == 1 { Color::Gray } else { Color::Rgb };
        let spec = ImageSpec { height, width, color, resize: Resize::Stretch };
        let resizer = match &mut self.resizer {
            Some(resizer) if resizer.spec() == spec => resizer,
            other => other.insert(Preparer::new(spec, Limits::default())),
        };
        let mut bytes = vec![0; width * height * channels];
        resizer.resize_pixels(pixels, shape, &mut bytes).map_err(|error| {
            TrainError::Mismatch(format!("an image cannot be made smaller for the report: {error}"))
        })?;
        Ok(Pixels { width, height, channels, bytes })
    }
}

/// Width and height with that longest side, never enlarged.
fn fit(shape: ImageShape, side: usize) -> (usize, usize) {
    let longest = shape.width.max(shape.height).max(1);
    if side >= longest {
        return (shape.width, shape.height);
    }
    let scaled = |length: usize| ((length * side) as f64 / longest as f64).round().max(1.0) as usize;
    (scaled(shape.width), scaled(shape.height))
}

/// Some steps of a long sequence, evenly.
fn thinned(values: &[f32], dim: usize) -> Vec<f32> {
    let dim = dim.max(1);
    let every = (values.len() / dim).div_ceil(STEPS).max(1);
    values.chunks_exact(dim).step_by(every).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_their_proportions_and_nothing_is_enlarged() {
        let shape = |height, width| ImageShape { height, width, channels: 1 };
        assert_eq!(fit(shape(28, 28), 64), (28, 28));
        assert_eq!(fit(shape(100, 400), 64), (64, 16));
        assert_eq!(fit(shape(3, 4000), 16), (16, 1));
    }

    #[test]
    fn long_sequences_are_thinned() {
        assert_eq!(thinned(&[1.0, 2.0, 3.0, 4.0], 2), [1.0, 2.0, 3.0, 4.0]);
        assert!(thinned(&vec![0.5; 3_000_000], 3).len() <= 3 * STEPS);
    }
}
