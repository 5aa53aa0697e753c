//! Zip archives, in files and in memory. The directory is read and judged first; the data of an entry only when it is
//! asked for, within the limit for one item and within what the directory says, whatever comes out of the archive.

use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use ::zip::CompressionMethod;
use ::zip::read::{Config, ZipFileEntry};
// The reader that walks the directory instead of loading it: what is passed over costs no memory.
use ::zip::unstable::read::ZipIterable;
use dtkc_item::ItemError;
use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use thiserror::Error;

use super::name::clean;
use crate::reader::NearFile;
use crate::rules::{self, Sought, Verdict};
use crate::{Body, Found, Passed, Reason, SourceError, Visitor, order};

/// True for the first bytes of a zip, also of an empty one.
pub fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

/// Why a zip as a whole cannot be used.
#[derive(Debug, Error)]
pub enum ZipProblem {
    /// More entries than whoever asked allows.
    #[error("it has {entries} entries, more than the limit of {limit}")]
    TooMany {
        /// What the directory says.
        entries: usize,
        /// What is allowed.
        limit: usize,
    },
    /// The directory cannot be read, or not to its end.
    #[error("it is not a readable zip archive (cut off or damaged: {0}); copy or download it again")]
    Damaged(String),
}

/// What [`each_image`] shows.
#[derive(Debug)]
pub enum Seen<'a> {
    /// An item with its name.
    Image(String, ZipEntry),
    /// Something that is passed over.
    Passed(&'a str, Reason),
}

/// Shows the images of a zip to `seen`, in natural order of their names. Of entries with the same name the last counts,
/// as when the archive is unpacked. A directory that is damaged further on gives what lies before the damage, and fails.
pub fn each_image<R: BufRead + Seek>(
    reader: R,
    max_entries: usize,
    seen: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, ZipProblem> {
    each_item(reader, Sought::Images, max_entries, seen)
}

/// The same for other items.
fn each_item<R: BufRead + Seek>(
    mut reader: R,
    sought: Sought,
    max_entries: usize,
    seen: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, ZipProblem> {
    let (mut entries, problem) = match list(&mut reader, sought, max_entries, seen)? {
        ControlFlow::Continue(listed) => listed,
        ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
    };
    entries.sort_by(|a, b| order::natural(&a.name, &b.name));
    let mut entries = entries.into_iter().peekable();
    while let Some(Listed { name, entry, look }) = entries.next() {
        let replaced = entries.peek().is_some_and(|next| next.name == name).then_some(Reason::Replaced);
        let flow = match replaced.or_else(|| if look { entry.look(&mut reader, sought) } else { None }) {
            Some(reason) => seen(Seen::Passed(&name, reason)),
            None => seen(Seen::Image(name.into(), entry)),
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    problem.map_or(Ok(ControlFlow::Continue(())), Err)
}

/// An entry that may be an item.
struct Listed {
    name: Box<str>,
    entry: ZipEntry,
    look: bool,
}

type Directory = (Vec<Listed>, Option<ZipProblem>);

fn list<R: Read + Seek>(
    reader: &mut R,
    sought: Sought,
    max_entries: usize,
    seen: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<(), Directory>, ZipProblem> {
    let damaged = |e: ::zip::result::ZipError| ZipProblem::Damaged(e.to_string());
    let mut zip = ZipIterable::try_new(reader, Config::default()).map_err(damaged)?;
    if zip.len() > max_entries {
        return Err(ZipProblem::TooMany { entries: zip.len(), limit: max_entries });
    }
    let mut listed = Vec::new();
    for entry in zip.files().map_err(damaged)? {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Ok(ControlFlow::Continue((listed, Some(damaged(error))))),
        };
        let name = name_of(&entry);
        if entry.is_dir() || name.is_empty() {
            continue;
        }
        let verdict = if entry.is_symlink() { Verdict::Pass(Reason::NotAFile) } else { rules::judge(&name, sought) };
        if let Verdict::Pass(reason) = verdict {
            if seen(Seen::Passed(&name, reason)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            continue;
        }
        listed.push(Listed { name: name.into(), entry: ZipEntry::new(&entry), look: verdict == Verdict::Look });
    }
    Ok(ControlFlow::Continue((listed, None)))
}

/// Most archives are in UTF-8, whether they say so or not; the rest is as old as its code page.
fn name_of(entry: &ZipFileEntry<'_>) -> String {
    match std::str::from_utf8(entry.name_raw()) {
        Ok(name) => clean(name),
        Err(_) => match entry.name() {
            Ok(name) => clean(&name),
            Err(_) => clean(&String::from_utf8_lossy(entry.name_raw())),
        },
    }
}

/// Where an entry's data are and what they should be: all that is kept of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZipEntry {
    header: u64,
    packed: u64,
    size: u64,
    crc: u32,
    method: Method,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Stored,
    Deflated,
    Encrypted,
    Other,
}

impl ZipEntry {
    fn new(entry: &ZipFileEntry<'_>) -> Self {
        let method = match entry.compression() {
            _ if entry.encrypted() => Method::Encrypted,
            CompressionMethod::Stored => Method::Stored,
            CompressionMethod::Deflated => Method::Deflated,
            _ => Method::Other,
        };
        let (packed, size) = (entry.compressed_size(), entry.size());
        Self { header: entry.header_start(), packed, size, crc: entry.crc32(), method }
    }

    /// Bytes after unpacking, as the directory says.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes in the archive, as the directory says.
    pub fn packed_size(&self) -> u64 {
        self.packed
    }

    /// Unpacks the entry: not more than `max_bytes`, and exactly what the directory promised.
    pub fn read<R: BufRead + Seek>(&self, archive: &mut R, max_bytes: u64) -> Result<Vec<u8>, ItemError> {
        ItemError::check_bytes(self.size, max_bytes)?;
        let mut content = self.content(archive)?;
        let mut bytes = Vec::with_capacity(self.size.min(1 << 20) as usize);
        content.by_ref().take(self.size.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| damaged(&e))?;
        let mut crc = Crc::new();
        crc.update(&bytes);
        match bytes.len() as u64 {
            n if n > self.size => Err(damaged(&"it is larger than it says")),
            n if n < self.size => Err(damaged(&"it is smaller than it says")),
            _ if crc.sum() != self.crc => Err(damaged(&"its checksum is wrong")),
            _ => Ok(bytes),
        }
    }

    /// Why an entry without extension is passed over, if it is.
    fn look<R: BufRead + Seek>(&self, archive: &mut R, sought: Sought) -> Option<Reason> {
        let mut head = Vec::with_capacity(rules::HEAD);
        let read = self.content(archive).ok()?.take(rules::HEAD as u64).read_to_end(&mut head);
        match read {
            _ if sought.is_head(&head) => None,
            Ok(_) => Some(Reason::OtherContent),
            Err(_) => Some(Reason::Unreadable),
        }
    }

    fn content<'a, R: BufRead + Seek>(&self, archive: &'a mut R) -> Result<Box<dyn Read + 'a>, ItemError> {
        let method = match self.method {
            Method::Encrypted => {
                return Err(ItemError::new("encrypted", "the archive's entry is encrypted; unpack the archive first"));
            }
            Method::Other => {
                let text = "the archive's entry is packed in a way that is not read; pack it as an ordinary zip";
                return Err(ItemError::new("unsupported", text));
            }
            method => method,
        };
        self.find_data(archive).map_err(|e| damaged(&e))?;
        let packed = archive.take(self.packed);
        Ok(if method == Method::Stored { Box::new(packed) } else { Box::new(DeflateDecoder::new(packed)) })
    }

    /// The data lie behind a second header, whose length only it knows.
    fn find_data<R: Read + Seek>(&self, archive: &mut R) -> io::Result<()> {
        archive.seek(SeekFrom::Start(self.header))?;
        let mut header = [0; 30];
        archive.read_exact(&mut header)?;
        if !header.starts_with(b"PK\x03\x04") {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its header is not where it should be"));
        }
        let length = |at: usize| i64::from(u16::from_le_bytes([header[at], header[at + 1]]));
        archive.seek(SeekFrom::Current(length(26) + length(28)))?;
        Ok(())
    }
}

fn damaged(error: &dyn std::fmt::Display) -> ItemError {
    ItemError::new("damaged_archive", format!("the archive's entry is damaged ({error}); copy or download it again"))
}

/// Opens an archive only to see whether that works.
pub(crate) fn check(path: &Path) -> Result<(), SourceError> {
    let file = NearFile::open(path, 8 << 10).map_err(|error| SourceError::file(path, error.to_string()))?;
    match ZipIterable::try_new(file, Config::default()) {
        Ok(_) => Ok(()),
        Err(error) => Err(SourceError::file(path, ZipProblem::Damaged(error.to_string()).to_string())),
    }
}

/// Visits the images of an archive.
pub(crate) fn visit(path: &Path, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    let file = match NearFile::open(path, 8 << 10) {
        Ok(file) => file,
        Err(error) => return visitor.damaged(Found::broken(path, ItemError::unreadable(error))),
    };
    let archive: Arc<Path> = path.into();
    let visited = each_item(file, visitor.sought(), usize::MAX, &mut |seen| match seen {
        Seen::Image(name, entry) => {
            visitor.found(Found::below(path, &name, Body::Zip { archive: archive.clone(), entry }))
        }
        Seen::Passed(name, reason) => {
            visitor.passed(Passed { root: path, name, reason });
            ControlFlow::Continue(())
        }
    });
    visited.unwrap_or_else(|problem| {
        visitor.damaged(Found::broken(path, ItemError::new("damaged_archive", problem.to_string())))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::testing::{PNG, zip};

    type Images = Vec<(String, ZipEntry)>;
    type Passed = Vec<(String, Reason)>;

    fn images(bytes: &[u8]) -> (Images, Passed) {
        let (mut images, mut passed) = (Vec::new(), Vec::new());
        let flow = each_image(Cursor::new(bytes), usize::MAX, &mut |seen| {
            match seen {
                Seen::Image(name, entry) => images.push((name, entry)),
                Seen::Passed(name, reason) => passed.push((name.to_owned(), reason)),
            }
            ControlFlow::Continue(())
        });
        assert!(flow.unwrap().is_continue());
        (images, passed)
    }

    fn read(bytes: &[u8], index: usize, max_bytes: u64) -> Result<Vec<u8>, ItemError> {
        images(bytes).0[index].1.read(&mut Cursor::new(bytes), max_bytes)
    }

    #[test]
    fn images_come_in_natural_order_and_the_rest_is_told() {
        let bytes = zip(&[
            ("b/img10.PNG", b"10"),
            ("b/img9.png", b"9"),
            ("readme.txt", b"x"),
            ("__MACOSX/b/._two.png", b"x"),
            ("a/.hidden.png", b"x"),
            ("/etc/a.jpg", b"1"),
            ("0003", PNG),
            ("LICENSE", b"free"),
        ]);
        let (images, passed) = images(&bytes);
        let names: Vec<&str> = images.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["0003", "b/img9.png", "b/img10.PNG", "etc/a.jpg"]);
        let contents: Vec<Vec<u8>> =
            images.iter().map(|(_, entry)| entry.read(&mut Cursor::new(&bytes), 100).unwrap()).collect();
        assert_eq!(contents, [PNG, b"9", b"10", b"1"]);
        let expected = [
            ("readme.txt", Reason::OtherExtension),
            ("__MACOSX/b/._two.png", Reason::Hidden),
            ("a/.hidden.png", Reason::Hidden),
            ("LICENSE", Reason::OtherContent),
        ];
        assert_eq!(passed, expected.map(|(name, reason)| (name.to_owned(), reason)));
    }

    #[test]
    fn of_equal_names_the_last_counts() {
        let bytes = zip(&[("./a.png", b"old"), ("b.png", b"b"), ("a.png", b"new")]);
        let (images, passed) = images(&bytes);
        assert_eq!(images.len(), 2);
        assert_eq!(read(&bytes, 0, 100).unwrap(), b"new");
        assert_eq!(passed, [("a.png".to_owned(), Reason::Replaced)]);
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let bytes = zip(&[("bomb.png", &vec![0; 1 << 20]), ("ok.png", b"ok")]);
        assert!(bytes.len() < 3000);
        assert_eq!(read(&bytes, 0, 1000).unwrap_err().code, "too_large");
        assert_eq!(read(&bytes, 1, 1000).unwrap(), b"ok");
    }

    #[test]
    fn a_size_that_lies_is_found_out() {
        let honest = zip(&[("a.png", &[7; 900])]);
        for (lie, words) in [(10u32, "larger"), (901, "smaller")] {
            let mut lying = honest.clone();
            // The size is stored twice, in the local and in the central header; both say 900.
            let size = 900u32.to_le_bytes();
            for at in (0..lying.len() - 4).filter(|&i| lying[i..i + 4] == size).collect::<Vec<_>>() {
                lying[at..at + 4].copy_from_slice(&lie.to_le_bytes());
            }
            let error = read(&lying, 0, 1000).unwrap_err();
            assert!(error.code == "damaged_archive" && error.message.contains(words), "{error:?}");
        }
    }

    #[test]
    fn a_changed_byte_is_found_out() {
        let bytes = zip(&[("a.png", b"some content that is long enough")]);
        for at in [0, 32, 38, 40] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x55;
            // A byte of the local name changes nothing: the directory's name counts.
            let expected = if at == 32 { None } else { Some("damaged_archive") };
            assert_eq!(read(&bytes, 0, 1000).err().map(|e| e.code.into_owned()).as_deref(), expected, "{at}");
        }
    }

    #[test]
    fn no_zip_a_cut_one_and_one_with_too_many_entries_are_refused() {
        let bytes = zip(&[("a.png", &[7; 5000]), ("b.png", b"")]);
        let mut none = |_: Seen<'_>| ControlFlow::Continue(());
        for bad in [&b"PK\x03\x04 no"[..], b"", &bytes[..bytes.len() / 2]] {
            let error = each_image(Cursor::new(bad), usize::MAX, &mut none).unwrap_err().to_string();
            assert!(error.contains("not a readable zip") && error.contains("cut off or damaged"), "{error}");
        }
        let error = each_image(Cursor::new(&bytes), 1, &mut none).unwrap_err();
        assert!(matches!(error, ZipProblem::TooMany { entries: 2, limit: 1 }), "{error}");
    }

    #[test]
    fn a_directory_damaged_further_on_gives_what_lies_before() {
        let mut bytes = zip(&[("a.png", b"1"), ("b.png", b"2")]);
        let second = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
        bytes[second] = b'?';
        let mut names = Vec::new();
        let error = each_image(Cursor::new(&bytes), usize::MAX, &mut |seen| {
            if let Seen::Image(name, _) = seen {
                names.push(name);
            }
            ControlFlow::Continue(())
        });
        assert!(error.is_err());
        assert_eq!(names, ["a.png"]);
    }
}
