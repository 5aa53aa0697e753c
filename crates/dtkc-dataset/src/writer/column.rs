//! A dataset that grows by whole rows, buffered so that HDF5 sees whole chunks.

use hdf5::types::VarLenUnicode;
use hdf5::{File, H5Type, Hyperslab, SliceOrIndex};
use ndarray::{ArrayView, IxDyn};

use super::Compression;
use crate::h5;

/// Strings or labels per chunk.
const SMALL_ROWS: usize = 4096;

/// Rows of numbers.
#[derive(Debug)]
pub struct Column<T> {
    dataset: hdf5::Dataset,
    /// Extents of one row; empty for a plain list.
    row: Vec<usize>,
    row_len: usize,
    chunk_rows: usize,
    buffer: Vec<T>,
    written: usize,
}

/// Where and how a column is made.
#[derive(Debug)]
pub struct ColumnSpec<'a> {
    pub file: &'a File,
    pub name: &'a str,
    pub row: Vec<usize>,
    pub chunk_rows: usize,
    pub compression: Compression,
}

impl<'a> ColumnSpec<'a> {
    /// A plain list, not compressed.
    pub fn list(file: &'a File, name: &'a str) -> Self {
        Self { file, name, row: Vec::new(), chunk_rows: SMALL_ROWS, compression: Compression::None }
    }
}

impl<T: H5Type> Column<T> {
    /// Creates the empty dataset.
    pub fn create(spec: ColumnSpec<'_>) -> hdf5::Result<Self> {
        let chunk = with_rows(spec.chunk_rows, &spec.row);
        let empty: Vec<hdf5::Extent> = std::iter::once(hdf5::Extent::resizable(0))
            .chain(spec.row.iter().map(|&n| hdf5::Extent::fixed(n)))
            .collect();
        let mut builder = spec.file.new_dataset_builder().chunk(chunk);
        if let Compression::Gzip(level) = spec.compression {
            builder = builder.shuffle().deflate(level);
        }
        let dataset = builder.empty::<T>().shape(hdf5::SimpleExtents::from_vec(empty)).create(spec.name)?;
        let row_len = spec.row.iter().product();
        let buffer = Vec::with_capacity(spec.chunk_rows * row_len);
        Ok(Self { dataset, row: spec.row, row_len, chunk_rows: spec.chunk_rows, buffer, written: 0 })
    }

    /// Adds one row that is moved in.
    fn push_owned(&mut self, value: T) -> hdf5::Result<()> {
        self.buffer.push(value);
        self.flush_if_full()
    }

    fn flush_if_full(&mut self) -> hdf5::Result<()> {
        if self.buffer.len() == self.chunk_rows * self.row_len { self.flush() } else { Ok(()) }
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> hdf5::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let rows = self.buffer.len() / self.row_len;
        let end = self.written + rows;
        self.dataset.resize(with_rows(end, &self.row))?;
        let view = ArrayView::from_shape(IxDyn(&with_rows(rows, &self.row)), &self.buffer)?;
        self.dataset.write_slice(view, rows_of(self.written..end, &self.row))?;
        self.written = end;
        self.buffer.clear();
        Ok(())
    }
}

impl<T: H5Type + Copy> Column<T> {
    /// Adds whole rows.
    pub fn extend(&mut self, mut values: &[T]) -> hdf5::Result<()> {
        while !values.is_empty() {
            let room = self.chunk_rows * self.row_len - self.buffer.len();
            let (now, later) = values.split_at(room.min(values.len()));
            self.buffer.extend_from_slice(now);
            self.flush_if_full()?;
            values = later;
        }
        Ok(())
    }
}

impl Column<VarLenUnicode> {
    /// Adds one string.
    pub fn push_text(&mut self, value: &str) -> hdf5::Result<()> {
        self.push_owned(h5::text(value)?)
    }
}

fn with_rows(rows: usize, row: &[usize]) -> Vec<usize> {
    std::iter::once(rows).chain(row.iter().copied()).collect()
}

/// A selection of whole rows.
fn rows_of(range: std::ops::Range<usize>, row: &[usize]) -> Hyperslab {
    let all = row.iter().map(|&n| SliceOrIndex::from(0..n));
    std::iter::once(SliceOrIndex::from(range)).chain(all).collect::<Vec<_>>().into()
}
