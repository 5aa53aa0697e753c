//! Files that appear whole or not at all.
//!
//! A reader must never see half a dataset, model or checkpoint, whatever happens to the writer. The
//! content goes to a partial file beside the target, is flushed to the disk, and is renamed over the
//! target in one step. A [`Pending`] that is dropped without [`Pending::commit`] removes its partial file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file on its way to `target`: write to [`Pending::path`], then [`Pending::commit`].
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
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let Some(name) = target.file_name() else {
            let text = format!("{} does not name a file", target.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        if target.is_dir() {
            let text = format!("{} is a folder, not a file", target.display());
            return Err(io::Error::new(io::ErrorKind::IsADirectory, text));
        }
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let partial_name = format!(".{}.{}-{count}.partial", name.to_string_lossy(), std::process::id());
        let partial = folder_of(target).join(partial_name);
        fs_err::File::create(&partial)?;
        Ok(Self { target: target.to_owned(), partial, committed: false })
    }

    /// Where to write until the file is complete.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Flushes the content to the disk and gives the file its final name.
    pub fn commit(mut self) -> io::Result<()> {
        fs_err::File::options().read(true).write(true).open(&self.partial)?.sync_all()?;
        fs_err::rename(&self.partial, &self.target)?;
        self.committed = true;
        sync_folder(folder_of(&self.target));
        Ok(())
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
    fs_err::File::create(pending.path())?.write_all(bytes)?;
    pending.commit()
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
        assert!(error.to_string().contains("no/such"), "{error}");
    }

    #[test]
    fn a_folder_is_not_a_target() {
        let folder = tempfile::tempdir().unwrap();
        let error = Pending::beside(folder.path()).unwrap_err();
        assert!(error.to_string().contains("is a folder"), "{error}");
    }
}
