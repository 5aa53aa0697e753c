//! Files on their way to their name.
//!
//! The content goes to a partial file beside the target, is flushed to the disk, and is renamed over the target in one
//! step. A [`Pending`] that is dropped without [`Pending::commit`] removes its partial file. What a killed process left
//! has the same name, and goes when the same target is written again: a lock says whether anybody is still at it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Lock, LockError, folder_of, reason};

/// Letters of the target's name that the partial file's name repeats: enough for people to recognise it, and the whole
/// stays within what a file system allows wherever the target does.
const KEPT: usize = 64;
/// The endings of the hidden files beside a target.
const PARTIAL: &str = ".partial";
const LOCK: &str = ".writing";
/// How long a small file waits for another writer of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A file on its way to `target`: write to [`Pending::path`], then [`Pending::commit`]. Whatever fails, the error names
/// the target: nobody but this crate knows the partial file. There is one at a time for a target, in all processes.
#[derive(Debug)]
pub struct Pending {
    target: PathBuf,
    partial: PathBuf,
    committed: bool,
    /// Dropped last. `None` where the file system has no locks.
    _lock: Option<Lock>,
}

impl Pending {
    /// Chooses a partial path beside `target` and creates it empty, so that a folder that is missing or
    /// not writable is reported before any work is done.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let Some(name) = target.file_name() else {
            let text = format!("{} does not name a file", target.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        match std::fs::metadata(target) {
            Ok(meta) if meta.is_dir() => {
                let text = format!("{} is a folder, not a file", target.display());
                return Err(io::Error::new(io::ErrorKind::IsADirectory, text));
            }
            // Renaming over it would take a device from everybody.
            Ok(meta) if !meta.is_file() => {
                let reason = "it is a device, a pipe or a socket; name a file";
                return Err(failed(target, io::ErrorKind::InvalidInput, reason));
            }
            _ => {}
        }
        let folder = folder_of(target);
        let plain = plain_name(name);
        let lock = match Lock::beside(target) {
            Ok(lock) => Some(lock),
            Err(LockError::Held(holder)) => return Err(busy(target, &holder)),
            // A folder that is missing or closed to us is told below; where there are no locks, there are none.
            Err(LockError::Io(_)) => None,
        };
        let partial = folder.join(match lock {
            Some(_) => format!("{plain}{PARTIAL}"),
            None => format!("{plain}.{}{PARTIAL}", unique()),
        });
        let pending = Self { target: target.to_owned(), partial, committed: false, _lock: lock };
        // Left by a process that was killed. Removed and not reused: it might be a link to something else.
        let _ = std::fs::remove_file(&pending.partial);
        match File::options().write(true).create_new(true).open(&pending.partial) {
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

    /// The name that it will have.
    pub fn target(&self) -> &Path {
        &self.target
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

/// Writes `bytes` to `target`, whole or not at all. Where somebody else is just doing the same, it waits.
pub fn write(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let begun = Instant::now();
    let pending = loop {
        match Pending::beside(target) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            other => break other?,
        }
    };
    pending.open()?.write_all(bytes).map_err(|e| pending.failed(&e))?;
    pending.commit()
}

/// Removes `target`, and what a killed process left on the way to it. It need not be there.
pub fn remove(target: &Path) -> io::Result<()> {
    // Whoever starts finds what was left, and whoever does not go on leaves nothing.
    match Pending::beside(target) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => return Err(error),
        _ => {}
    }
    match std::fs::remove_file(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(target, error.kind(), &reason(&error))),
        _ => Ok(()),
    }
}

/// Whether a name is that of a hidden file of this crate. Whoever knows that nobody writes in a folder can remove
/// these: a killed process has left them.
pub fn is_leftover(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with('.') && (name.ends_with(PARTIAL) || name.ends_with(LOCK))
}

fn failed(target: &Path, kind: io::ErrorKind, reason: &str) -> io::Error {
    io::Error::new(kind, format!("cannot write {}: {reason}", target.display()))
}

fn busy(target: &Path, holder: &str) -> io::Error {
    let reason = format!("it is being written already ({holder}); wait for that to end, or choose another name");
    failed(target, io::ErrorKind::ResourceBusy, &reason)
}

/// Hidden, short, and the target's own: what is cut off is told apart by a checksum of the whole.
fn plain_name(name: &OsStr) -> String {
    // FNV-1a, which will be the same in every version: names that were left must be found again.
    let sum = name
        .as_encoded_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let kept: String = name.to_string_lossy().chars().filter(char::is_ascii).take(KEPT).collect();
    format!(".{kept}.{sum:016x}")
}

/// The file that whoever writes `target` has locked.
pub(crate) fn lock_path(target: &Path) -> PathBuf {
    folder_of(target).join(format!("{}{LOCK}", plain_name(target.file_name().unwrap_or_default())))
}

/// Used by nobody else: the process and a count.
fn unique() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// Makes the rename itself durable. Not every platform can open a folder, and the file is already
/// complete, so a failure is not reported.
fn sync_folder(folder: &Path) {
    if let Ok(handle) = File::open(folder) {
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
    fn a_folder_is_not_a_target() {
        let folder = tempfile::tempdir().unwrap();
        let error = Pending::beside(folder.path()).unwrap_err();
        assert!(error.to_string().contains("is a folder"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_not_a_target() {
        let error = Pending::beside(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.contains("/dev/null: it is a device"), "{error}");
    }

    #[test]
    fn a_target_has_one_writer_at_a_time_and_the_second_is_told_who_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.bin");
        let first = Pending::beside(&target).unwrap();
        let error = Pending::beside(&target).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        let process = format!("process {}", std::process::id());
        assert!(
            error.to_string().contains("a.bin: it is being written already (") && error.to_string().contains(&process),
            "{error}"
        );
        // Other targets, also with names that begin alike or have no plain letters, do not care.
        let long = |end: &str| folder.path().join(format!("{}{end}", "x".repeat(100)));
        let others = [long("1"), long("2"), folder.path().join("\u{e4}"), folder.path().join("\u{f6}")];
        let others: Vec<Pending> = others.iter().map(|path| Pending::beside(path).unwrap()).collect();
        drop((first, others));
        drop(Pending::beside(&target).unwrap());
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn small_files_wait_for_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.bin");
        std::thread::scope(|scope| {
            for writer in 0..8u8 {
                let target = &target;
                scope.spawn(move || (0..20).for_each(|_| write(target, &[writer; 1000]).unwrap()));
            }
        });
        let bytes = std::fs::read(&target).unwrap();
        assert!(bytes.len() == 1000 && bytes.iter().all(|byte| *byte == bytes[0]));
        assert_eq!(names(folder.path()), ["a.bin"]);
    }

    #[test]
    fn what_a_killed_process_left_goes_when_the_target_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.bin");
        let pending = Pending::beside(&target).unwrap();
        std::fs::write(pending.path(), vec![7; 1 << 20]).unwrap();
        assert_eq!(names(folder.path()).iter().filter(|name| is_leftover(OsStr::new(name))).count(), 2);
        // As a killed process leaves it: the files stay, the lock does not.
        let left = [pending.path().to_owned(), lock_path(&target)];
        let bytes = left.clone().map(|path| std::fs::read(path).unwrap());
        drop(pending);
        for (path, bytes) in left.iter().zip(bytes) {
            std::fs::write(path, bytes).unwrap();
        }
        let other = folder.path().join(".b.bin.0000000000000000.partial");
        std::fs::write(&other, "of another target").unwrap();
        write(&target, b"new").unwrap();
        let sorted = || {
            let mut names = names(folder.path());
            names.sort();
            names
        };
        assert_eq!(sorted(), [".b.bin.0000000000000000.partial", "a.bin"]);
        std::fs::write(&left[0], "half").unwrap();
        for _ in 0..2 {
            remove(&target).unwrap();
            assert_eq!(sorted(), [".b.bin.0000000000000000.partial"]);
        }
    }
}
