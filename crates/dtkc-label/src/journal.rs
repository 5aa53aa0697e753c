//! The run's diary: every finished row, in order, appended to a file beside the output.
//!
//! A row that was written here is never computed again, whatever happens to the process: the journal is appended
//! to in whole blocks with a checksum each, and what follows the last whole block is cut off on `--resume`. The
//! output itself is made from the journal at the end (or at Ctrl-C), so it is a function of the rows alone, and the
//! same for an interrupted run as for an undisturbed one.
//!
//! Layout: a line of text, a line of JSON (the settings), then blocks: length u32, CRC-32 u32, rows. The pixels of
//! labelled images, where the output wants them, are in a second file, one image after the other.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use dtkc_files::{Identity, Lock, LockError};
use flate2::Crc;

use crate::error::{LabelError, Result};
use crate::row::Row;

const MAGIC: &str = "dtkc-label journal 1\n";
/// No block of ours comes near it; a larger one is noise.
const MAX_BLOCK: u32 = 1 << 30;

/// Where the journal of an output is.
pub fn path_for(output: &Path) -> PathBuf {
    with_suffix(output, ".journal")
}

/// Whether an unfinished run is kept there. A full disk may leave an empty file, which is none.
pub fn exists(output: &Path) -> bool {
    std::fs::metadata(path_for(output)).is_ok_and(|meta| meta.len() > 0)
}

/// Makes sure that no other run writes this output. To be held as long as the journal is, and taken before anything is
/// decided by what lies there. `None` where the file system has no locks.
pub fn lock(output: &Path) -> Result<Option<Lock>> {
    let journal = path_for(output);
    match Lock::beside(&journal) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Io(_)) => Ok(None),
        Err(LockError::Held(holder)) => {
            let reason = format!("another run is writing it ({holder}); wait for it to end, or choose another output");
            Err(LabelError::file(&journal, reason))
        }
    }
}

/// A path beside `output`: its name and a suffix.
pub fn with_suffix(output: &Path, suffix: &str) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A journal that is being written. It is locked: two runs cannot write the same output.
pub struct Journal {
    path: PathBuf,
    file: File,
    pixels: Option<Pixels>,
    block: Vec<u8>,
}

struct Pixels {
    path: PathBuf,
    file: BufWriter<File>,
    image_bytes: usize,
}

impl Journal {
    /// Starts a journal for `output`; `settings` is one line of JSON. `image_bytes` is given where the output wants
    /// the images, too.
    pub fn create(output: &Path, settings: &str, image_bytes: Option<usize>) -> Result<Self> {
        let path = path_for(output);
        let mut journal = Self::open_locked(&path, image_bytes)?;
        // Also where the user has said that what is there may go: this name is ours and not his.
        let mut head = vec![0; MAGIC.len()];
        let read = read_full(&mut journal.file, &mut head)?;
        if head[..read] != MAGIC.as_bytes()[..read] {
            return Err(LabelError::file(
                &path,
                "this is not a journal of dtkc-label; remove it or choose another output",
            ));
        }
        journal.file.set_len(0)?;
        journal.file.seek(SeekFrom::Start(0))?;
        let begun = journal.file.write_all(format!("{MAGIC}{settings}\n").as_bytes());
        begun.map_err(|e| LabelError::unwritable(path.display(), &e, ""))?;
        if let Some(pixels) = &mut journal.pixels {
            pixels.file.get_mut().set_len(0)?;
        }
        Ok(journal)
    }

    /// Opens the journal of an interrupted run, shows its settings to `check` and its rows to `seen`, and goes to
    /// its end.
    pub fn resume(
        output: &Path,
        image_bytes: Option<usize>,
        check: impl FnOnce(&str) -> Result<()>,
        mut seen: impl FnMut(&Row),
    ) -> Result<Self> {
        let path = path_for(output);
        let mut journal = Self::open_locked(&path, image_bytes)?;
        let mut reader = Reader::open(output)?;
        check(reader.settings())?;
        let mut end = reader.position;
        let mut images = 0;
        let kept = journal.pixels.as_ref().map(|p| p.file.get_ref().metadata().map(|m| m.len())).transpose()?;
        while let Some(rows) = reader.next_block()? {
            let labelled = rows.iter().filter(|row| row.outcome.is_ok()).count();
            if let (Some(kept), Some(bytes)) = (kept, image_bytes)
                && ((images + labelled) * bytes) as u64 > kept
            {
                break;
            }
            images += labelled;
            end = reader.position;
            rows.iter().for_each(&mut seen);
        }
        journal.file.set_len(end)?;
        journal.file.seek(SeekFrom::End(0))?;
        if let Some(pixels) = &mut journal.pixels {
            pixels.file.get_mut().set_len((images * pixels.image_bytes) as u64)?;
            pixels.file.seek(SeekFrom::End(0))?;
        }
        Ok(journal)
    }

    fn open_locked(path: &Path, image_bytes: Option<usize>) -> Result<Self> {
        let open = |path: &Path| -> Result<File> {
            let mut options = fs_err::OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
            Ok(file.into_parts().0)
        };
        let file = open(path)?;
        if let Err(std::fs::TryLockError::WouldBlock) = file.try_lock() {
            return Err(LabelError::file(
                path,
                "another dtkc-label is writing it; wait for it or choose another output",
            ));
        }
        let pixels = match image_bytes {
            Some(image_bytes) => {
                let path = with_suffix(path, "-pixels");
                Some(Pixels { file: BufWriter::with_capacity(1 << 20, open(&path)?), path, image_bytes })
            }
            None => None,
        };
        Ok(Self { path: path.to_owned(), file, pixels, block: Vec::new() })
    }

    /// Fails where the files are no longer those that this run writes to: what was written is then not at its place.
    pub fn check_there(&self) -> Result<()> {
        let pixels = self.pixels.as_ref().map(|pixels| (&pixels.path, pixels.file.get_ref()));
        for (path, file) in [(&self.path, &self.file)].into_iter().chain(pixels) {
            match (Identity::of_file(file, path), Identity::of_name(path)) {
                (Ok(ours), Ok(there)) if ours == there => {}
                _ => {
                    return Err(LabelError::Lost(format!(
                        "{} was removed or replaced while this run was writing it, and its rows are lost; \
                         run the command again",
                        path.display()
                    )));
                }
            }
        }
        Ok(())
    }

    /// Appends rows, and the pixels of those that are labelled, one image after the other.
    pub fn append(&mut self, rows: &[Row], pixels: &[u8]) -> Result<()> {
        self.check_there()?;
        let full = |path: &Path, e: io::Error| {
            LabelError::unwritable(path.display(), &e, "the same command with --resume goes on")
        };
        if let Some(spool) = &mut self.pixels {
            // Before the rows: a row in the journal must have its pixels.
            let written = spool.file.write_all(pixels).and_then(|()| spool.file.flush());
            written.map_err(|e| full(&spool.path, e))?;
        }
        self.block.clear();
        self.block.extend([0; 8]);
        rows.iter().for_each(|row| row.encode(&mut self.block));
        let mut crc = Crc::new();
        crc.update(&self.block[8..]);
        let length = (self.block.len() - 8) as u32;
        self.block[..4].copy_from_slice(&length.to_le_bytes());
        self.block[4..8].copy_from_slice(&crc.sum().to_le_bytes());
        // One write per block: after a kill the file ends with a whole block or a part of the last one.
        self.file.write_all(&self.block).map_err(|e| full(&self.path, e))
    }

    /// Deletes the journal: the output is complete. What lies there instead of it, if anything, is somebody else's.
    pub fn remove(self) -> Result<()> {
        if self.check_there().is_err() {
            return Ok(());
        }
        fs_err::remove_file(&self.path)?;
        if let Some(pixels) = self.pixels {
            fs_err::remove_file(&pixels.path)?;
        }
        Ok(())
    }
}

/// Reads a journal from its beginning.
pub struct Reader {
    file: BufReader<File>,
    settings: String,
    position: u64,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens the journal of `output`.
    pub fn open(output: &Path) -> Result<Self> {
        let path = path_for(output);
        let mut file = BufReader::with_capacity(1 << 18, fs_err::File::open(&path)?.into_parts().0);
        let (mut magic, mut settings) = (String::new(), String::new());
        let foreign = |_| LabelError::file(&path, "this is not a journal of dtkc-label; delete it to start over");
        (&mut file).take(MAGIC.len() as u64).read_to_string(&mut magic).map_err(foreign)?;
        (&mut file).take(1 << 24).read_line(&mut settings).map_err(foreign)?;
        if magic != MAGIC || !settings.ends_with('\n') {
            return Err(foreign(io::ErrorKind::InvalidData.into()));
        }
        let position = (magic.len() + settings.len()) as u64;
        Ok(Self { file, settings, position, buffer: Vec::new() })
    }

    /// The run's settings, as JSON.
    pub fn settings(&self) -> &str {
        self.settings.trim_end()
    }

    /// The next rows; `None` at the end or where the file was cut off or damaged.
    pub fn next_block(&mut self) -> Result<Option<Vec<Row>>> {
        let mut head = [0; 8];
        if read_full(&mut self.file, &mut head)? < head.len() {
            return Ok(None);
        }
        let [a, b, c, d, e, f, g, h] = head;
        let (length, sum) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if length > MAX_BLOCK {
            return Ok(None);
        }
        // Memory for what is there, not for what the head claims.
        self.buffer.clear();
        let read = (&mut self.file).take(u64::from(length)).read_to_end(&mut self.buffer)?;
        let mut crc = Crc::new();
        crc.update(&self.buffer);
        if read < length as usize || crc.sum() != sum {
            return Ok(None);
        }
        let mut rest = self.buffer.as_slice();
        let mut rows = Vec::new();
        while !rest.is_empty() {
            let Some(row) = Row::decode(&mut rest) else { return Ok(None) };
            rows.push(row);
        }
        self.position += 8 + u64::from(length);
        Ok(Some(rows))
    }
}

/// Reads the pixels that a journal keeps.
pub struct PixelReader {
    file: BufReader<File>,
    image_bytes: usize,
}

impl PixelReader {
    /// Opens the pixels of the journal of `output`.
    pub fn open(output: &Path, image_bytes: usize) -> Result<Self> {
        let path = with_suffix(&path_for(output), "-pixels");
        Ok(Self { file: BufReader::with_capacity(1 << 20, fs_err::File::open(path)?.into_parts().0), image_bytes })
    }

    /// The pixels of the next images.
    pub fn next(&mut self, images: usize) -> Result<Vec<u8>> {
        let mut pixels = vec![0; images * self.image_bytes];
        self.file.read_exact(&mut pixels)?;
        Ok(pixels)
    }
}

fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match reader.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_item::ItemError;

    use super::*;
    use crate::row::Label;

    fn rows(from: u64) -> Vec<Row> {
        let label = Label { cluster: 1, confidence: 0.5, ..Label::default() };
        let row = |index, outcome| Row { index, path: format!("{index}.png"), truth: None, outcome };
        vec![row(from, Ok(label)), row(from + 1, Err(ItemError::new("empty", "the file is empty")))]
    }

    fn resume(output: &Path) -> (Journal, Vec<Row>) {
        let mut seen = Vec::new();
        let check = |settings: &str| {
            assert_eq!(settings, "{}");
            Ok(())
        };
        let journal = Journal::resume(output, Some(4), check, |row| seen.push(row.clone())).unwrap();
        (journal, seen)
    }

    #[test]
    fn whole_blocks_survive_any_cut() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.csv");
        let mut journal = Journal::create(&output, "{}", Some(4)).unwrap();
        journal.append(&rows(0), &[1; 4]).unwrap();
        let first = std::fs::metadata(path_for(&output)).unwrap().len();
        journal.append(&rows(2), &[2; 4]).unwrap();
        drop(journal);
        let bytes = std::fs::read(path_for(&output)).unwrap();
        for cut in first..bytes.len() as u64 {
            std::fs::write(path_for(&output), &bytes[..cut as usize]).unwrap();
            let (mut journal, seen) = resume(&output);
            assert_eq!(seen, rows(0), "cut at {cut}");
            journal.append(&rows(2), &[2; 4]).unwrap();
            drop(journal);
            assert_eq!(std::fs::read(path_for(&output)).unwrap(), bytes);
            assert_eq!(PixelReader::open(&output, 4).unwrap().next(2).unwrap(), [1, 1, 1, 1, 2, 2, 2, 2]);
        }
    }

    #[test]
    fn damage_and_missing_pixels_end_the_journal_early() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.csv");
        let mut journal = Journal::create(&output, "{}", Some(4)).unwrap();
        journal.append(&rows(0), &[1; 4]).unwrap();
        journal.append(&rows(2), &[2; 4]).unwrap();
        drop(journal);
        let spool = with_suffix(&path_for(&output), "-pixels");
        std::fs::write(&spool, [1; 7]).unwrap();
        assert_eq!(resume(&output).1, rows(0));
        assert_eq!(std::fs::metadata(&spool).unwrap().len(), 4);
        let mut bytes = std::fs::read(path_for(&output)).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(path_for(&output), bytes).unwrap();
        assert_eq!(resume(&output).1, []);
    }

    #[test]
    fn a_journal_that_vanished_or_was_replaced_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.csv");
        for (ending, replaced) in [("", false), ("", true), ("-pixels", false), ("-pixels", true)] {
            let mut journal = Journal::create(&output, "{}", Some(4)).unwrap();
            journal.append(&rows(0), &[1; 4]).unwrap();
            let path = with_suffix(&path_for(&output), ending);
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            if replaced {
                std::fs::write(&path, bytes).unwrap();
            }
            for result in [journal.append(&rows(2), &[2; 4]), journal.check_there()] {
                let error = result.unwrap_err();
                assert!(matches!(&error, LabelError::Lost(text) if text.contains("removed or replaced")), "{error}");
            }
            journal.remove().unwrap();
            assert_eq!(path.exists(), replaced, "what is not ours stays");
            for left in std::fs::read_dir(folder.path()).unwrap() {
                std::fs::remove_file(left.unwrap().path()).unwrap();
            }
        }
    }

    #[test]
    fn a_second_run_is_told_who_the_first_is() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.csv");
        let first = lock(&output).unwrap();
        let error = lock(&output).unwrap_err().to_string();
        let process = format!("process {}", std::process::id());
        assert!(error.contains("a.csv.journal: another run") && error.contains(&process), "{error}");
        drop(first);
        drop(lock(&output).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn foreign_files_and_a_second_writer_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.csv");
        std::fs::write(path_for(&output), "path,cluster\n").unwrap();
        assert!(Reader::open(&output).is_err_and(|e| e.to_string().contains("not a journal")));
        assert!(Journal::create(&output, "{}", None).is_err_and(|e| e.to_string().contains("not a journal")));
        assert_eq!(std::fs::read_to_string(path_for(&output)).unwrap(), "path,cluster\n");
        std::fs::write(path_for(&output), &MAGIC[..7]).unwrap();
        let _first = Journal::create(&output, "{}", None).unwrap();
        let second = Journal::create(&output, "{}", None);
        assert!(second.is_err_and(|e| e.to_string().contains("another dtkc-label")));
    }
}
