//! Tar archives, packed or not, also in WebDataset style (images beside files of the same stem: `sample.rs`). They can be read
//! only from front to back, so their items come in the order of the archive.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use ::tar::{Archive, Entries, Entry, EntryType, Header};
use dtkc_item::ItemError;

use super::bounded::{Allowance, Bounded};
use super::name::clean;
use super::sample::{Companion, Sample};
use crate::reader::{NearFile, cut_off, read_head};
use crate::rules::{self, Verdict};
use crate::unpack::{self, Packing};
use crate::{Body, Found, Passed, Reason, SourceError, Visitor, remote};

/// Bytes that long names and other remarks of one entry may take: many times what any path needs.
const MAX_REMARKS: u64 = 1 << 20;

/// True for the first 512 bytes of a tar, after unpacking. Old ones have no mark, but every header has a checksum.
pub fn is_tar(head: &[u8]) -> bool {
    if head.get(257..262) == Some(b"ustar") {
        return true;
    }
    let Some(header) = head.get(..512).filter(|h| h[0] != 0) else { return false };
    let spaced = header.iter().enumerate().map(|(at, b)| if (148..156).contains(&at) { b' ' } else { *b });
    Header::from_byte_slice(header).cksum().is_ok_and(|sum| sum == spaced.map(u32::from).sum::<u32>())
}

/// Reads the first entry only to see whether that works.
pub(crate) fn check(path: &Path) -> Result<(), SourceError> {
    let left = Allowance::new();
    left.set(MAX_REMARKS);
    let first = || -> io::Result<()> {
        let mut archive = Archive::new(Bounded::new(unpack::open(path)?, &left));
        archive.entries()?.next().transpose().map(|_| ())
    };
    first().map_err(|e| SourceError::file(path, problem(&e).message))
}

fn problem(error: &io::Error) -> ItemError {
    let text = error.to_string();
    // The tar reader reports an early end as just another error.
    let early = ["unexpected EOF", "failed to read entire block"].iter().any(|words| text.contains(words));
    let cut = early || error.kind() == io::ErrorKind::UnexpectedEof;
    let (code, cause) = if cut { ("truncated", "cut off".to_owned()) } else { ("damaged_archive", text) };
    ItemError::new(code, format_args!("it is not a readable tar archive ({cause}); copy or download it again"))
}

/// Visits the images of an archive. One that is cut off gives what lies before the cut, and fails.
pub(crate) fn visit(path: &Path, max_bytes: u64, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    match try_visit(path, max_bytes, visitor) {
        Ok(flow) => flow,
        Err(error) => visitor.damaged(Found::broken(path, problem(&error))),
    }
}

fn try_visit(path: &Path, max_bytes: u64, visitor: &mut dyn Visitor) -> io::Result<ControlFlow<()>> {
    // An object is read from front to back: a request for every header would take longer than all of it.
    let plain = !remote::is(path) && unpack::packing(&read_head(path, 4)?) == Packing::Plain;
    let left = Allowance::new();
    let length = if plain { Some(remote::File::open(path)?.size()?) } else { None };
    let walk = Walk { path, shared: path.into(), length, max_bytes, left: left.clone() };
    if plain {
        // Only headers are read here, with long ways between them.
        let mut archive = Archive::new(Bounded::new(NearFile::open(path, 2 << 10)?, &left));
        walk.all(archive.entries_with_seek()?, visitor)
    } else {
        let mut archive = Archive::new(Bounded::new(unpack::open(path)?, &left));
        walk.all(archive.entries()?, visitor)
    }
}

/// A way through an archive.
struct Walk<'a> {
    path: &'a Path,
    shared: Arc<Path>,
    /// The length of an archive that is not packed: its items are left where they are. Others pass through memory.
    length: Option<u64>,
    max_bytes: u64,
    left: Allowance,
}

/// Go on with the next entry, or end the archive with an answer for whoever visits it.
type Step = ControlFlow<ControlFlow<()>>;
const NEXT: Step = ControlFlow::Continue(());

impl Walk<'_> {
    fn all<R: Read>(&self, entries: Entries<'_, R>, visitor: &mut dyn Visitor) -> io::Result<ControlFlow<()>> {
        let mut sample = visitor.wants_classes().then(Sample::default);
        let walked = self.entries(entries, &mut sample, visitor);
        match sample {
            // The last sample is whole now, or all that there is of it.
            Some(mut sample) if !matches!(walked, Ok(ControlFlow::Break(()))) => match sample.show(visitor) {
                ControlFlow::Continue(()) => walked,
                flow => Ok(flow),
            },
            _ => walked,
        }
    }

    fn entries<R: Read>(
        &self,
        mut entries: Entries<'_, R>,
        sample: &mut Option<Sample>,
        visitor: &mut dyn Visitor,
    ) -> io::Result<ControlFlow<()>> {
        let mut unread = 0u64;
        loop {
            self.left.set(unread.saturating_add(MAX_REMARKS));
            let Some(entry) = entries.next() else { return Ok(ControlFlow::Continue(())) };
            let mut entry = entry?;
            self.left.set(u64::MAX);
            // The rest of an entry is read over, where it cannot be jumped over.
            unread = if self.length.is_some() { 0 } else { stored_size(&mut entry)?.saturating_add(512) };
            if let ControlFlow::Break(flow) = self.one(&mut entry, sample, visitor)? {
                return Ok(flow);
            }
        }
    }

    fn one(
        &self,
        entry: &mut Entry<'_, impl Read>,
        sample: &mut Option<Sample>,
        visitor: &mut dyn Visitor,
    ) -> io::Result<Step> {
        let kind = entry.header().entry_type();
        let raw = entry.path_bytes();
        let name = clean(&String::from_utf8_lossy(&raw));
        if kind.is_dir() || raw.ends_with(b"/") || kind.is_pax_global_extensions() || name.is_empty() {
            return Ok(NEXT);
        }
        drop(raw);
        let sought = visitor.sought();
        let verdict = if is_file(kind) { rules::judge(&name, sought) } else { Verdict::Pass(Reason::NotAFile) };
        if let Some(sample) = sample
            && sample.begin(&name, visitor).is_break()
        {
            return Ok(ControlFlow::Break(ControlFlow::Break(())));
        }
        if self.is_cut(entry) {
            let found = match verdict {
                Verdict::Pass(_) => Found::broken(self.path, cut_off()),
                _ => Found::below(self.path, &name, Body::Broken(cut_off())),
            };
            return Ok(ControlFlow::Break(damaged(found, sample, visitor)));
        }
        let mut head = Vec::new();
        let passed = match verdict {
            Verdict::Take => None,
            Verdict::Pass(reason) => Some(reason),
            Verdict::Look => {
                entry.by_ref().take(rules::HEAD as u64).read_to_end(&mut head)?;
                (!sought.is_head(&head)).then_some(Reason::OtherContent)
            }
        };
        if let (Some(sample), Some(_), true) = (&mut *sample, passed, is_file(kind))
            && let Some(companion) = Companion::of(&name)
            && sample.learn(companion, entry.size(), entry)?
        {
            return Ok(NEXT);
        }
        if let Some(reason) = passed {
            visitor.passed(Passed { root: self.path, name: &name, reason });
            return Ok(NEXT);
        }
        self.found(entry, &name, head, sample, visitor)
    }

    /// Only a packed or sparse entry is read here; others lie as they are in the file.
    fn found(
        &self,
        entry: &mut Entry<'_, impl Read>,
        name: &str,
        head: Vec<u8>,
        sample: &mut Option<Sample>,
        visitor: &mut dyn Visitor,
    ) -> io::Result<Step> {
        let length = entry.size();
        let body = if self.length.is_some() && !entry.header().entry_type().is_gnu_sparse() {
            Body::Slice { archive: self.shared.clone(), offset: entry.raw_file_position(), length }
        } else if let Err(error) = ItemError::check_bytes(length, self.max_bytes) {
            Body::Broken(error)
        } else {
            let mut bytes = head;
            match entry.read_to_end(&mut bytes) {
                Ok(_) if bytes.len() as u64 == length => Body::Bytes(bytes),
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
                _ => {
                    let found = Found::below(self.path, name, Body::Broken(cut_off()));
                    return Ok(ControlFlow::Break(damaged(found, sample, visitor)));
                }
            }
        };
        let found = Found::below(self.path, name, body);
        let flow = match sample {
            Some(sample) => sample.hold(found, visitor),
            None => visitor.found(found),
        };
        match flow {
            ControlFlow::Continue(()) => Ok(NEXT),
            flow => Ok(ControlFlow::Break(flow)),
        }
    }

    /// Whether an entry goes on beyond the end of the file; jumping there would not notice.
    fn is_cut(&self, entry: &Entry<'_, impl Read>) -> bool {
        let end = entry.raw_file_position().saturating_add(entry.size());
        self.length.is_some_and(|length| end > length) && !entry.header().entry_type().is_gnu_sparse()
    }
}

/// Tells of damage, after what was found before it.
fn damaged(found: Found, sample: &mut Option<Sample>, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    sample.as_mut().map_or(ControlFlow::Continue(()), |sample| sample.show(visitor))?;
    visitor.damaged(found)
}

fn is_file(kind: EntryType) -> bool {
    kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse()
}

/// Bytes that an entry takes in the archive. A sparse one is larger when it is unpacked.
fn stored_size(entry: &mut Entry<'_, impl Read>) -> io::Result<u64> {
    if !entry.header().entry_type().is_gnu_sparse() {
        return Ok(entry.size());
    }
    let size = entry.header().entry_size()?;
    let Some(remarks) = entry.pax_extensions()? else { return Ok(size) };
    let given = remarks.flatten().find(|r| r.key_bytes() == b"size");
    Ok(given.and_then(|r| r.value().ok()?.parse().ok()).unwrap_or(size))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::BodyReader;
    use crate::testing::{Log, PNG, bz2, gz, tar, tar_entry};

    const LIMIT: u64 = 10_000;

    fn log(bytes: &[u8]) -> Log {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, bytes).unwrap();
        let mut log = Log::default();
        assert!(visit(&path, LIMIT, &mut log).is_continue());
        let mut reader = BodyReader::new(LIMIT);
        log.contents = log.found.iter_mut().map(|found| reader.read(&mut found.body)).collect();
        log
    }

    #[test]
    fn images_come_in_the_order_of_the_archive_packed_or_not() {
        let entries: &[(&str, &[u8])] = &[
            ("./b/1.png", b"one"),
            ("b/notes.txt", b"no"),
            ("a/2.png", b"two"),
            ("a/._2.png", b"no"),
            ("0003", PNG),
            ("README", b"hello, this is longer than the head of an image, which is sixty-four bytes long"),
            ("empty.png", b""),
        ];
        let plain = tar(entries);
        assert!(is_tar(&plain) && !is_tar(&gz(&plain)) && !is_tar(&[0; 512]) && !is_tar(b"ustar"));
        for bytes in [plain.clone(), gz(&plain), bz2(&plain)] {
            let log = log(&bytes);
            assert_eq!(log.names(), ["b/1.png", "a/2.png", "0003", "empty.png"]);
            let contents: Vec<&[u8]> = log.contents.iter().map(|c| c.as_deref().unwrap()).collect();
            assert_eq!(contents, [b"one".as_slice(), b"two", PNG, b""]);
            assert_eq!(log.reasons(), [Reason::OtherExtension, Reason::Hidden, Reason::OtherContent]);
        }
    }

    #[test]
    fn old_tars_are_known_without_a_mark() {
        let mut header = ::tar::Header::new_old();
        header.set_path("cat/1.png").unwrap();
        header.set_size(1);
        header.set_cksum();
        let bytes = [header.as_bytes().as_slice(), &tar_entry("x", b"x")[512..], &[0; 1024]].concat();
        assert!(is_tar(&bytes));
        assert_eq!(log(&bytes).names(), ["cat/1.png"]);
        header.as_mut_bytes()[0] ^= 1;
        assert!(!is_tar(header.as_bytes()));
    }

    #[test]
    fn links_and_devices_are_told_and_folders_are_not() {
        let mut builder = ::tar::Builder::new(Vec::new());
        for (kind, name) in [
            (EntryType::Directory, "a/"),
            (EntryType::Symlink, "a/link.png"),
            (EntryType::Link, "a/hard.png"),
            (EntryType::Fifo, "pipe.png"),
            (EntryType::Regular, "old-folder/"),
        ] {
            let mut header = ::tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_path(name).unwrap();
            header.set_size(0);
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.set_link_name("/etc/passwd").unwrap();
            }
            header.set_cksum();
            builder.append(&header, io::empty()).unwrap();
        }
        let log = log(&builder.into_inner().unwrap());
        assert_eq!(log.reasons(), [Reason::NotAFile; 3]);
        assert!(log.found.is_empty());
    }

    #[test]
    fn a_cut_archive_is_damaged_wherever_it_is_cut() {
        let plain = tar(&[("1.png", &[1; 2000]), ("2.png", &[2; 2000]), ("x.txt", &[3; 2000])]);
        for end in [700, 1500, 3000, 4000, 6000] {
            let log = log(&plain[..end]);
            assert_eq!(log.damaged, 1, "{end}");
            let good = log.contents.iter().filter(|c| c.is_ok()).count();
            assert_eq!(good, usize::from(end >= 2560) + usize::from(end >= 5120), "{end}");
            let error = log.contents.last().unwrap().as_ref().unwrap_err();
            assert!(error.message.contains("cut off"), "{end}: {error}");
        }
        let noise: Vec<u8> = (0..8000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let plain = tar(&[("1.png", &noise[..4000]), ("2.png", &noise[4000..])]);
        for packed in [gz(&plain), bz2(&plain)] {
            let log = log(&packed[..packed.len() / 2]);
            assert_eq!(log.damaged, 1);
            assert!(log.contents.last().unwrap().is_err());
        }
    }

    #[test]
    fn too_large_an_entry_fails_alone() {
        let plain = tar(&[("1.png", &[1; 10_001]), ("2.png", b"two")]);
        for bytes in [plain.clone(), gz(&plain)] {
            let log = log(&bytes);
            assert_eq!(log.contents[0].as_ref().unwrap_err().code, "too_large");
            assert_eq!(log.contents[1].as_deref().unwrap(), b"two");
            assert_eq!(log.damaged, 0);
        }
    }

    #[test]
    fn long_names_are_read_and_endless_ones_are_not() {
        let name = format!("{}/1.png", "long".repeat(60));
        assert_eq!(log(&tar(&[(&name, b"x")])).names(), [name]);
        let mut header = ::tar::Header::new_gnu();
        header.set_entry_type(EntryType::GNULongName);
        header.set_path("././@LongLink").unwrap();
        header.set_size(100 << 20);
        header.set_cksum();
        let endless = [header.as_bytes().as_slice(), &vec![b'x'; 4 << 20]].concat();
        for bytes in [endless.clone(), gz(&endless)] {
            let log = log(&bytes);
            assert_eq!(log.damaged, 1);
            assert!(log.contents[0].as_ref().unwrap_err().message.contains("too long"), "{:?}", log.contents);
        }
    }

    #[test]
    fn a_size_beyond_all_files_is_damage() {
        for size in [u64::MAX, u64::MAX / 2, 1 << 40] {
            let mut header = ::tar::Header::new_gnu();
            header.set_path("1.png").unwrap();
            header.set_size(size);
            header.set_cksum();
            let plain = [header.as_bytes().as_slice(), &[0; 2048]].concat();
            for bytes in [plain.clone(), gz(&plain)] {
                let log = log(&bytes);
                assert!(log.contents.iter().all(Result::is_err), "{size}");
                assert!(!log.contents.is_empty(), "{size}");
            }
        }
    }
}
