//! Lists of strings, however another program has stored them.

use std::ops::Range;
use std::path::Path;

use hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};

use crate::{DataError, h5};

/// Strings that are read at once: bounds the memory that a hostile file can claim.
const BLOCK: usize = 256;
/// Longer fixed-length strings are not read.
const MAX_FIXED: usize = 4096;

/// True where the dataset holds strings that [`read`] understands.
pub fn is_text(dataset: &hdf5::Dataset) -> bool {
    matches!(
        h5::type_of(dataset),
        Some(
            TypeDescriptor::VarLenUnicode
                | TypeDescriptor::VarLenAscii
                | TypeDescriptor::FixedAscii(0..=MAX_FIXED)
                | TypeDescriptor::FixedUnicode(0..=MAX_FIXED)
        )
    )
}

/// The strings of a range, which is inside the dataset.
pub fn read(path: &Path, dataset: &hdf5::Dataset, range: Range<usize>) -> Result<Vec<String>, DataError> {
    let mut all = Vec::with_capacity(range.len());
    let mut start = range.start;
    while start < range.end {
        let end = range.end.min(start + BLOCK);
        all.extend(block(dataset, start..end).map_err(|e| h5::read_failed(path, &e))?);
        start = end;
    }
    Ok(all)
}

fn block(dataset: &hdf5::Dataset, range: Range<usize>) -> hdf5::Result<Vec<String>> {
    match h5::type_of(dataset) {
        Some(TypeDescriptor::VarLenAscii) => {
            Ok(lossy(dataset.read_slice_1d::<VarLenAscii, _>(range)?.iter().map(VarLenAscii::as_bytes)))
        }
        Some(TypeDescriptor::FixedAscii(_)) => {
            Ok(lossy(dataset.read_slice_1d::<FixedAscii<MAX_FIXED>, _>(range)?.iter().map(FixedAscii::as_bytes)))
        }
        Some(TypeDescriptor::FixedUnicode(_)) => {
            Ok(lossy(dataset.read_slice_1d::<FixedUnicode<MAX_FIXED>, _>(range)?.iter().map(FixedUnicode::as_bytes)))
        }
        _ => Ok(lossy(dataset.read_slice_1d::<VarLenUnicode, _>(range)?.iter().map(VarLenUnicode::as_bytes))),
    }
}

/// Foreign writers may store bytes that are not UTF-8, so the bytes are taken, never the unchecked string.
fn lossy<'a>(values: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    values.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
}
