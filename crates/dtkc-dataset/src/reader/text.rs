//! Strings, however another program has stored them.

use std::ops::Range;
use std::path::Path;

use hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};
use hdf5::{Container, H5Type};

use crate::{DataError, h5};

/// Strings that are read at once: bounds the memory that a hostile file can claim.
const BLOCK: usize = 256;
/// Longer fixed-length strings are not read.
const MAX_FIXED: usize = 4096;

/// True where the container holds strings that we understand.
pub fn is_text(container: &Container) -> bool {
    matches!(
        h5::type_of(container),
        Some(
            TypeDescriptor::VarLenUnicode
                | TypeDescriptor::VarLenAscii
                | TypeDescriptor::FixedAscii(0..=MAX_FIXED)
                | TypeDescriptor::FixedUnicode(0..=MAX_FIXED)
        )
    )
}

/// The single string of an attribute; `None` where it is something else.
pub fn attribute(attribute: &hdf5::Attribute) -> Option<String> {
    if attribute.size() != 1 || !is_text(attribute) {
        return None;
    }
    strings(attribute, None).ok()?.pop()
}

/// The strings of a range, which is inside the dataset.
pub fn read(path: &Path, dataset: &hdf5::Dataset, range: Range<usize>) -> Result<Vec<String>, DataError> {
    let mut all = Vec::with_capacity(range.len());
    let mut start = range.start;
    while start < range.end {
        let end = range.end.min(start + BLOCK);
        all.extend(strings(dataset, Some(start..end)).map_err(|e| h5::read_failed(path, &e))?);
        start = end;
    }
    Ok(all)
}

fn strings(container: &Container, range: Option<Range<usize>>) -> hdf5::Result<Vec<String>> {
    match h5::type_of(container) {
        Some(TypeDescriptor::VarLenAscii) => values(container, range, VarLenAscii::as_bytes),
        Some(TypeDescriptor::FixedAscii(_)) => values(container, range, FixedAscii::<MAX_FIXED>::as_bytes),
        Some(TypeDescriptor::FixedUnicode(_)) => values(container, range, FixedUnicode::<MAX_FIXED>::as_bytes),
        _ => values(container, range, VarLenUnicode::as_bytes),
    }
}

/// Another program may have stored bytes that are not UTF-8, so the bytes are taken, never the unchecked
/// string.
fn values<T: H5Type>(
    container: &Container,
    range: Option<Range<usize>>,
    bytes: impl Fn(&T) -> &[u8],
) -> hdf5::Result<Vec<String>> {
    let values: Vec<T> = match range {
        Some(range) => container.read_slice_1d::<T, _>(range)?.into_raw_vec_and_offset().0,
        None => container.read_raw()?,
    };
    Ok(values.iter().map(|value| String::from_utf8_lossy(bytes(value)).into_owned()).collect())
}
