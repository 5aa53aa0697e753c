//! Archives, and how they are told from other files.

mod bounded;
mod name;
mod sample;
pub(crate) mod tar;
pub mod zip;

pub(crate) use name::clean;
pub use tar::is_tar;

use std::io;
use std::path::Path;

use crate::reader::read_head;
use crate::{parquet, rules, unpack};

/// Bytes that are enough to know a tar: its first header.
const TAR_HEAD: usize = 512;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A zip archive.
    Zip,
    /// A tar archive, packed or not.
    Tar,
    /// A Parquet file.
    Parquet,
    /// An image.
    Image,
    /// None of these.
    Other,
}

/// What a file is by its first bytes; where these say nothing, by its name, so that a damaged archive is called that by
/// its own reader.
pub fn kind_of(path: &Path) -> io::Result<FileKind> {
    let head = read_head(path, TAR_HEAD)?;
    if zip::is_zip(&head) {
        return Ok(FileKind::Zip);
    }
    if parquet::matches(&head) {
        return Ok(FileKind::Parquet);
    }
    let packed = unpack::packing(&head) != unpack::Packing::Plain;
    // What cannot be unpacked is no tar by its content; perhaps it is one by its name.
    let inside = if packed { unpack::head(path, TAR_HEAD).unwrap_or_default() } else { head.clone() };
    // A tar begins with a name, which may look like anything.
    Ok(if tar::is_tar(&inside) {
        FileKind::Tar
    } else if rules::is_image_head(&head) {
        FileKind::Image
    } else {
        kind_by_name(path)
    })
}

/// What a file is by its name alone.
pub fn kind_by_name(path: &Path) -> FileKind {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|e| name.ends_with(e));
    if ends(&[".zip"]) {
        FileKind::Zip
    } else if ends(&[".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz"]) {
        FileKind::Tar
    } else if ends(&[".parquet", ".pq"]) {
        FileKind::Parquet
    } else if rules::has_image_extension(path) {
        FileKind::Image
    } else {
        FileKind::Other
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{PNG, bz2, gz, tar, zip};

    #[test]
    fn content_tells_and_then_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            kind_of(&path).unwrap()
        };
        let tarred = tar(&[("a.png", b"x")]);
        assert_eq!(kind("a", &zip(&[("a.png", b"x")])), FileKind::Zip);
        assert_eq!(kind("b.zip", &tarred), FileKind::Tar);
        assert_eq!(kind("c", &gz(&tarred)), FileKind::Tar);
        assert_eq!(kind("d.png", &bz2(&tarred)), FileKind::Tar);
        assert_eq!(kind("e", &tar(&[("GIF89a.gif", b"x")])), FileKind::Tar);
        assert_eq!(kind("f.dat", PNG), FileKind::Image);
        assert_eq!(kind("g.png", b"?"), FileKind::Image);
        assert_eq!(kind("h.zip", b"<html>"), FileKind::Zip);
        assert_eq!(kind("i.TAR.BZ2", b"BZh9, cut"), FileKind::Tar);
        assert_eq!(kind("j.tgz", b""), FileKind::Tar);
        assert_eq!(kind("k.gz", &gz(PNG)), FileKind::Other);
        assert_eq!(kind("l.txt", b"hello"), FileKind::Other);
        assert_eq!((kind("m", b"PAR1"), kind("n.Parquet", b"")), (FileKind::Parquet, FileKind::Parquet));
        assert!(kind_of(&folder.path().join("gone")).is_err());
    }
}
