//! A file on the disk or an object in a store, read in the same way.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::errors::{ParquetError, Result as Parsed};
use parquet::file::reader::{ChunkReader, Length};

use super::{ObjectFile, noted, stores};

/// Places of one object that are read at a time: so many columns of a table go forward side by side.
const CURSORS: usize = 4;

/// A file on the disk or an object in a store.
pub enum File {
    /// On the disk.
    Local(std::fs::File),
    /// In a store, and its address.
    Object(Box<dyn ObjectFile>, Arc<str>),
}

impl File {
    /// Opens what lies at a path or an address.
    pub fn open(path: &Path) -> io::Result<Self> {
        match path.to_str().filter(|text| super::is_text(text)) {
            Some(url) => {
                let opened = stores()?.open(url).map_err(|error| noted(url, error))?;
                Ok(Self::Object(opened, url.into()))
            }
            None => std::fs::File::open(path).map(Self::Local),
        }
    }

    /// Its bytes.
    pub fn size(&self) -> io::Result<u64> {
        match self {
            Self::Local(file) => Ok(file.metadata()?.len()),
            Self::Object(object, _) => Ok(object.size()),
        }
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Local(file) => file.fmt(f),
            Self::Object(_, url) => f.debug_tuple("Object").field(url).finish(),
        }
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(file) => file.read(buffer),
            Self::Object(object, url) => object.read(buffer).map_err(|error| noted(url, error)),
        }
    }
}

impl Seek for File {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Local(file) => file.seek(place),
            Self::Object(object, _) => object.seek(place),
        }
    }
}

/// A file as Parquet's library wants it.
pub enum Chunks {
    /// On the disk.
    Local(std::fs::File),
    /// In a store.
    Object(Arc<Cursors>),
}

/// An object that is read at several places in turn.
pub struct Cursors {
    url: Arc<str>,
    size: u64,
    /// The one that was used last is the last.
    open: Mutex<Vec<Box<dyn ObjectFile>>>,
}

/// Opens a file for Parquet's library.
pub(crate) fn chunks(path: &Path) -> io::Result<Chunks> {
    Ok(match File::open(path)? {
        File::Local(file) => Chunks::Local(file),
        File::Object(object, url) => {
            Chunks::Object(Arc::new(Cursors { url, size: object.size(), open: Mutex::new(vec![object]) }))
        }
    })
}

impl Cursors {
    /// Reads at a place, with whichever cursor is there already.
    fn read(&self, place: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let index = open.iter().position(|cursor| cursor.holds(place));
        let mut cursor = match index {
            Some(index) => open.remove(index),
            None if open.len() < CURSORS => match open.first() {
                Some(first) => first.fork(),
                None => stores()?.open(&self.url)?,
            },
            None => open.remove(0),
        };
        let read = cursor.seek(SeekFrom::Start(place)).and_then(|_| cursor.read(buffer));
        open.push(cursor);
        read.map_err(|error| noted(&self.url, error))
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        match self {
            Self::Local(file) => Length::len(file),
            Self::Object(cursors) => cursors.size,
        }
    }
}

/// A reader from some place on.
pub enum ChunkRead {
    /// On the disk.
    Local(BufReader<std::fs::File>),
    /// In a store, from that place on.
    Object(Arc<Cursors>, u64),
}

impl Read for ChunkRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(file) => file.read(buffer),
            Self::Object(cursors, place) => {
                let read = cursors.read(*place, buffer)?;
                *place += read as u64;
                Ok(read)
            }
        }
    }
}

impl ChunkReader for Chunks {
    type T = ChunkRead;

    fn get_read(&self, start: u64) -> Parsed<ChunkRead> {
        Ok(match self {
            Self::Local(file) => ChunkRead::Local(file.get_read(start)?),
            Self::Object(cursors) => ChunkRead::Object(cursors.clone(), start),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Parsed<bytes::Bytes> {
        match self {
            Self::Local(file) => file.get_bytes(start, length),
            Self::Object(cursors) => {
                let read = crate::unpack::read_exactly(&mut ChunkRead::Object(cursors.clone(), start), length);
                read.map(bytes::Bytes::from).map_err(|error| ParquetError::External(Box::new(error)))
            }
        }
    }
}
