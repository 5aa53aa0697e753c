//! Files that appear whole or not at all.
//!
//! A reader must never see half a dataset, model or checkpoint, whatever happens to the writer. The
//! content goes to a partial file beside the target, is flushed to the disk, and is renamed over the
//! target in one step. A [`Pending`] that is dropped without [`Pending::commit`] removes its partial file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Letters of the target's name that the partial file's name repeats: enough for people to recognise it, and the whole
/// stays within what a file system allows wherever the target does.
const KEPT: usize = 64;

/// A file on its way to `target`: write to [`Pending::path`], then [`Pending::commit`]. Whatever fails, the error names
/// the target: nobody but this crate knows the partial file.
#[derive(Debug)]
pub struct Pending {
    target: PathBuf,
    partial: PathBuf,
    committed: bool,
}

impl Pending {
    /// Chooses a partial path beside `target` and creates it empty, so that a folder that is missing or
    /// not writable is reported before any work is done.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let Some(name) = target.file_name() else {
            let text = format!("{} does not name a file", target.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        if target.is_dir() {
            let text = format!("{} is a folder, not a file", target.display());
            return Err(io::Error::new(io::ErrorKind::IsADirectory, text));
        }
        let folder = folder_of(target);
        let pending = Self { target: target.to_owned(), partial: folder.join(partial_name(name)), committed: false };
        match File::create(&pending.partial) {
            Ok(_) => Ok(pending),
            Err(error) if !folder.exists() => {
                let reason = format!("the folder {} does not exist; make it first or choose another", folder.display());
                Err(failed(target, error.kind(), &reason))
            }
            Err(error) => Err(pending.failed(&error)),
        }
    }

    /// Where to write until the file is complete.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// The partial file, empty, to write to.
    pub fn open(&self) -> io::Result<File> {
        File::create(&self.partial).map_err(|e| self.failed(&e))
    }

    /// An error of writing to [`Pending::path`], as one about the target.
    pub fn failed(&self, error: &io::Error) -> io::Error {
        failed(&self.target, error.kind(), &reason(error))
    }

    /// Flushes the content to the disk and gives the file its final name.
    pub fn commit(mut self) -> io::Result<()> {
        self.publish().map_err(|e| self.failed(&e))?;
        self.committed = true;
        sync_folder(folder_of(&self.target));
        Ok(())
    }

    fn publish(&self) -> io::Result<()> {
        File::options().read(true).write(true).open(&self.partial)?.sync_all()?;
        std::fs::rename(&self.partial, &self.target)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing more can be done about a failure here, and the target is untouched either way.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

/// Writes `bytes` to `target`, whole or not at all.
pub fn write(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let pending = Pending::beside(target)?;
    pending.open()?.write_all(bytes).map_err(|e| pending.failed(&e))?;
    pending.commit()
}

/// Why something could not be written, with the remedy where there is one. The error must not name a file itself.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; free some space or choose another folder".into(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up; free some space or choose another folder".into(),
        io::ErrorKind::FileTooLarge => {
            "the file would be larger than the system allows; raise the limit or choose another folder".into()
        }
        io::ErrorKind::PermissionDenied => "this user may not write there; choose another folder".into(),
        _ => error.to_string(),
    }
}

fn failed(target: &Path, kind: io::ErrorKind, reason: &str) -> io::Error {
    io::Error::new(kind, format!("cannot write {}: {reason}", target.display()))
}

/// Hidden, and used by nobody else: the process and a count are in it.
fn partial_name(name: &OsStr) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let name: String = name.to_string_lossy().chars().filter(char::is_ascii).take(KEPT).collect();
    format!(".{name}.{}-{count}.partial", std::process::id())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the rename itself durable. Not every platform can open a folder, and the file is already
/// complete, so a failure is not reported.
fn sync_folder(folder: &Path) {
    if let Ok(handle) = std::fs::File::open(folder) {
        let _ = handle.sync_all();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_committed_file_replaces_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.bin");
        write(&target, b"old").unwrap();
        write(&target, b"new").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a.bin"]);
    }

    #[test]
    fn a_dropped_file_leaves_the_old_one_and_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.bin");
        write(&target, b"old").unwrap();
        let pending = Pending::beside(&target).unwrap();
        std::fs::write(pending.path(), b"half").unwrap();
        drop(pending);
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.bin"]);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Pending::beside(&folder.path().join("no/such/a.bin")).unwrap_err();
        assert!(error.to_string().contains("no/such/a.bin: the folder "), "{error}");
        assert!(error.to_string().ends_with("no/such does not exist; make it first or choose another"), "{error}");
    }

    #[test]
    fn an_error_names_the_target_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), b"").unwrap();
        let below_a_file = folder.path().join("file/a.bin");
        let too_long = folder.path().join("x".repeat(256));
        for target in [&below_a_file, &too_long] {
            let error = write(target, b"new").unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot write {}: ", target.display())), "{error}");
            assert!(!error.contains(".partial"), "{error}");
        }
        let gone = Pending::beside(&folder.path().join("a.bin")).unwrap();
        std::fs::remove_file(gone.path()).unwrap();
        let error = gone.commit().unwrap_err().to_string();
        assert!(error.contains("a.bin: ") && !error.contains(".partial"), "{error}");
    }

    #[test]
    fn the_longest_names_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x".repeat(255), "\u{e4}".repeat(127)] {
            write(&folder.path().join(&name), b"new").unwrap();
            assert!(names(folder.path()).contains(&name));
        }
    }

    #[test]
    fn reasons_come_with_a_remedy() {
        let reason = |kind: io::ErrorKind| reason(&kind.into());
        assert_eq!(reason(io::ErrorKind::StorageFull), "the disk is full; free some space or choose another folder");
        assert!(reason(io::ErrorKind::PermissionDenied).ends_with("choose another folder"));
    }

    #[test]
    fn a_folder_is_not_a_target() {
        let folder = tempfile::tempdir().unwrap();
        let error = Pending::beside(folder.path()).unwrap_err();
        assert!(error.to_string().contains("is a folder"), "{error}");
    }
}
