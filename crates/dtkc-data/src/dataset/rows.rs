//! Images by range and by index.

use std::ops::Range;

use hdf5::{Hyperslab, SliceOrIndex};
use ndarray::IxDyn;

/// The image dataset as rows of bytes.
#[derive(Debug)]
pub struct Rows {
    dataset: hdf5::Dataset,
    len: usize,
    row: Vec<usize>,
    row_bytes: usize,
    chunk_rows: usize,
    filtered: bool,
}

impl Rows {
    pub fn new(dataset: hdf5::Dataset, shape: &[usize], chunk_rows: usize, filtered: bool) -> Self {
        let (len, row) = (shape[0], shape[1..].to_vec());
        let row_bytes = row.iter().product();
        Self { dataset, len, row, row_bytes, chunk_rows, filtered }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    pub fn chunk_rows(&self) -> usize {
        self.chunk_rows
    }

    /// Whole chunks of about so many bytes, at least one, in rows.
    pub fn rows_for(&self, bytes: usize) -> usize {
        (bytes / (self.row_bytes * self.chunk_rows)).max(1) * self.chunk_rows
    }

    /// Reads whole rows. The range is inside the set and `out` has its bytes.
    pub fn read(&self, range: Range<usize>, out: &mut [u8]) -> hdf5::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let all = self.row.iter().map(|&n| SliceOrIndex::from(0..n));
        let selection: Hyperslab = std::iter::once(SliceOrIndex::from(range)).chain(all).collect::<Vec<_>>().into();
        let values = self.dataset.read_slice::<u8, _, IxDyn>(selection)?;
        match values.as_slice() {
            Some(values) if values.len() == out.len() => out.copy_from_slice(values),
            _ => return Err("the library returned another number of values".into()),
        }
        Ok(())
    }

    /// Reads the rows at `indices`, all inside the set, in their order: sorted underneath, and every chunk
    /// touched once.
    pub fn gather(&self, indices: &[usize], out: &mut [u8]) -> hdf5::Result<()> {
        let mut order: Vec<usize> = (0..indices.len()).collect();
        order.sort_unstable_by_key(|&place| indices[place]);
        let mut buffer = Vec::new();
        for group in order.chunk_by(|&a, &b| self.together(indices[a], indices[b])) {
            let first = indices[group[0]];
            let last = group.last().map_or(first, |&place| indices[place]);
            buffer.clear();
            buffer.resize((last - first + 1) * self.row_bytes, 0);
            self.read(first..last + 1, &mut buffer)?;
            for &place in group {
                let from = (indices[place] - first) * self.row_bytes;
                let to = place * self.row_bytes;
                out[to..to + self.row_bytes].copy_from_slice(&buffer[from..from + self.row_bytes]);
            }
        }
        Ok(())
    }

    /// Whether two rows that follow each other in sorted order are read together: in a compressed chunk
    /// always, because it is unpacked whole; otherwise where no more than a few rows lie between.
    fn together(&self, a: usize, b: usize) -> bool {
        const GAP_BYTES: usize = 16 << 10;
        if self.filtered { a / self.chunk_rows == b / self.chunk_rows } else { (b - a) * self.row_bytes <= GAP_BYTES }
    }
}
