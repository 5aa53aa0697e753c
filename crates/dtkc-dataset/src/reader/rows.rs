//! Images by range and by index.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use hdf5::{Hyperslab, SliceOrIndex};
use ndarray::IxDyn;

use super::direct::Direct;
use super::storage::Storage;
use crate::{DataError, h5, schema};

/// The image dataset as rows of bytes.
#[derive(Debug)]
pub struct Rows {
    path: PathBuf,
    len: usize,
    row: Vec<usize>,
    row_bytes: usize,
    chunk_rows: usize,
    access: Access,
}

/// How the rows are reached.
#[derive(Debug)]
enum Access {
    Direct(Direct),
    Library(hdf5::Dataset),
}

impl Rows {
    /// The checked storage of a dataset `[n, h, w, c]` of bytes.
    pub fn new(path: &Path, dataset: hdf5::Dataset, storage: &Storage) -> Self {
        let access = match Direct::find(path, &dataset, storage) {
            Some(direct) => Access::Direct(direct),
            None => Access::Library(dataset),
        };
        Self::with_access(path, storage, access)
    }

    fn with_access(path: &Path, storage: &Storage, access: Access) -> Self {
        let (len, row) = (storage.shape[0], storage.shape[1..].to_vec());
        let row_bytes: usize = row.iter().product();
        let chunk_rows = storage.chunk.as_ref().map_or_else(|| schema::chunk_rows(row_bytes), |chunk| chunk[0]);
        Self { path: path.to_owned(), len, row, row_bytes, chunk_rows: chunk_rows.min(len), access }
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
    pub fn read(&self, range: Range<usize>, out: &mut [u8]) -> Result<(), DataError> {
        match &self.access {
            Access::Direct(direct) => direct.read(range, out).map_err(|e| self.failed(&e)),
            Access::Library(dataset) => {
                self.through_library(dataset, range, out).map_err(|e| h5::read_failed(&self.path, &e))
            }
        }
    }

    /// Reads the rows at `indices`, all inside the set, in their order: sorted underneath, so that the disk
    /// is read in one direction and every chunk is touched once.
    pub fn gather(&self, indices: &[usize], out: &mut [u8]) -> Result<(), DataError> {
        let mut order: Vec<usize> = (0..indices.len()).collect();
        order.sort_unstable_by_key(|&place| indices[place]);
        match &self.access {
            Access::Direct(direct) => direct.gather(indices, &order, out).map_err(|e| self.failed(&e)),
            Access::Library(dataset) => self.gather_chunks(dataset, indices, &order, out),
        }
    }

    fn gather_chunks(
        &self,
        dataset: &hdf5::Dataset,
        indices: &[usize],
        order: &[usize],
        out: &mut [u8],
    ) -> Result<(), DataError> {
        let mut buffer = Vec::new();
        for group in order.chunk_by(|&a, &b| indices[a] / self.chunk_rows == indices[b] / self.chunk_rows) {
            let rows = indices[group[0]]..indices[group[group.len() - 1]] + 1;
            buffer.resize(rows.len() * self.row_bytes, 0);
            let read = self.through_library(dataset, rows.clone(), &mut buffer);
            read.map_err(|e| h5::read_failed(&self.path, &e))?;
            for &place in group {
                let from = (indices[place] - rows.start) * self.row_bytes;
                let to = place * self.row_bytes;
                out[to..to + self.row_bytes].copy_from_slice(&buffer[from..from + self.row_bytes]);
            }
        }
        Ok(())
    }

    fn through_library(&self, dataset: &hdf5::Dataset, range: Range<usize>, out: &mut [u8]) -> hdf5::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let all = self.row.iter().map(|&n| SliceOrIndex::from(0..n));
        let selection: Hyperslab = std::iter::once(SliceOrIndex::from(range)).chain(all).collect::<Vec<_>>().into();
        let values = dataset.read_slice::<u8, _, IxDyn>(selection)?;
        match values.as_slice() {
            Some(values) if values.len() == out.len() => out.copy_from_slice(values),
            _ => return Err("the library returned another number of values".into()),
        }
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> DataError {
        let path = self.path.clone();
        match error.kind() {
            io::ErrorKind::UnexpectedEof => DataError::Damaged { path, reason: "it is cut off".into() },
            io::ErrorKind::InvalidData => DataError::Damaged { path, reason: error.to_string() },
            kind => DataError::Io(io::Error::new(kind, format!("cannot read {}: {error}", path.display()))),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Images `[n, 5, 4, 3]`, stored as `build` says.
    fn store(path: &Path, n: usize, build: impl Fn(hdf5::DatasetBuilder) -> hdf5::DatasetBuilder) -> Vec<u8> {
        let pixels: Vec<u8> = (0..n * 60).map(|i| (i * i / 7) as u8).collect();
        let file = hdf5::File::create(path).unwrap();
        let view = ndarray::ArrayView4::from_shape((n, 5, 4, 3), &pixels).unwrap();
        build(file.new_dataset_builder()).with_data(view).create("images").unwrap();
        file.close().unwrap();
        pixels
    }

    /// Opens the file both ways, whichever it would choose by itself.
    fn open(path: &Path) -> (Rows, Rows, bool) {
        let dataset = hdf5::File::open(path).unwrap().dataset("images").unwrap();
        let storage = Storage::inspect(&dataset, "u8", 1, std::fs::metadata(path).unwrap().len()).unwrap();
        let chosen = Rows::new(path, dataset.clone(), &storage);
        let direct = matches!(chosen.access, Access::Direct(_));
        (chosen, Rows::with_access(path, &storage, Access::Library(dataset)), direct)
    }

    #[test]
    fn every_storage_form_gives_the_same_pixels() {
        type Build = fn(hdf5::DatasetBuilder) -> hdf5::DatasetBuilder;
        let forms: [(&str, bool, Build); 7] = [
            ("in one piece", true, |b| b.no_chunk()),
            ("whole chunks", true, |b| b.chunk((7, 5, 4, 3))),
            ("gzip", true, |b| b.chunk((7, 5, 4, 3)).deflate(3)),
            ("shuffle and gzip", true, |b| b.chunk((7, 5, 4, 3)).shuffle().deflate(9)),
            ("one chunk", true, |b| b.chunk((23, 5, 4, 3)).deflate(1)),
            ("parts of images", false, |b| b.chunk((7, 2, 4, 3))),
            ("checksums", false, |b| b.chunk((7, 5, 4, 3)).fletcher32()),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        for (name, directly, build) in forms {
            let pixels = store(&path, 23, build);
            let (chosen, library, direct) = open(&path);
            assert_eq!(direct, directly, "{name}");
            for rows in [&chosen, &library] {
                for range in [0..23, 0..0, 3..4, 6..8, 1..22, 14..23] {
                    let mut out = vec![0; range.len() * 60];
                    rows.read(range.clone(), &mut out).unwrap();
                    assert!(out == pixels[range.start * 60..range.end * 60], "{name} {range:?}");
                }
                let indices = [22, 0, 0, 13, 14, 7, 21, 3];
                let mut out = vec![0; indices.len() * 60];
                rows.gather(&indices, &mut out).unwrap();
                let expected: Vec<u8> = indices.iter().flat_map(|&i| &pixels[i * 60..(i + 1) * 60]).copied().collect();
                assert!(out == expected, "{name}");
            }
        }
    }

    #[test]
    fn a_file_that_shrinks_while_open_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        store(&path, 23, |b| b.chunk((7, 5, 4, 3)));
        let (rows, ..) = open(&path);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1000).unwrap();
        let text = rows.read(0..23, &mut vec![0; 23 * 60]).unwrap_err().to_string();
        assert!(text.contains("is damaged or incomplete (it is cut off)"), "{text}");
    }
}
