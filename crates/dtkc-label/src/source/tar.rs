//! Tar archives, also in WebDataset style (images beside files of the same stem) and compressed with gzip.

use dtkc_item::ItemError;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use ::tar::{Archive, Entry};
use flate2::read::MultiGzDecoder;

use super::{Body, Found, Visitor, is_archived_image};
use crate::error::{LabelError, Result};

/// Entries of a compressed tar pass through memory; what claims to be larger than this is not read at all.
const MAX_STREAMED: u64 = 256 << 20;

/// Reads the first entry only to see whether that works.
pub(super) fn check(path: &Path) -> Result<()> {
    let file = BufReader::new(fs_err::File::open(path)?);
    let first =
        |reader: &mut dyn Read| Archive::new(reader).entries().and_then(|mut e| e.next().transpose()).map(|_| ());
    let found = if is_compressed(path) { first(&mut MultiGzDecoder::new(file)) } else { first(&mut { file }) };
    found.map_err(|e| LabelError::file(path, format!("{}; copy or download it again", unreadable(&e))))
}

fn unreadable(error: &io::Error) -> String {
    format!("it is not a readable tar archive ({error})")
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz") || e.eq_ignore_ascii_case("tgz"))
}

/// Visits the images of an archive in its order. An archive that is cut off gives what lies before the cut, and fails.
pub(super) fn visit(path: &Path, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    let result = if is_compressed(path) { visit_stream(path, visitor) } else { visit_seekable(path, visitor) };
    match result {
        Ok(flow) => flow,
        Err(error) => visitor.found(Found::broken(path, ItemError::new("damaged_archive", unreadable(&error)))),
    }
}

/// Only the headers are read here; the workers read the images from where they lie.
fn visit_seekable(path: &Path, visitor: &mut dyn Visitor) -> io::Result<ControlFlow<()>> {
    let shared: Arc<Path> = path.into();
    let mut archive = Archive::new(BufReader::with_capacity(2048, File::open(path)?));
    for entry in archive.entries_with_seek()? {
        let mut entry = entry?;
        let Some(name) = image_name(path, &entry, visitor) else { continue };
        let body = match entry.header().entry_type().is_gnu_sparse() {
            true => read_whole(&mut entry),
            false => Body::Slice { archive: shared.clone(), offset: entry.raw_file_position(), length: entry.size() },
        };
        if visitor.found(Found::entry(path, &name, body)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn visit_stream(path: &Path, visitor: &mut dyn Visitor) -> io::Result<ControlFlow<()>> {
    let mut archive = Archive::new(MultiGzDecoder::new(BufReader::new(File::open(path)?)));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let Some(name) = image_name(path, &entry, visitor) else { continue };
        let body = read_whole(&mut entry);
        if visitor.found(Found::entry(path, &name, body)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The name of an entry that is an image by its name.
fn image_name(archive: &Path, entry: &Entry<'_, impl Read>, visitor: &mut dyn Visitor) -> Option<String> {
    let kind = entry.header().entry_type();
    let name = String::from_utf8_lossy(&entry.path_bytes()).trim_start_matches("./").to_owned();
    let is_file = kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse();
    if is_file && is_archived_image(&name) {
        return Some(name);
    }
    if is_file {
        visitor.skipped(&archive.join(name));
    }
    None
}

fn read_whole(entry: &mut Entry<'_, impl Read>) -> Body {
    let size = entry.size();
    if size > MAX_STREAMED {
        return Body::Broken(ItemError::too_many_bytes(size, MAX_STREAMED));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    match entry.read_to_end(&mut bytes) {
        Ok(read) if read as u64 == size => Body::Bytes(bytes),
        Ok(_) => {
            Body::Broken(ItemError::new("truncated", "the archive ends inside this entry; copy or download it again"))
        }
        Err(error) => Body::Broken(ItemError::new("damaged_archive", format!("the entry is damaged ({error})"))),
    }
}
