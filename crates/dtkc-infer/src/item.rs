//! One item in the form in which it arrived, and how it becomes pixels.

use std::path::PathBuf;

use dtkc_image::Preparer;
use dtkc_item::{ImageShape, ItemError, read_file};

/// Something that a [`Worker`](crate::Worker) can make ready for the model. What panics in here costs its own item.
pub trait Prepare {
    /// Writes the item's pixels into `out`, as the preparer wants them. Its limits hold before anything is decoded.
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError>;
}

impl<T: Prepare + ?Sized> Prepare for &T {
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError> {
        (**self).prepare(preparer, out)
    }
}

/// One image before anything was done to it.
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
    /// An image that could not even be read; it keeps its place among the results.
    Failed(ItemError),
}

impl Prepare for RawItem {
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError> {
        match self {
            Self::Encoded(bytes) => preparer.prepare_into(bytes, out),
            Self::File(path) => preparer.prepare_into(&read_file(path, preparer.limits().max_bytes)?, out),
            Self::Pixels { shape, pixels } => preparer.resize_pixels(pixels, *shape, out),
            Self::Failed(error) => Err(error.clone()),
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
