//! One image, in whatever form it arrives.

use dtkc_item::{Color, ImageSpec, Resize};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use dtkc_image::{ImageError, Limits, Preparer};

use crate::ItemError;

/// One image.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// An encoded image (PNG, JPEG, ..).
    Encoded(Vec<u8>),
    /// A file with an encoded image, read by the worker.
    File(PathBuf),
    /// Decoded pixels of any size.
    Pixels {
        /// `height * width * channels` bytes, row by row.
        pixels: Vec<u8>,
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
        /// Gray or RGB.
        color: Color,
    },
    /// An image that could not even be read; it keeps its place among the results.
    Failed(ItemError),
}

/// Brings one image into the preparer's shape, into `out`. Limits hold before anything is decoded, and a panic fails
/// its image alone.
pub fn prepare(preparer: &mut Preparer, source: &Source, limits: &Limits, out: &mut [u8]) -> Result<(), ItemError> {
    contained(preparer, limits, |preparer| match source {
        Source::Encoded(bytes) => Ok(preparer.prepare_into(bytes, out)?),
        Source::File(path) => Ok(preparer.prepare_into(&read_file(path, limits.max_bytes)?, out)?),
        Source::Pixels { pixels, height, width, color } => {
            Ok(preparer.resize_pixels(pixels, *height, *width, *color, out)?)
        }
        Source::Failed(error) => Err(error.clone()),
    })
}

/// Runs `body`; a panic becomes an error, and the preparer, which may be left half done, starts afresh.
pub(crate) fn contained(
    preparer: &mut Preparer,
    limits: &Limits,
    body: impl FnOnce(&mut Preparer) -> Result<(), ItemError>,
) -> Result<(), ItemError> {
    catch_unwind(AssertUnwindSafe(|| body(preparer))).unwrap_or_else(|_| {
        *preparer = Preparer::new(preparer.shape(), *limits);
        Err(ItemError::new("panicked", "preparing the image failed unexpectedly; please report it with the image"))
    })
}

/// The bytes of a file of at most `max_bytes`. Only ordinary files: a pipe or device could block a worker for ever.
pub fn read_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, ItemError> {
    // The caller knows the path, so the sentence only says what went wrong.
    let unreadable = |error: std::io::Error| ItemError::new("unreadable", format!("the file cannot be read: {error}"));
    // Before opening: to open a named pipe would wait for ever.
    let information = std::fs::metadata(path).map_err(unreadable)?;
    if !information.is_file() {
        return Err(ItemError::new("unreadable", "the path is not a file"));
    }
    let check = |bytes: u64| match bytes > max_bytes {
        true => Err(ItemError::from(ImageError::TooManyBytes { bytes, limit: max_bytes })),
        false => Ok(()),
    };
    check(information.len())?;
    let mut bytes = Vec::with_capacity(information.len() as usize + 1);
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    // It may have grown meanwhile.
    check(bytes.len() as u64)?;
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {

    use super::*;

    const SHAPE: ImageSpec = ImageSpec { height: 2, width: 2, color: Color::Gray, resize: Resize::Stretch };

    #[test]
    fn a_panic_fails_one_image_and_the_next_works() {
        let limits = Limits::default();
        let mut preparer = Preparer::new(SHAPE, limits);
        let error = contained(&mut preparer, &limits, |_| panic!("a strange image")).unwrap_err();
        assert_eq!(error.code, "panicked");
        let source = Source::Pixels { pixels: vec![1, 2, 3, 4], height: 2, width: 2, color: Color::Gray };
        let mut out = [0; 4];
        prepare(&mut preparer, &source, &limits, &mut out).unwrap();
        assert_eq!(out, [1, 2, 3, 4]);
    }

    #[test]
    fn files_are_limited_before_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pgm");
        std::fs::write(&path, b"P5 2 2 255\n\x01\x02\x03\x04").unwrap();
        let code = |path: &Path, max_bytes: u64| {
            let limits = Limits { max_bytes, ..Limits::default() };
            let source = Source::File(path.to_owned());
            prepare(&mut Preparer::new(SHAPE, limits), &source, &limits, &mut [0; 4]).map_err(|error| error.code)
        };
        assert_eq!(code(&path, 15), Ok(()));
        assert_eq!(code(&path, 14), Err("too_large"));
        assert_eq!(code(folder.path(), 100), Err("unreadable"));
        assert_eq!(code(&folder.path().join("none.png"), 100), Err("unreadable"));
        #[cfg(target_os = "linux")]
        assert_eq!(code(Path::new("/dev/zero"), 100), Err("unreadable"));
    }
}
