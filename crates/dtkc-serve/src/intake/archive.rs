//! A zip whose images stay packed until a worker needs them. Nothing is ever written to the disk.

use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::web::Bytes;
use dtkc_item::ItemError;
use zip::read::{Config, ZipFileEntry, ZipReadOptions};
// The reader that walks the directory instead of loading it: a zip of a million empty files costs no memory.
use zip::unstable::read::ZipIterable;

use crate::engine::{Content, Upload};
use crate::error::ApiError;

/// A zip may unpack to this many times the largest request body, all images together.
const UNPACKED_FACTOR: u64 = 8;
/// Files that are no images, and folders, are passed over, but not without end.
const OTHERS_PER_IMAGE: usize = 4;

/// What a zip may hold.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveLimits {
    /// Most images.
    pub max_images: usize,
    /// Most bytes of one image, unpacked. All of them together may have some times that.
    pub max_bytes: u64,
}

/// An opened zip in memory.
#[derive(Debug)]
pub struct Archive {
    bytes: Bytes,
    entries: Vec<Entry>,
    max_bytes: u64,
}

#[derive(Debug)]
struct Entry {
    packed: usize,
    /// Taken by the worker that unpacks it: the zip reader wants the entry itself.
    entry: Mutex<Option<ZipFileEntry<'static>>>,
}

/// True for the first bytes of a zip, also of an empty one.
pub fn looks_like_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// Reads the directory of a zip and gives one upload per image in it, in order. Reads, but does not unpack.
pub fn open(bytes: Bytes, limits: ArchiveLimits) -> Result<Vec<Upload>, ApiError> {
    let bad = |error: zip::result::ZipError| ApiError::BadZip(error.to_string());
    let mut zip = ZipIterable::try_new(Cursor::new(bytes.clone()), Config::default()).map_err(bad)?;
    if zip.len() > limits.max_images.saturating_mul(OTHERS_PER_IMAGE).saturating_add(1000) {
        return Err(ApiError::TooManyImages { limit: limits.max_images });
    }
    let unpacked_limit = limits.max_bytes.saturating_mul(UNPACKED_FACTOR);
    let (mut names, mut entries, mut unpacked) = (Vec::new(), Vec::new(), 0u64);
    for entry in zip.files().map_err(bad)? {
        let entry = entry.map_err(bad)?;
        let Some(name) = image_name(&entry) else { continue };
        unpacked = unpacked.saturating_add(entry.size().min(limits.max_bytes));
        if names.len() == limits.max_images {
            return Err(ApiError::TooManyImages { limit: limits.max_images });
        }
        if unpacked > unpacked_limit {
            return Err(ApiError::UnpackedTooLarge { limit: unpacked_limit });
        }
        names.push(name);
        let packed = usize::try_from(entry.compressed_size()).unwrap_or(usize::MAX);
        entries.push(Entry { packed: packed.min(bytes.len()), entry: Mutex::new(Some(entry)) });
    }
    let archive = Arc::new(Archive { bytes, entries, max_bytes: limits.max_bytes });
    let upload = |(index, name)| Upload { name, content: Content::Zipped(archive.clone(), index) };
    Ok(names.into_iter().enumerate().map(upload).collect())
}

/// The name that the answer repeats, made relative; `None` for what is no image: folders, hidden files, the
/// extra files of macOS, files with the extension of something else.
fn image_name(entry: &ZipFileEntry<'_>) -> Option<String> {
    let raw = entry.name().map_or_else(|_| String::from_utf8_lossy(entry.name_raw()).into_owned(), |n| n.into_owned());
    if entry.is_dir() || entry.is_symlink() {
        return None;
    }
    let parts = raw.split(['/', '\\']).filter(|part| !part.is_empty() && !["..", "."].contains(part));
    let parts: Vec<&str> = parts.filter(|part| !part.ends_with(':')).collect();
    let last = parts.last()?;
    if last.starts_with('.') || parts[0] == "__MACOSX" {
        return None;
    }
    let path = Path::new(last);
    let tried = path.extension().is_none() || dtkc_image::looks_like_image(path);
    tried.then(|| parts.join("/"))
}

impl Archive {
    /// Packed bytes of one image.
    pub fn packed_size(&self, index: usize) -> usize {
        self.entries.get(index).map_or(0, |e| e.packed)
    }

    /// The bytes of one image file. Works once per image.
    pub fn unpack(&self, index: usize) -> Result<Vec<u8>, ItemError> {
        let slot = self.entries.get(index).map(|e| &e.entry);
        let taken = slot.and_then(|s| s.lock().unwrap_or_else(PoisonError::into_inner).take());
        let entry = taken.ok_or_else(|| damaged("it is not there"))?;
        if entry.encrypted() {
            return Err(damaged("it is encrypted"));
        }
        let declared = entry.size();
        if declared > self.max_bytes {
            return Err(self.too_large(declared));
        }
        let mut reader = Cursor::new(self.bytes.clone());
        let file = entry.with_reader(&mut reader, ZipReadOptions::new()).map_err(|e| damaged(&e.to_string()))?;
        let mut bytes = Vec::with_capacity(declared.min(1 << 20) as usize);
        // A size that lies is found out by reading one byte more than it says.
        file.take(declared + 1).read_to_end(&mut bytes).map_err(|e| damaged(&e.to_string()))?;
        if bytes.len() as u64 > declared { Err(damaged("it is larger than it says")) } else { Ok(bytes) }
    }

    fn too_large(&self, bytes: u64) -> ItemError {
        let (bytes, limit) = (dtkc_human::bytes(bytes), dtkc_human::bytes(self.max_bytes));
        ItemError::new("too_large", format_args!("the file unpacks to {bytes}, more than the limit of {limit}"))
    }
}

fn damaged(reason: &str) -> ItemError {
    let message = format_args!("the file in the zip cannot be unpacked ({reason}); pack it again");
    ItemError::new("bad_zip_entry", message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write;
    use zip::write::SimpleFileOptions;

    const LIMITS: ArchiveLimits = ArchiveLimits { max_images: 10, max_bytes: 1000 };

    fn zip_of(files: &[(&str, &[u8])]) -> Bytes {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in files {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner().into()
    }

    fn unpack(upload: &Upload) -> Result<Vec<u8>, ItemError> {
        match &upload.content {
            Content::Zipped(archive, index) => archive.unpack(*index),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn images_come_out_in_order_and_the_rest_is_passed_over() {
        let zip = zip_of(&[
            ("b/two.PNG", b"2"),
            ("readme.txt", b"x"),
            ("__MACOSX/b/._two.png", b"x"),
            (".hidden.png", b"x"),
            ("a/one.jpg", b"1"),
            ("0003", b"3"),
        ]);
        let items = open(zip, LIMITS).unwrap();
        let names: Vec<&str> = items.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["b/two.PNG", "a/one.jpg", "0003"]);
        let contents: Vec<Vec<u8>> = items.iter().map(|i| unpack(i).unwrap()).collect();
        assert_eq!(contents, [b"2", b"1", b"3"]);
    }

    #[test]
    fn absolute_and_climbing_names_become_relative() {
        let zip = zip_of(&[("/etc/a.png", b"a"), ("../../b.png", b"b"), ("C:\\win\\c.png", b"c")]);
        let names: Vec<String> = open(zip, LIMITS).unwrap().into_iter().map(|i| i.name).collect();
        assert_eq!(names, ["etc/a.png", "b.png", "win/c.png"]);
    }

    #[test]
    fn a_bomb_fails_alone_or_as_a_whole() {
        let zeros = vec![0; 5000];
        let items = open(zip_of(&[("bomb.png", &zeros), ("good.png", b"fine")]), LIMITS).unwrap();
        assert_eq!(unpack(&items[0]).unwrap_err().code, "too_large");
        assert_eq!(unpack(&items[1]).unwrap(), b"fine");
        let many: Vec<(String, &[u8])> = (0..9).map(|i| (format!("{i}.png"), &zeros[..])).collect();
        let many: Vec<(&str, &[u8])> = many.iter().map(|(n, c)| (n.as_str(), *c)).collect();
        assert_eq!(open(zip_of(&many), LIMITS).unwrap_err().code(), "unpacked_too_large");
    }

    #[test]
    fn a_size_that_lies_is_found_out() {
        let honest = zip_of(&[("a.png", &[7; 900])]);
        let mut lying = honest.to_vec();
        // The size is stored twice, in the local and in the central header; both say 900.
        let size = 900u32.to_le_bytes();
        for at in (0..lying.len() - 4).filter(|&i| lying[i..i + 4] == size).collect::<Vec<_>>() {
            lying[at..at + 4].copy_from_slice(&10u32.to_le_bytes());
        }
        let items = open(lying.into(), LIMITS).unwrap();
        assert_eq!(unpack(&items[0]).unwrap_err().code, "bad_zip_entry");
    }

    #[test]
    fn too_many_files_and_no_zip_at_all_are_refused() {
        let names: Vec<String> = (0..11).map(|i| format!("{i}.png")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|n| (n.as_str(), &b"x"[..])).collect();
        assert_eq!(open(zip_of(&files), LIMITS).unwrap_err().code(), "too_many_images");
        assert_eq!(open(Bytes::from_static(b"PK\x03\x04 no"), LIMITS).unwrap_err().code(), "bad_zip");
    }
}
