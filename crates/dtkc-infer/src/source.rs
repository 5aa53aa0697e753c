//! One image, in whatever form it arrives.

use std::io::Read;
use std::path::{Path, PathBuf};

use dtkc_image::{Color, ImageError, Limits, Preparer};

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

/// Brings one image into the shape of the preparer, into `out`. Limits hold before anything is decoded, and a
/// decoder that panics only fails its image.
pub fn prepare(preparer: &mut Preparer, source: &Source, limits: &Limits, out: &mut [u8]) -> Result<(), ItemError> {
    match source {
        Source::Encoded(bytes) => Ok(preparer.prepare_into(bytes, out)?),
        Source::File(path) => Ok(preparer.prepare_into(&read(path, limits)?, out)?),
        Source::Pixels { pixels, height, width, color } => {
            Ok(preparer.resize_pixels(pixels, *height, *width, *color, out)?)
        }
        Source::Failed(error) => Err(error.clone()),
    }
}

/// Reads a file of at most the allowed size. Only ordinary files: a pipe or device could block a worker for ever.
fn read(path: &Path, limits: &Limits) -> Result<Vec<u8>, ItemError> {
    // The caller knows the path, so the sentence only says what went wrong.
    let unreadable = |error: std::io::Error| ItemError::new("unreadable", format!("the file cannot be read: {error}"));
    let information = std::fs::metadata(path).map_err(unreadable)?;
    if !information.is_file() {
        return Err(ItemError::new("unreadable", "the path is not a file"));
    }
    let too_large = |bytes: u64| ImageError::TooManyBytes { bytes, limit: limits.max_bytes };
    if information.len() > limits.max_bytes {
        return Err(too_large(information.len()).into());
    }
    let mut bytes = Vec::with_capacity(information.len() as usize + 1);
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(limits.max_bytes + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limits.max_bytes {
        return Err(too_large(bytes.len() as u64).into());
    }
    Ok(bytes)
}
