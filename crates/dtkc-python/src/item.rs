//! Items where Python keeps them: nothing is copied before a worker makes one ready.

use std::path::{Path, PathBuf};

use dtkc_image::Preparer;
use dtkc_infer::{Prepare, SequenceSpec};
use dtkc_item::{ImageShape, ItemError, read_file};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray4, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::error::raised;

/// One item in Python's memory, or on the disk.
pub enum Item<'a> {
    /// Pixels of any size.
    Pixels { shape: ImageShape, pixels: &'a [u8] },
    /// An image file's content.
    Encoded(&'a [u8]),
    /// An image file.
    File(&'a Path),
    /// A sequence.
    Steps { dim: usize, values: &'a [f32] },
    /// A row of a table that holds nothing.
    Missing,
}

impl Prepare for Item<'_> {
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError> {
        match self {
            Self::Pixels { shape, pixels } => preparer.resize_pixels(pixels, *shape, out),
            Self::Encoded(bytes) => preparer.prepare_into(bytes, out),
            Self::File(path) => preparer.prepare_into(&read_file(path, preparer.limits().max_bytes)?, out),
            Self::Steps { .. } => Err(ItemError::new("not_an_image", "it is a sequence, and images are wanted")),
            Self::Missing => Err(missing()),
        }
    }

    fn prepare_sequence(&self, spec: &SequenceSpec, out: &mut Vec<f32>) -> Result<(), ItemError> {
        match self {
            Self::Steps { dim, values } => {
                spec.check(*dim, values)?;
                out.extend_from_slice(values);
                Ok(())
            }
            Self::Missing => Err(missing()),
            _ => Err(ItemError::new("not_a_sequence", "it is no sequence, and the model takes sequences")),
        }
    }
}

fn missing() -> ItemError {
    ItemError::new("missing", "there is no image in this row")
}

/// An image as Python gives it: the content of a file, or where the file is.
#[derive(FromPyObject)]
pub enum Given {
    /// `bytes`, `bytearray`.
    Bytes(PyBackedBytes),
    /// `str`, `pathlib.Path`.
    Path(PathBuf),
}

impl Given {
    /// As an item.
    pub fn item(&self) -> Item<'_> {
        match self {
            Self::Bytes(bytes) => Item::Encoded(bytes),
            Self::Path(path) => Item::File(path),
        }
    }
}

/// The images of an array `[n, h, w, c]`.
pub fn pixels<'a>(array: &'a PyReadonlyArray4<'_, u8>) -> PyResult<Vec<Item<'a>>> {
    let &[count, height, width, channels] = array.shape() else { return Err(raised("images need four dimensions")) };
    let shape = ImageShape { height, width, channels };
    let each = shape.len();
    if count > 0 && each == 0 {
        return Err(raised(format!("images of {height}x{width}x{channels} have no pixels")));
    }
    let values = array.as_slice().map_err(|_| raised("the array is not contiguous; use numpy.ascontiguousarray"))?;
    Ok(values.chunks_exact(each.max(1)).map(|pixels| Item::Pixels { shape, pixels }).collect())
}

/// What lies between two offsets each, of `len` values in all; `None` where Python gave no such places.
fn places(offsets: &[i64], len: usize) -> Option<Vec<std::ops::Range<usize>>> {
    let ends: Vec<usize> = offsets.iter().map(|&end| usize::try_from(end).ok()).collect::<Option<_>>()?;
    let in_order = ends.windows(2).all(|pair| pair[0] <= pair[1]) && ends.last().is_none_or(|&end| end <= len);
    in_order.then(|| ends.windows(2).map(|pair| pair[0]..pair[1]).collect())
}

fn offsets_of<'a>(array: &'a PyReadonlyArray1<'_, i64>) -> PyResult<&'a [i64]> {
    array.as_slice().map_err(|_| raised("the offsets are not contiguous; use numpy.ascontiguousarray"))
}

/// The files that lie one after the other in a column of a table; `missing` says where a row holds none.
pub fn column<'a>(
    data: &'a PyReadonlyArray1<'_, u8>,
    offsets: &PyReadonlyArray1<'_, i64>,
    missing: Option<&PyReadonlyArray1<'_, bool>>,
) -> PyResult<Vec<Item<'a>>> {
    let data = data.as_slice().map_err(|_| raised("the bytes are not contiguous; use numpy.ascontiguousarray"))?;
    let places = places(offsets_of(offsets)?, data.len()).ok_or_else(|| raised("the offsets are not in order"))?;
    let missing = missing.map(|missing| missing.as_array());
    if missing.is_some_and(|missing| missing.len() != places.len()) {
        return Err(raised("as many rows must be told missing or not as there are"));
    }
    let item = |(row, place): (usize, std::ops::Range<usize>)| match missing {
        Some(missing) if missing[row] => Item::Missing,
        _ => Item::Encoded(&data[place]),
    };
    Ok(places.into_iter().enumerate().map(item).collect())
}

/// The sequences that lie one after the other in `values` `[steps, dim]`.
pub fn sequences<'a>(
    values: &'a PyReadonlyArray2<'_, f32>,
    offsets: &PyReadonlyArray1<'_, i64>,
) -> PyResult<Vec<Item<'a>>> {
    let (steps, dim) = (values.shape()[0], values.shape()[1]);
    let values = values.as_slice().map_err(|_| raised("the values are not contiguous; use numpy.ascontiguousarray"))?;
    let places = places(offsets_of(offsets)?, steps).ok_or_else(|| raised("the offsets are not in order"))?;
    let item = |place: std::ops::Range<usize>| Item::Steps { dim, values: &values[place.start * dim..place.end * dim] };
    Ok(places.into_iter().map(item).collect())
}
