//! HDF5 from outside: failures as sentences, types, and strings of any writer.

use std::io;
use std::path::Path;

use hdf5::plist::FileAccessBuilder;
use hdf5::types::{TypeDescriptor, VarLenUnicode};

use crate::DataError;
use crate::reader::text;

/// The system's error number inside an HDF5 error, where there is one: the library tells it only in words.
fn errno(error: &hdf5::Error) -> Option<i32> {
    let stack = error.stack()?;
    stack.iter().rev().find_map(|frame| {
        let (_, rest) = frame.desc().split_once("errno = ")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })
}

/// A new file, as all of ours are written. The time of writing is no part of it: the same input gives the same file.
pub fn create(path: &Path) -> hdf5::Result<hdf5::File> {
    hdf5::File::with_options().with_fapl(write_through).with_fcpl(|p| p.obj_track_times(false)).create(path)
}

/// One of these, to add to it.
pub fn extend(path: &Path) -> hdf5::Result<hdf5::File> {
    hdf5::File::with_options().with_fapl(write_through).open_as(path, hdf5::OpenMode::ReadWrite)
}

/// Values go to the disk when they are written, not when their dataset is closed: where that fails, on a full disk, the
/// library believes the dataset to be open although it is gone, and breaks down over it at the next opportunity. Whole
/// chunks are written once and never read back: a cache of chunks would only copy them.
fn write_through(access: &mut FileAccessBuilder) -> &mut FileAccessBuilder {
    access.chunk_cache(1, 0, 1.0).sieve_buf_size(0)
}

/// The innermost cause in the library's words, on one line.
pub fn cause(error: &hdf5::Error) -> String {
    let text = match error.stack() {
        Some(stack) => stack.last().map_or_else(|| stack.description().to_owned(), |f| f.desc().to_owned()),
        None => error.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A failed write as one sentence with cause and remedy.
pub fn write_failed(path: &Path, error: &hdf5::Error) -> DataError {
    let reason = match errno(error) {
        Some(code) => dtkc_files::reason(&io::Error::from_raw_os_error(code)),
        None => cause(error),
    };
    DataError::Write { path: path.to_owned(), reason }
}

/// A failed read.
pub fn read_failed(path: &Path, error: &hdf5::Error) -> DataError {
    match errno(error) {
        Some(code) => {
            let system = io::Error::from_raw_os_error(code);
            DataError::Io(io::Error::new(system.kind(), format!("cannot read {}: {system}", path.display())))
        }
        None => DataError::Damaged { path: path.to_owned(), reason: cause(error) },
    }
}

/// A string as HDF5 stores it. A zero character would end it early, so it is replaced.
pub(crate) fn text(value: &str) -> hdf5::Result<VarLenUnicode> {
    let clean = value.replace('\0', "\u{fffd}");
    clean.parse().map_err(|e| hdf5::Error::from(format!("{e}")))
}

/// The strings of a list, however its writer has stored them; `None` where the dataset is anything else, or has more
/// than `most` of them.
pub fn strings(path: &Path, dataset: &hdf5::Dataset, most: usize) -> Result<Option<Vec<String>>, DataError> {
    match dataset.shape()[..] {
        [count] if count <= most && text::is_text(dataset) => text::read(path, dataset, 0..count).map(Some),
        _ => Ok(None),
    }
}

/// The stored type of a dataset or attribute, where it is one that we know.
pub fn type_of(container: &hdf5::Container) -> Option<TypeDescriptor> {
    container.dtype().and_then(|t| t.to_descriptor()).ok()
}
