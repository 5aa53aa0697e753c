//! Checkpoints: one binary file with a version and a checksum, written whole or not at all.

mod format;

use std::path::Path;

use dtkc_core::NamedArray;
use serde::{Serialize, de::DeserializeOwned};

use crate::error::TrainError;

pub use format::{Array, Values, decode, encode};

/// Writes a checkpoint.
pub fn write<M: Serialize>(path: &Path, meta: &M, arrays: &[Array]) -> Result<(), TrainError> {
    Ok(dtkc_files::write(path, &encode(meta, arrays))?)
}

/// Reads a checkpoint and checks all of it.
pub fn read<M: DeserializeOwned>(path: &Path) -> Result<(M, Vec<Array>), TrainError> {
    decode(path, &fs_err::read(path)?)
}

/// The state of a network as arrays whose names begin with `prefix`.
pub fn network_arrays(prefix: &str, state: &[NamedArray]) -> Vec<Array> {
    let array = |a: &NamedArray| Array {
        name: format!("{prefix}{}", a.name),
        shape: a.shape.clone(),
        values: Values::F32(a.values.clone()),
    };
    state.iter().map(array).collect()
}

/// The state of a network back from the arrays whose names begin with `prefix`.
pub fn network_state(prefix: &str, arrays: &[Array]) -> Vec<NamedArray> {
    let state = |a: &Array| match &a.values {
        Values::F32(values) => Some(NamedArray {
            name: a.name.strip_prefix(prefix)?.to_owned(),
            shape: a.shape.clone(),
            values: values.clone(),
        }),
        _ => None,
    };
    arrays.iter().filter_map(state).collect()
}

/// The values of a float array by name.
pub fn floats<'a>(arrays: &'a [Array], name: &str) -> Option<&'a [f64]> {
    arrays.iter().find(|a| a.name == name).and_then(|a| match &a.values {
        Values::F64(values) => Some(values.as_slice()),
        _ => None,
    })
}

/// A list of floats as an array.
pub fn float_array(name: &str, values: &[f64]) -> Array {
    Array { name: name.to_owned(), shape: vec![values.len()], values: Values::F64(values.to_vec()) }
}
