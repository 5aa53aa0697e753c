//! One image that was found, and how its bytes are read.

use dtkc_item::ItemError;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::zip::read::ZipFileEntry;
use dtkc_infer::read_file;

use super::Table;

/// One image that was found.
pub struct Found {
    /// What the `path` column says.
    pub path: String,
    /// Where in `path` the part begins that lies below the input: the rest of a folder's or archive's own path.
    pub place: usize,
    /// Where its bytes are.
    pub body: Body,
}

/// Where the bytes of an image are.
pub enum Body {
    /// A file of its own.
    File(PathBuf),
    /// A stretch of a file (an entry of a tar).
    Slice {
        /// The archive.
        archive: Arc<Path>,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// An entry of a zip.
    Zip {
        /// The archive.
        archive: Arc<Path>,
        /// Its directory entry; gone once it was read.
        entry: Option<Box<ZipFileEntry<'static>>>,
    },
    /// Already here (a compressed tar can be read only once).
    Bytes(Vec<u8>),
    /// A row of a dataset; its pixels need no decoding.
    Row {
        /// The dataset.
        table: Arc<Table>,
        /// Which row.
        row: usize,
    },
    /// Should have been an image.
    Broken(ItemError),
}

impl Found {
    /// A file of its own; `place` as in [`Found::place`].
    pub(super) fn file(path: &Path, place: usize) -> Self {
        Self { path: path.to_string_lossy().into_owned(), place, body: Body::File(path.to_owned()) }
    }

    /// An entry of an archive.
    pub(super) fn entry(archive: &Path, name: &str, body: Body) -> Self {
        let archive = archive.to_string_lossy();
        Self { path: format!("{archive}/{name}"), place: archive.len() + 1, body }
    }

    /// Something that cannot be read at all.
    pub(super) fn broken(path: &Path, failure: ItemError) -> Self {
        Self { path: path.to_string_lossy().into_owned(), place: 0, body: Body::Broken(failure) }
    }

    /// The path below the input.
    pub fn place(&self) -> &str {
        self.path.get(self.place..).unwrap_or(&self.path)
    }

    /// The name of the folder that the image lies in: its class, where folders are classes.
    pub fn folder_name(&self) -> Option<String> {
        let inside = matches!(self.body, Body::Slice { .. } | Body::Zip { .. } | Body::Bytes(_));
        let path = Path::new(if inside { self.place() } else { &self.path });
        let name = path.parent()?.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }
}

/// Reads bodies. Keeps the last archive open.
pub struct BodyReader {
    max_bytes: u64,
    archive: Option<(Arc<Path>, BufReader<File>)>,
}

impl BodyReader {
    /// A reader that refuses more than `max_bytes` for one image.
    pub fn new(max_bytes: u64) -> Self {
        Self { max_bytes, archive: None }
    }

    /// The encoded bytes of an image; those in archives and in memory can be read once. Rows of datasets have none.
    pub fn read(&mut self, body: &mut Body) -> Result<Vec<u8>, ItemError> {
        match body {
            Body::Bytes(bytes) => Ok(std::mem::take(bytes)),
            Body::Broken(error) => Err(error.clone()),
            Body::Row { .. } => Err(ItemError::new("unsupported", "a dataset's row has no encoded bytes")),
            Body::File(path) => read_file(path, self.max_bytes),
            Body::Slice { archive, offset, length } => self.read_slice(archive, *offset, *length),
            Body::Zip { archive, entry } => match entry.take() {
                Some(entry) => self.read_zip(archive, *entry),
                None => Err(ItemError::new("unreadable", "the entry was read already")),
            },
        }
    }

    fn read_slice(&mut self, archive: &Arc<Path>, offset: u64, length: u64) -> Result<Vec<u8>, ItemError> {
        self.check(length)?;
        let file = open_archive(&mut self.archive, archive)?;
        let mut bytes = Vec::with_capacity(length as usize);
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.take(length).read_to_end(&mut bytes));
        match read {
            Ok(read) if read as u64 == length => Ok(bytes),
            Ok(_) => Err(ItemError::new("truncated", "the archive ends inside this entry; copy or download it again")),
            Err(error) => Err(unreadable(error)),
        }
    }

    fn read_zip(&mut self, archive: &Arc<Path>, entry: ZipFileEntry<'_>) -> Result<Vec<u8>, ItemError> {
        if entry.encrypted() {
            return Err(ItemError::new("encrypted", "the archive's entry is encrypted; unpack the archive first"));
        }
        let size = entry.size();
        self.check(size)?;
        let file = open_archive(&mut self.archive, archive)?;
        let mut bytes = Vec::with_capacity(size as usize);
        let content = entry.with_reader(file, Default::default()).map_err(|e| damaged(&e))?;
        // The directory's size may lie; the checksum is checked at the end of the data.
        content.take(self.max_bytes + 1).read_to_end(&mut bytes).map_err(|e| damaged(&e))?;
        self.check(bytes.len() as u64)?;
        Ok(bytes)
    }

    fn check(&self, bytes: u64) -> Result<(), ItemError> {
        match bytes > self.max_bytes {
            true => Err(ItemError::too_many_bytes(bytes, self.max_bytes)),
            false => Ok(()),
        }
    }
}

fn unreadable(error: io::Error) -> ItemError {
    ItemError::new("unreadable", format!("the file cannot be read: {error}"))
}

fn damaged(error: &dyn std::fmt::Display) -> ItemError {
    ItemError::new("damaged_archive", format!("the archive's entry is damaged ({error}); copy or download it again"))
}

fn open_archive<'a>(
    open: &'a mut Option<(Arc<Path>, BufReader<File>)>,
    archive: &Arc<Path>,
) -> Result<&'a mut BufReader<File>, ItemError> {
    if open.as_ref().is_none_or(|(path, _)| path != archive) {
        *open = Some((archive.clone(), BufReader::new(File::open(archive).map_err(unreadable)?)));
    }
    match open {
        Some((_, file)) => Ok(file),
        None => Err(ItemError::new("unreadable", "the archive is not open")),
    }
}
