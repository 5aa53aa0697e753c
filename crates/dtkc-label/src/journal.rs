//! The run's diary: every finished row, in order, appended to a file beside the output.
//!
//! A row that was written here is never computed again, whatever happens to the process: the journal is appended
//! to in whole blocks with a checksum each, and what follows the last whole block is cut off on `--resume`. The
//! output itself is made from the journal at the end (or at Ctrl-C), so it is a function of the rows alone, and the
//! same for an interrupted run as for an undisturbed one.
//!
//! Layout: a line of text, a line of JSON (the settings), then blocks: length u32, CRC-32 u32, rows. The labelled
//! items, where the output wants them, are in a second file, one after the other.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use dtkc_files::{Identity, Lock, LockError};
use dtkc_item::{ItemShape, Items};
use flate2::Crc;

use crate::error::{LabelError, Result};
use crate::row::Row;
use crate::spool::{SpoolReader, SpoolWriter};

const MAGIC: &str = "dtkc-label journal 1\n";
/// No block of ours comes near it; a larger one is noise.
const MAX_BLOCK: u32 = 1 << 30;

/// What the name of the file of items has behind that of the journal.
const ITEMS: &str = "-pixels";

/// Where the journal of an output is.
pub fn path_for(output: &Path) -> PathBuf {
    with_suffix(output, ".journal")
}

/// Where the items are that it keeps.
pub fn items_path(output: &Path) -> PathBuf {
    with_suffix(&path_for(output), ITEMS)
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
    items: Option<SpoolWriter>,
    block: Vec<u8>,
}

impl Journal {
    /// Starts a journal for `output`; `settings` is one line of JSON. `with_items` where the output wants the items, too.
    pub fn create(output: &Path, settings: &str, with_items: bool) -> Result<Self> {
        let path = path_for(output);
        let mut journal = Self::open_locked(&path, with_items)?;
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
        if let Some(items) = &mut journal.items {
            items.cut(0)?;
        }
        Ok(journal)
    }

    /// Opens the journal of an interrupted run, shows its settings to `check` and its rows to `seen`, and goes to
    /// its end. `items` is what the items look like, where the output wants them.
    pub fn resume(
        output: &Path,
        items: Option<ItemShape>,
        check: impl FnOnce(&str) -> Result<()>,
        mut seen: impl FnMut(&Row),
    ) -> Result<Self> {
        let path = path_for(output);
        let mut journal = Self::open_locked(&path, items.is_some())?;
        let mut reader = Reader::open(output)?;
        check(reader.settings())?;
        let (mut end, mut items_end) = (reader.position, 0);
        let mut kept = items.map(|shape| SpoolReader::open(&items_path(output), shape)).transpose()?;
        while let Some(rows) = reader.next_block()? {
            let labelled = rows.iter().filter(|row| row.outcome.is_ok()).count();
            match kept.as_mut().map(|kept| kept.skip(labelled)).transpose()? {
                Some(None) => break,
                Some(Some(position)) => items_end = position,
                None => {}
            }
            end = reader.position;
            rows.iter().for_each(&mut seen);
        }
        journal.file.set_len(end)?;
        journal.file.seek(SeekFrom::End(0))?;
        if let Some(items) = &mut journal.items {
            items.cut(items_end)?;
        }
        Ok(journal)
    }

    fn open_locked(path: &Path, with_items: bool) -> Result<Self> {
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
        let items = match with_items {
            true => {
                let path = with_suffix(path, ITEMS);
                Some(SpoolWriter::new(path.clone(), open(&path)?))
            }
            false => None,
        };
        Ok(Self { path: path.to_owned(), file, items, block: Vec::new() })
    }

    /// Fails where the files are no longer those that this run writes to: what was written is then not at its place.
    pub fn check_there(&self) -> Result<()> {
        let items = self.items.as_ref().map(|items| (&items.path, items.file.get_ref()));
        for (path, file) in [(&self.path, &self.file)].into_iter().chain(items) {
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

    /// Appends rows, and the items of those that are labelled.
    pub fn append(&mut self, rows: &[Row], items: &Items) -> Result<()> {
        self.check_there()?;
        let full = |path: &Path, e: io::Error| {
            LabelError::unwritable(path.display(), &e, "the same command with --resume goes on")
        };
        if let Some(spool) = &mut self.items {
            // Before the rows: a row in the journal must have its item.
            spool.append(items).map_err(|e| full(&spool.path, e))?;
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
        if let Some(items) = self.items {
            fs_err::remove_file(&items.path)?;
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

/// Shows every row in the journal of `output`, in order.
pub fn for_each(output: &Path, seen: &mut dyn FnMut(&Row) -> Result<()>) -> Result<()> {
    let mut reader = Reader::open(output)?;
    while let Some(rows) = reader.next_block()? {
        rows.iter().try_for_each(&mut *seen)?;
    }
    Ok(())
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
    use dtkc_item::{ImageShape, ItemError};

    use super::*;
    use crate::row::Label;

    fn rows(from: u64) -> Vec<Row> {
        let label = Label { cluster: 1, confidence: 0.5, ..Label::default() };
        let row = |index, outcome| Row { index, path: format!("{index}.png"), truth: None, outcome };
        vec![row(from, Ok(label)), row(from + 1, Err(ItemError::new("empty", "the file is empty")))]
    }

    const SHAPE: ImageShape = ImageShape { height: 2, width: 2, channels: 1 };

    fn image(value: u8) -> Items {
        Items::Images { shape: SHAPE, pixels: vec![value; 4] }
    }

    fn resume(output: &Path) -> (Journal, Vec<Row>) {
        let mut seen = Vec::new();
        let check = |settings: &str| {
            assert_eq!(settings, "{}");
            Ok(())
        };
        let journal = Journal::resume(output, Some(SHAPE.into()), check, |row| seen.push(row.clone())).unwrap();
        (journal, seen)
    }

    #[test]
    fn whole_blocks_survive_any_cut() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.csv");
        let mut journal = Journal::create(&output, "{}", true).unwrap();
        journal.append(&rows(0), &image(1)).unwrap();
        let first = std::fs::metadata(path_for(&output)).unwrap().len();
        journal.append(&rows(2), &image(2)).unwrap();
        drop(journal);
        let bytes = std::fs::read(path_for(&output)).unwrap();
        for cut in first..bytes.len() as u64 {
            std::fs::write(path_for(&output), &bytes[..cut as usize]).unwrap();
            let (mut journal, seen) = resume(&output);
            assert_eq!(seen, rows(0), "cut at {cut}");
            journal.append(&rows(2), &image(2)).unwrap();
            drop(journal);
            assert_eq!(std::fs::read(path_for(&output)).unwrap(), bytes);
            let kept = SpoolReader::open(&items_path(&output), SHAPE.into()).unwrap().next(2).unwrap();
            assert_eq!(kept.pixels(), Some(&[1, 1, 1, 1, 2, 2, 2, 2][..]));
        }
    }

    #[test]
    fn damage_and_missing_items_end_the_journal_early() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.csv");
        let mut journal = Journal::create(&output, "{}", true).unwrap();
        journal.append(&rows(0), &image(1)).unwrap();
        journal.append(&rows(2), &image(2)).unwrap();
        drop(journal);
        let spool = items_path(&output);
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
            let mut journal = Journal::create(&output, "{}", true).unwrap();
            journal.append(&rows(0), &image(1)).unwrap();
            let path = with_suffix(&path_for(&output), ending);
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            if replaced {
                std::fs::write(&path, bytes).unwrap();
            }
            for result in [journal.append(&rows(2), &image(2)), journal.check_there()] {
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
        assert!(Journal::create(&output, "{}", false).is_err_and(|e| e.to_string().contains("not a journal")));
        assert_eq!(std::fs::read_to_string(path_for(&output)).unwrap(), "path,cluster\n");
        std::fs::write(path_for(&output), &MAGIC[..7]).unwrap();
        let _first = Journal::create(&output, "{}", false).unwrap();
        let second = Journal::create(&output, "{}", false);
        assert!(second.is_err_and(|e| e.to_string().contains("another dtkc-label")));
    }
}
