//! A zip whose images stay packed until a worker needs them. Nothing is ever written to the disk. What is an image, and
//! in which order they come, `dtkc-source` says; how much a zip may hold is said here.

use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::Arc;

use actix_web::web::Bytes;
use dtkc_item::ItemError;
use dtkc_source::zip::{self, Seen, ZipEntry, ZipProblem};

use super::name::name as cut;
use crate::answer::PassedOver;
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
    entries: Vec<ZipEntry>,
    max_bytes: u64,
}

pub use dtkc_source::zip::is_zip;

/// Reads the directory of a zip and gives one upload per image in it, in natural order of their names, and what was
/// passed over. Reads, but does not unpack.
pub fn open(bytes: Bytes, limits: ArchiveLimits) -> Result<(Vec<Upload>, PassedOver), ApiError> {
    let unpacked_limit = limits.max_bytes.saturating_mul(UNPACKED_FACTOR);
    let max_entries = limits.max_images.saturating_mul(OTHERS_PER_IMAGE).saturating_add(1000);
    let (mut names, mut entries, mut passed) = (Vec::new(), Vec::new(), PassedOver::default());
    let (mut unpacked, mut problem) = (0u64, None);
    let seen = zip::each_image(Cursor::new(&bytes), max_entries, &mut |seen| {
        let (name, entry) = match seen {
            Seen::Image(name, entry) => (name, entry),
            Seen::Passed(name, reason) => {
                passed.add(&cut(name), reason);
                return ControlFlow::Continue(());
            }
        };
        unpacked = unpacked.saturating_add(entry.size().min(limits.max_bytes));
        if entries.len() == limits.max_images {
            problem = Some(ApiError::TooManyImages { limit: limits.max_images });
        } else if unpacked > unpacked_limit {
            problem = Some(ApiError::UnpackedTooLarge { limit: unpacked_limit });
        } else {
            names.push(cut(&name));
            entries.push(entry);
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(())
    });
    match (seen, problem) {
        (_, Some(problem)) => return Err(problem),
        (Err(ZipProblem::TooMany { .. }), _) => return Err(ApiError::TooManyImages { limit: limits.max_images }),
        (Err(ZipProblem::Damaged(reason)), _) => return Err(ApiError::BadZip(reason)),
        (Ok(_), None) => {}
    }
    let archive = Arc::new(Archive { bytes, entries, max_bytes: limits.max_bytes });
    let upload = |(index, name)| Upload { name, content: Content::Zipped(archive.clone(), index) };
    Ok((names.into_iter().enumerate().map(upload).collect(), passed))
}

impl Archive {
    /// Bytes of one image after unpacking, as far as they are unpacked.
    pub fn size(&self, index: usize) -> usize {
        let size = self.entries.get(index).map_or(0, ZipEntry::size);
        usize::try_from(size.min(self.max_bytes)).unwrap_or(usize::MAX)
    }

    /// The bytes of one image file.
    pub fn unpack(&self, index: usize) -> Result<Vec<u8>, ItemError> {
        match self.entries.get(index) {
            Some(entry) => entry.read(&mut Cursor::new(&self.bytes), self.max_bytes),
            None => Err(ItemError::unreadable("it is not in the zip")),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_testing::files::zip;

    use super::*;

    const LIMITS: ArchiveLimits = ArchiveLimits { max_images: 10, max_bytes: 1000 };

    fn zip_of(files: &[(&str, &[u8])]) -> Bytes {
        zip(files).into()
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
            (".hidden/x.png", b"x"),
            ("/a/one.jpg", b"1"),
            ("0003", b"GIF89a"),
            ("LICENSE", b"free"),
        ]);
        let (uploads, passed) = open(zip, LIMITS).unwrap();
        let names: Vec<&str> = uploads.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["0003", "a/one.jpg", "b/two.PNG"]);
        let contents: Vec<Vec<u8>> = uploads.iter().map(|i| unpack(i).unwrap()).collect();
        assert_eq!(contents, [b"GIF89a".as_slice(), b"1", b"2"]);
        assert_eq!(passed.count, 4);
    }

    #[test]
    fn a_bomb_fails_alone_or_as_a_whole() {
        let zeros = vec![0; 5000];
        let (uploads, _) = open(zip_of(&[("bomb.png", &zeros), ("good.png", b"fine")]), LIMITS).unwrap();
        assert_eq!(unpack(&uploads[0]).unwrap_err().code, "too_large");
        assert_eq!(unpack(&uploads[1]).unwrap(), b"fine");
        let many: Vec<(String, &[u8])> = (0..9).map(|i| (format!("{i}.png"), &zeros[..])).collect();
        let many: Vec<(&str, &[u8])> = many.iter().map(|(n, c)| (n.as_str(), *c)).collect();
        assert_eq!(open(zip_of(&many), LIMITS).unwrap_err().code(), "unpacked_too_large");
    }

    #[test]
    fn too_many_files_and_no_zip_at_all_are_refused() {
        let names: Vec<String> = (0..11).map(|i| format!("{i}.png")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|n| (n.as_str(), &b"x"[..])).collect();
        assert_eq!(open(zip_of(&files), LIMITS).unwrap_err().code(), "too_many_images");
        let names: Vec<String> = (0..1041).map(|i| format!("{i}.txt")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|n| (n.as_str(), &b"x"[..])).collect();
        assert_eq!(open(zip_of(&files), LIMITS).unwrap_err().code(), "too_many_images");
        assert_eq!(open(Bytes::from_static(b"PK\x03\x04 no"), LIMITS).unwrap_err().code(), "bad_zip");
    }
}
