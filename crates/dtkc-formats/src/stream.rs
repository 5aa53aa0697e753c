//! Files as byte streams, unpacked on the way where they are compressed; errors name the file.

use std::path::Path;

use dtkc_source::unpack;
pub use dtkc_source::unpack::{Stream, read_exactly};

use super::ReadError;

/// Opens a file; gzip and bzip2 are known by their first bytes, whatever the name says.
pub fn open(path: &Path) -> Result<Stream, ReadError> {
    unpack::open(path).map_err(|e| ReadError::read(path, e))
}

/// The first bytes of a file after unpacking; fewer than `wanted` where the file is shorter.
pub fn head(path: &Path, wanted: usize) -> Result<Vec<u8>, ReadError> {
    unpack::head(path, wanted).map_err(|e| ReadError::read(path, e))
}
