//! A file of a web server that gives no parts: it is fetched as a whole, into a file that has no name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

use dtkc_source::remote::ObjectFile;
use futures_util::StreamExt;
use object_store::ObjectStoreExt;

use crate::StoreError;
use crate::address::Address;
use crate::connect;
use crate::error::Kind;
use crate::reader::place_of;
use crate::settings::Purpose;
use crate::transfer::check_space;

/// How often it is fetched from its beginning.
const ATTEMPTS: u32 = 3;

/// Fetches a file; its room is looked for before.
pub(crate) async fn fetch(address: Address) -> Result<(File, u64), StoreError> {
    let mut attempt = 1;
    loop {
        match try_fetch(&address).await {
            Err(error) if error.kind() == Kind::Passing && attempt < ATTEMPTS => attempt += 1,
            fetched => return fetched,
        }
    }
}

async fn try_fetch(address: &Address) -> Result<(File, u64), StoreError> {
    let store = connect::store(address, Purpose::Read)?;
    let got = store.get(&address.key).await.map_err(|error| StoreError::of(address, &error).tried())?;
    let size = got.meta.size;
    let folder = std::env::temp_dir();
    check_space(&folder, size)?;
    let unwritable = |error: io::Error| {
        StoreError::other(format!(
            "it cannot be kept in {} ({error}); choose another folder with TMPDIR",
            folder.display()
        ))
    };
    let mut file = tempfile::tempfile_in(&folder).map_err(unwritable)?;
    let (mut stream, mut read) = (got.into_stream(), 0u64);
    while let Some(part) = stream.next().await {
        let part = part.map_err(|error| StoreError::of(address, &error).broken_off())?;
        read += part.len() as u64;
        if read > size {
            break;
        }
        file.write_all(&part).map_err(unwritable)?;
    }
    match read == size {
        true => Ok((file, size)),
        false => Err(StoreError::new(Kind::Passing, "the connection broke off; check the network, and try again")),
    }
}

/// Reads such a file. All who do share it.
#[derive(Clone)]
pub(crate) struct WholeFile {
    file: Arc<Mutex<File>>,
    size: u64,
}

impl WholeFile {
    pub(crate) fn new(file: File, size: u64) -> Self {
        Self { file: Arc::new(Mutex::new(file)), size }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn reader(&self) -> WholeReader {
        WholeReader { inner: BufReader::with_capacity(256 << 10, Place { whole: self.clone(), at: 0 }) }
    }
}

/// One place in it.
struct Place {
    whole: WholeFile,
    at: u64,
}

impl Read for Place {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.whole.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Place {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.at = place_of(place, self.at, self.whole.size)?;
        Ok(self.at)
    }
}

/// A reader of it.
pub(crate) struct WholeReader {
    inner: BufReader<Place>,
}

impl Read for WholeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer)
    }
}

impl BufRead for WholeReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.inner.consume(count);
    }
}

impl Seek for WholeReader {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.inner.seek(place)
    }
}

impl ObjectFile for WholeReader {
    fn size(&self) -> u64 {
        self.inner.get_ref().whole.size
    }

    // A place of it costs nothing.
    fn holds(&self, _place: u64) -> bool {
        true
    }

    fn fork(&self) -> Box<dyn ObjectFile> {
        Box::new(self.inner.get_ref().whole.reader())
    }
}
