//! Bytes of items, never more than allowed.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use dtkc_item::{ItemError, read_file};

use crate::Body;
use crate::parquet::{RowReader, no_image};
use crate::remote::{self, FetchError, File};

/// Reads bodies. Keeps the last archive and the last table open.
#[derive(Debug)]
pub struct BodyReader {
    max_bytes: u64,
    archive: Option<(Arc<Path>, NearFile)>,
    table: Option<RowReader>,
}

impl BodyReader {
    /// A reader that refuses more than `max_bytes` for one item.
    pub fn new(max_bytes: u64) -> Self {
        Self { max_bytes, archive: None, table: None }
    }

    /// The bytes of an item. Those that are in memory are taken from there, so they can be read once.
    pub fn read(&mut self, body: &mut Body) -> Result<Vec<u8>, ItemError> {
        match body {
            Body::File(path) => read_file(path, self.max_bytes),
            Body::Slice { archive, offset, length } => {
                let (offset, length, max_bytes) = (*offset, *length, self.max_bytes);
                read_slice(self.open(archive)?, offset, length, max_bytes)
            }
            Body::Zip { archive, entry } => {
                let max_bytes = self.max_bytes;
                entry.read(self.open(archive)?, max_bytes)
            }
            Body::Row { table, group, row, named } => {
                let reader = match self.table.take() {
                    Some(reader) if reader.reads(table) => self.table.insert(reader),
                    _ => self.table.insert(RowReader::open(table.clone())?),
                };
                reader.read(*group, *row, self.max_bytes)?.ok_or_else(|| no_image(*named))
            }
            Body::Object { url, .. } => fetch(&[url], self.max_bytes).remove(0),
            Body::Bytes(bytes) => Ok(std::mem::take(bytes)),
            Body::Broken(error) => Err(error.clone()),
        }
    }

    /// Reads the objects among several bodies side by side, so that [`BodyReader::read`] finds them in memory.
    pub fn fetch<'a>(&self, bodies: impl IntoIterator<Item = &'a mut Body>) {
        let objects: Vec<&mut Body> = bodies.into_iter().filter(|body| matches!(body, Body::Object { .. })).collect();
        let urls: Vec<Box<str>> = objects
            .iter()
            .filter_map(|body| if let Body::Object { url, .. } = body { Some(url.clone()) } else { None })
            .collect();
        let urls: Vec<&str> = urls.iter().map(|url| &**url).collect();
        for (body, fetched) in objects.into_iter().zip(fetch(&urls, self.max_bytes)) {
            *body = fetched.map_or_else(Body::Broken, Body::Bytes);
        }
    }

    fn open(&mut self, archive: &Arc<Path>) -> Result<&mut NearFile, ItemError> {
        let file = match self.archive.take() {
            Some((path, file)) if path == *archive => file,
            _ => NearFile::open(archive, 64 << 10).map_err(ItemError::unreadable)?,
        };
        Ok(&mut self.archive.insert((archive.clone(), file)).1)
    }
}

/// The first bytes of a file as it lies on the disk, or of an object.
pub fn read_head(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    read_from(File::open(path), most)
}

/// The first bytes of what was opened.
pub(crate) fn read_from(file: io::Result<File>, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    file?.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of several objects.
fn fetch(urls: &[&str], max_bytes: u64) -> Vec<Result<Vec<u8>, ItemError>> {
    if urls.is_empty() {
        return Vec::new();
    }
    let stores = match remote::stores() {
        Ok(stores) => stores,
        Err(error) => return urls.iter().map(|_| Err(ItemError::unreadable(&error))).collect(),
    };
    let fetched = stores.fetch(urls, max_bytes).into_iter().zip(urls);
    let answer = |(fetched, url): (Result<Vec<u8>, FetchError>, &&str)| match fetched {
        Ok(bytes) => ItemError::check_bytes(bytes.len() as u64, max_bytes).map(|()| bytes),
        Err(FetchError::TooLarge(size)) => ItemError::check_bytes(size, max_bytes).map(|()| Vec::new()),
        Err(FetchError::Io(error)) => Err(ItemError::unreadable(remote::noted(url, error))),
    };
    fetched.map(answer).collect()
}

fn read_slice(file: &mut NearFile, offset: u64, length: u64, max_bytes: u64) -> Result<Vec<u8>, ItemError> {
    ItemError::check_bytes(length, max_bytes)?;
    let mut bytes = Vec::with_capacity(length as usize);
    file.seek(SeekFrom::Start(offset)).map_err(ItemError::unreadable)?;
    match file.take(length).read_to_end(&mut bytes) {
        Ok(read) if read as u64 == length => Ok(bytes),
        Ok(_) => Err(cut_off()),
        Err(error) => Err(ItemError::unreadable(error)),
    }
}

/// An archive that ends inside an entry.
pub(crate) fn cut_off() -> ItemError {
    ItemError::new("truncated", "the archive is cut off; copy or download it again")
}

/// A file that keeps what it has read ahead when the next place is near: archives are read almost in their order, and
/// most of their items are small.
#[derive(Debug)]
pub(crate) struct NearFile {
    file: BufReader<File>,
    at: u64,
}

impl NearFile {
    /// Opens a file that is read `ahead` bytes at a time.
    pub(crate) fn open(path: &Path, ahead: usize) -> io::Result<Self> {
        Ok(Self { file: BufReader::with_capacity(ahead, File::open(path)?), at: 0 })
    }
}

impl Read for NearFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl BufRead for NearFile {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.file.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.file.consume(count);
        self.at += count as u64;
    }
}

impl Seek for NearFile {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        let step = match place {
            SeekFrom::Start(to) => i64::try_from(i128::from(to) - i128::from(self.at)).ok(),
            SeekFrom::Current(step) => Some(step),
            SeekFrom::End(_) => None,
        };
        let to = step.and_then(|step| self.at.checked_add_signed(step));
        match (step, to) {
            (Some(step), Some(to)) => {
                self.file.seek_relative(step)?;
                self.at = to;
            }
            _ => self.at = self.file.seek(place)?,
        }
        Ok(self.at)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn slices_may_lie_anywhere_but_beyond_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path: Arc<Path> = folder.path().join("a.tar").into();
        let content: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let mut reader = BodyReader::new(70_000);
        let mut slice = |offset: u64, length| reader.read(&mut Body::Slice { archive: path.clone(), offset, length });
        for (offset, length) in [(0, 10), (150_000, 70), (20, 66_000), (199_999, 1), (66_020, 5), (5, 0)] {
            assert_eq!(slice(offset, length).unwrap(), content[offset as usize..][..length as usize]);
        }
        assert_eq!(slice(199_999, 2).unwrap_err().code, "truncated");
        assert_eq!(slice(u64::MAX, 2).unwrap_err().code, "unreadable");
        assert_eq!(slice(0, 70_001).unwrap_err().code, "too_large");
        assert_eq!(slice(3, 2).unwrap(), [3, 4]);
    }
}
