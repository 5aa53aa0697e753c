//! Checkpoints: one binary file with a version and a checksum, written whole or not at all.

mod format;

use std::path::Path;

use dtkc_core::{NamedArray, Values};
use serde::{Serialize, de::DeserializeOwned};

use crate::error::TrainError;

pub use format::{decode, encode};

/// Writes a checkpoint.
pub fn write<M: Serialize>(path: &Path, meta: &M, arrays: &[NamedArray]) -> Result<(), TrainError> {
    let bytes = encode(meta, arrays).map_err(std::io::Error::from)?;
    Ok(dtkc_files::write(path, &bytes)?)
}

/// Reads a checkpoint and checks all of it.
pub fn read<M: DeserializeOwned>(path: &Path) -> Result<(M, Vec<NamedArray>), TrainError> {
    decode(path, &fs_err::read(path)?)
}

/// Arrays under names that begin with `prefix`.
pub fn with_prefix(prefix: &str, arrays: &[NamedArray]) -> impl Iterator<Item = NamedArray> {
    arrays.iter().map(move |array| NamedArray { name: format!("{prefix}{}", array.name), ..array.clone() })
}

/// The arrays whose names begin with `prefix`, under the rest of their names.
pub fn without_prefix(prefix: &str, arrays: &[NamedArray]) -> Vec<NamedArray> {
    let rest = |a: &NamedArray| Some(NamedArray { name: a.name.strip_prefix(prefix)?.to_owned(), ..a.clone() });
    arrays.iter().filter_map(rest).collect()
}

/// The values of a float array by name.
pub fn floats<'a>(arrays: &'a [NamedArray], name: &str) -> Option<&'a [f64]> {
    match &NamedArray::find(arrays, name)?.values {
        Values::F64(values) => Some(values),
        _ => None,
    }
}

/// A list of floats as an array.
pub fn float_array(name: &str, values: &[f64]) -> NamedArray {
    NamedArray::list(name, Values::F64(values.to_vec()))
}
