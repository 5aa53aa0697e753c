//! One item in the form in which it arrived, and how it becomes pixels or steps.

use std::path::PathBuf;

use dtkc_image::Preparer;
use dtkc_item::{ImageShape, ItemError, read_file};

use crate::SequenceSpec;

/// Something that a [`Worker`](crate::Worker) can make ready for the model. What panics in here costs its own item.
pub trait Prepare {
    /// For a model that takes images: writes the item's pixels into `out`, as the preparer wants them. Its limits hold
    /// before anything is decoded.
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError>;

    /// For a model that takes sequences: puts the item's steps behind `out`, once they are as `spec` says.
    fn prepare_sequence(&self, spec: &SequenceSpec, out: &mut Vec<f32>) -> Result<(), ItemError>;
}

/// An image where the model takes sequences.
pub(crate) fn not_a_sequence() -> ItemError {
    ItemError::new("not_a_sequence", "it is no sequence, and the model takes sequences")
}

/// A sequence where the model takes images.
pub(crate) fn not_an_image() -> ItemError {
    ItemError::new("not_an_image", "it is a sequence, and the model takes images")
}

impl<T: Prepare + ?Sized> Prepare for &T {
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError> {
        (**self).prepare(preparer, out)
    }

    fn prepare_sequence(&self, spec: &SequenceSpec, out: &mut Vec<f32>) -> Result<(), ItemError> {
        (**self).prepare_sequence(spec, out)
    }
}

/// One item before anything was done to it.
#[derive(Debug, Clone, PartialEq)]
pub enum RawItem {
    /// An encoded image (PNG, JPEG, ..).
    Encoded(Vec<u8>),
    /// A file with an encoded image, read by the worker.
    File(PathBuf),
    /// Decoded pixels of any size.
    Pixels {
        /// Their size.
        shape: ImageShape,
        /// As many bytes, row by row.
        pixels: Vec<u8>,
    },
    /// A sequence.
    Sequence {
        /// Values per time step.
        dim: usize,
        /// The time steps, one after the other.
        values: Vec<f32>,
    },
    /// An item that could not even be read; it keeps its place among the results.
    Failed(ItemError),
}

impl Prepare for RawItem {
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError> {
        match self {
            Self::Encoded(bytes) => preparer.prepare_into(bytes, out),
            Self::File(path) => preparer.prepare_into(&read_file(path, preparer.limits().max_bytes)?, out),
            Self::Pixels { shape, pixels } => preparer.resize_pixels(pixels, *shape, out),
            Self::Sequence { .. } => Err(not_an_image()),
            Self::Failed(error) => Err(error.clone()),
        }
    }

    fn prepare_sequence(&self, spec: &SequenceSpec, out: &mut Vec<f32>) -> Result<(), ItemError> {
        match self {
            Self::Sequence { dim, values } => {
                spec.check(*dim, values)?;
                out.extend_from_slice(values);
                Ok(())
            }
            Self::Failed(error) => Err(error.clone()),
            Self::Encoded(_) | Self::File(_) | Self::Pixels { .. } => Err(not_a_sequence()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use dtkc_image::Limits;
    use dtkc_item::{Color, ImageSpec, Resize};

    use super::*;

    const SPEC: ImageSpec = ImageSpec { height: 2, width: 2, color: Color::Gray, resize: Resize::Stretch };

    #[test]
    fn files_are_limited_before_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pgm");
        std::fs::write(&path, b"P5 2 2 255\n\x01\x02\x03\x04").unwrap();
        let code = |path: &Path, max_bytes: u64| {
            let mut preparer = Preparer::new(SPEC, Limits { max_bytes, ..Limits::default() });
            let prepared = RawItem::File(path.to_owned()).prepare(&mut preparer, &mut [0; 4]);
            prepared.map_or_else(|error| error.code, |()| "good".into())
        };
        assert_eq!(code(&path, 15), "good");
        assert_eq!(code(&path, 14), "too_large");
        assert_eq!(code(folder.path(), 100), "unreadable");
        assert_eq!(code(&folder.path().join("none.png"), 100), "unreadable");
        #[cfg(target_os = "linux")]
        assert_eq!(code(Path::new("/dev/zero"), 100), "unreadable");
    }
}
