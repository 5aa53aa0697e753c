//! Images straight from the file, without the HDF5 library.
//!
//! HDF5 has one lock per process and costs tens of microseconds per call. Once it has told where the chunks
//! lie, whole images stored as they are need no more than a positioned read, and gzip chunks can be unpacked
//! on all cores. A file that is stored in any other way is left to the library.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use flate2::{Decompress, FlushDecompress, Status};
use rayon::prelude::*;

use super::storage::Storage;

/// Where one chunk lies.
#[derive(Debug, Clone, Copy)]
struct Stored {
    start: u64,
    bytes: usize,
}

/// A table of chunks and the open file.
#[derive(Debug)]
pub struct Direct {
    file: File,
    chunks: Vec<Stored>,
    len: usize,
    chunk_rows: usize,
    row_bytes: usize,
    packed: bool,
}

impl Direct {
    /// The table of chunks; `None` where the layout is one that only the library understands.
    pub fn find(path: &Path, dataset: &hdf5::Dataset, storage: &Storage) -> Option<Self> {
        let (len, row) = (storage.shape[0], &storage.shape[1..]);
        let row_bytes: usize = row.iter().product();
        // Shuffling bytes within values of one byte changes nothing, so gzip is all there is to undo.
        let packed = match storage.filters.iter().filter(|f| *f != "shuffle").collect::<Vec<_>>()[..] {
            [] => false,
            [only] if only.starts_with("gzip") => true,
            _ => return None,
        };
        if dataset.file().ok()?.userblock() != 0 {
            return None;
        }
        let (chunk_rows, chunks) = match &storage.chunk {
            Some(chunk) if chunk[1..] == *row => (chunk[0], chunk_table(dataset, len, chunk[0])?),
            Some(_) => return None,
            None => (len, vec![Stored { start: dataset.offset()?, bytes: len * row_bytes }]),
        };
        let direct = Self { file: File::open(path).ok()?, chunks, len, chunk_rows, row_bytes, packed };
        direct.is_plausible(storage.file_bytes).then_some(direct)
    }

    /// Every chunk inside the file and, where nothing is packed, long enough for its rows.
    fn is_plausible(&self, file_bytes: u64) -> bool {
        self.chunks.iter().enumerate().all(|(number, chunk)| {
            let inside = chunk.start.checked_add(chunk.bytes as u64).is_some_and(|end| end <= file_bytes);
            inside && (self.packed || chunk.bytes >= self.rows_of(number).len() * self.row_bytes)
        })
    }

    fn rows_of(&self, chunk: usize) -> Range<usize> {
        let start = chunk * self.chunk_rows;
        start..self.len.min(start + self.chunk_rows)
    }

    /// Reads whole rows. The range is inside the set and `out` has its bytes.
    pub fn read(&self, range: Range<usize>, out: &mut [u8]) -> io::Result<()> {
        let mut pieces = Vec::new();
        let (mut row, mut rest) = (range.start, out);
        while row < range.end {
            let chunk = row / self.chunk_rows;
            let end = self.rows_of(chunk).end.min(range.end);
            let (piece, later) = rest.split_at_mut((end - row) * self.row_bytes);
            pieces.push((chunk, row..end, piece));
            (row, rest) = (end, later);
        }
        if self.packed && pieces.len() > 1 {
            return pieces.into_par_iter().try_for_each_init(Unpacker::default, |unpacker, (chunk, rows, piece)| {
                self.unpack(unpacker, chunk, rows, piece)
            });
        }
        let mut unpacker = Unpacker::default();
        pieces.into_iter().try_for_each(|(chunk, rows, piece)| match self.packed {
            true => self.unpack(&mut unpacker, chunk, rows, piece),
            false => self.copy(chunk, rows, piece),
        })
    }

    /// Reads the rows at `indices`, all inside the set, in their order. `order` are the places of the
    /// indices sorted by index.
    pub fn gather(&self, indices: &[usize], order: &[usize], out: &mut [u8]) -> io::Result<()> {
        if !self.packed {
            return order.iter().try_for_each(|&place| {
                let row = indices[place];
                let to = &mut out[place * self.row_bytes..(place + 1) * self.row_bytes];
                self.copy(row / self.chunk_rows, row..row + 1, to)
            });
        }
        // Every chunk is unpacked once, several at a time; the rows are put in their places afterwards.
        let groups: Vec<&[usize]> =
            order.chunk_by(|&a, &b| indices[a] / self.chunk_rows == indices[b] / self.chunk_rows).collect();
        let at_once = rayon::current_num_threads();
        for some in groups.chunks(at_once) {
            let unpacked: Vec<io::Result<(Range<usize>, Vec<u8>)>> = some
                .par_iter()
                .map_init(Unpacker::default, |unpacker, group| {
                    let rows = indices[group[0]]..indices[group[group.len() - 1]] + 1;
                    let mut pixels = vec![0; rows.len() * self.row_bytes];
                    self.unpack(unpacker, rows.start / self.chunk_rows, rows.clone(), &mut pixels)?;
                    Ok((rows, pixels))
                })
                .collect();
            for (group, unpacked) in some.iter().zip(unpacked) {
                let (rows, pixels) = unpacked?;
                for &place in *group {
                    let from = (indices[place] - rows.start) * self.row_bytes;
                    let to = place * self.row_bytes;
                    out[to..to + self.row_bytes].copy_from_slice(&pixels[from..from + self.row_bytes]);
                }
            }
        }
        Ok(())
    }

    /// Rows of a chunk that is stored as it is.
    fn copy(&self, chunk: usize, rows: Range<usize>, out: &mut [u8]) -> io::Result<()> {
        let skipped = (rows.start - chunk * self.chunk_rows) * self.row_bytes;
        read_at(&self.file, self.chunks[chunk].start + skipped as u64, out)
    }

    /// Rows of a chunk that is packed.
    fn unpack(&self, unpacker: &mut Unpacker, chunk: usize, rows: Range<usize>, out: &mut [u8]) -> io::Result<()> {
        let Unpacker { inflate, packed, plain } = unpacker;
        let Stored { start, bytes } = self.chunks[chunk];
        packed.resize(bytes, 0);
        read_at(&self.file, start, packed)?;
        let chunk_bytes = self.chunk_rows * self.row_bytes;
        if out.len() == chunk_bytes {
            return inflate_into(inflate, packed, out);
        }
        plain.resize(chunk_bytes, 0);
        inflate_into(inflate, packed, plain)?;
        let skipped = (rows.start - chunk * self.chunk_rows) * self.row_bytes;
        out.copy_from_slice(&plain[skipped..skipped + out.len()]);
        Ok(())
    }
}

/// What unpacking needs, used again from chunk to chunk.
struct Unpacker {
    inflate: Decompress,
    packed: Vec<u8>,
    plain: Vec<u8>,
}

impl Default for Unpacker {
    fn default() -> Self {
        Self { inflate: Decompress::new(true), packed: Vec::new(), plain: Vec::new() }
    }
}

/// Exactly one chunk must come out, whatever the data claim.
fn inflate_into(inflate: &mut Decompress, packed: &[u8], out: &mut [u8]) -> io::Result<()> {
    inflate.reset(true);
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a compressed chunk cannot be unpacked");
    let status = inflate.decompress(packed, out, FlushDecompress::Finish).map_err(|_| damaged())?;
    if status == Status::StreamEnd && inflate.total_out() == out.len() as u64 { Ok(()) } else { Err(damaged()) }
}

/// The places of all chunks in order; `None` where one is missing, doubled or stored in an unusual way.
fn chunk_table(dataset: &hdf5::Dataset, len: usize, chunk_rows: usize) -> Option<Vec<Stored>> {
    let mut table: Vec<Option<Stored>> = vec![None; len.div_ceil(chunk_rows)];
    let mut usual = true;
    let visited = dataset.chunks_visit(|chunk| {
        let first = chunk.offset[0] as usize;
        let whole = first.is_multiple_of(chunk_rows) && chunk.offset[1..].iter().all(|&o| o == 0);
        match table.get_mut(first / chunk_rows) {
            Some(slot) if whole && slot.is_none() && chunk.filter_mask == 0 => {
                *slot = Some(Stored { start: chunk.addr, bytes: chunk.size as usize });
            }
            _ => usual = false,
        }
        0
    });
    if visited.is_ok() && usual { table.into_iter().collect() } else { None }
}

#[cfg(unix)]
fn read_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(windows)]
fn read_at(file: &File, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => (offset, out) = (offset + n as u64, &mut out[n..]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
