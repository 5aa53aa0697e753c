//! Items that wait on the disk for the output that holds them: those of labelled rows, one after the other.
//!
//! Images are their pixels. A sequence is its number of steps (u64) and its values (f32), all little-endian.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use dtkc_item::{ItemShape, Items};

use crate::error::Result;

/// More values than one sequence of ours ever has: a length that claims more is noise.
const MAX_VALUES: u64 = 1 << 27;

/// Items on their way to the disk.
pub struct SpoolWriter {
    /// Where they go.
    pub path: PathBuf,
    /// The file itself.
    pub file: BufWriter<File>,
}

impl SpoolWriter {
    /// Goes on in a file that is open.
    pub fn new(path: PathBuf, file: File) -> Self {
        Self { path, file: BufWriter::with_capacity(1 << 20, file) }
    }

    /// Cuts the file off at a length, and goes to its end.
    pub fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.get_mut().set_len(length)?;
        self.file.seek(SeekFrom::End(0)).map(drop)
    }

    /// Writes items and hands them to the system.
    pub fn append(&mut self, items: &Items) -> io::Result<()> {
        match items {
            Items::Images { pixels, .. } => self.file.write_all(pixels)?,
            Items::Sequences { dim, values, offsets } => {
                for pair in offsets.windows(2) {
                    self.file.write_all(&((pair[1] - pair[0]) as u64).to_le_bytes())?;
                    for value in &values[pair[0] * dim..pair[1] * dim] {
                        self.file.write_all(&value.to_le_bytes())?;
                    }
                }
            }
            Items::Features { values, .. } => {
                for value in values {
                    self.file.write_all(&value.to_le_bytes())?;
                }
            }
        }
        self.file.flush()
    }
}

/// Items that come back from the disk.
pub struct SpoolReader {
    file: BufReader<File>,
    shape: ItemShape,
    position: u64,
    length: u64,
}

impl SpoolReader {
    /// Opens a file of items of that shape.
    pub fn open(path: &Path, shape: ItemShape) -> Result<Self> {
        let file = fs_err::File::open(path)?.into_parts().0;
        let length = file.metadata()?.len();
        Ok(Self { file: BufReader::with_capacity(1 << 20, file), shape, position: 0, length })
    }

    /// Passes over so many items, and says where the last of them ends; `None` where they are not all there.
    pub fn skip(&mut self, count: usize) -> Result<Option<u64>> {
        for _ in 0..count {
            let Some(bytes) = self.next_bytes()? else { return Ok(None) };
            self.file.seek_relative(bytes as i64)?;
            self.position += bytes;
        }
        Ok(Some(self.position))
    }

    /// The next items.
    pub fn next(&mut self, count: usize) -> Result<Items> {
        let mut items = Items::empty(self.shape);
        for _ in 0..count {
            let bytes = self.next_bytes()?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            let mut raw = vec![0; bytes as usize];
            self.file.read_exact(&mut raw)?;
            self.position += bytes;
            match &mut items {
                Items::Images { pixels, .. } => pixels.append(&mut raw),
                Items::Sequences { dim, values, offsets } => {
                    values.extend(raw.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)));
                    offsets.push(values.len() / *dim);
                }
                Items::Features { values, .. } => {
                    values.extend(raw.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)));
                }
            }
        }
        Ok(items)
    }

    /// Bytes of the next item, behind its length where it has one; `None` where the file ends before.
    fn next_bytes(&mut self) -> Result<Option<u64>> {
        let bytes = match self.shape {
            ItemShape::Image(shape) => shape.len() as u64,
            ItemShape::Features(shape) => (shape.len() * size_of::<f32>()) as u64,
            ItemShape::Sequence { dim } => {
                if self.length - self.position < 8 {
                    return Ok(None);
                }
                let mut steps = [0; 8];
                self.file.read_exact(&mut steps)?;
                self.position += 8;
                match u64::from_le_bytes(steps).checked_mul(dim as u64).filter(|&values| values <= MAX_VALUES) {
                    Some(values) => values * size_of::<f32>() as u64,
                    None => return Ok(None),
                }
            }
        };
        Ok(Some(bytes).filter(|&bytes| bytes <= self.length - self.position))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_item::ImageShape;

    use super::*;

    fn written(items: &Items) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        SpoolWriter::new(path.clone(), file).append(items).unwrap();
        (folder, path)
    }

    #[test]
    fn items_come_back_and_are_passed_over() {
        let shape = ImageShape { height: 1, width: 2, channels: 1 };
        let images = Items::Images { shape, pixels: (0..6).collect() };
        let sequences =
            Items::Sequences { dim: 2, values: (0..8).map(|v| v as f32).collect(), offsets: vec![0, 1, 3, 4] };
        for (items, ends) in [(images, [2, 4, 6]), (sequences, [16, 40, 56])] {
            let (_folder, path) = written(&items);
            let mut reader = SpoolReader::open(&path, items.shape()).unwrap();
            assert_eq!(ends.map(|_| reader.skip(1).unwrap().unwrap()), ends);
            assert_eq!(reader.skip(1).unwrap(), None);
            let mut reader = SpoolReader::open(&path, items.shape()).unwrap();
            let mut found = reader.next(1).unwrap();
            found.append(&reader.next(2).unwrap());
            assert_eq!(found, items);
            assert!(reader.next(1).is_err());
        }
    }

    #[test]
    fn what_was_cut_off_or_damaged_is_not_there() {
        let items = Items::Sequences { dim: 1, values: vec![1.0, 2.0], offsets: vec![0, 1, 2] };
        let (_folder, path) = written(&items);
        let bytes = std::fs::read(&path).unwrap();
        for length in [23, 20, 15] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(SpoolReader::open(&path, items.shape()).unwrap().skip(2).unwrap(), None);
        }
        std::fs::write(&path, [0xff; 24]).unwrap();
        assert_eq!(SpoolReader::open(&path, items.shape()).unwrap().skip(1).unwrap(), None);
        assert!(SpoolReader::open(&path, items.shape()).unwrap().next(1).is_err());
    }
}
