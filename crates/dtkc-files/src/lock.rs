//! A lock that tells who holds it.
//!
//! The operating system lets go of it however a process ends, so a lock is never left behind; its file may be, and is
//! then taken over by the next one. The text in it is for people alone.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Identity;

/// More text than this nobody has written who holds one of our locks.
const MOST_TEXT: u64 = 400;
/// How often a file that another process removes at the same moment is opened again.
const ATTEMPTS: usize = 100;

/// A lock that this process holds until it is dropped.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    /// Held for its lock alone.
    _file: File,
    /// Whether the file goes with the lock.
    passing: bool,
}

/// Why a lock was not given.
#[derive(Debug)]
pub enum LockError {
    /// Somebody has it: who, as far as that is known.
    Held(String),
    /// The system cannot lock there.
    Io(io::Error),
}

impl Lock {
    /// Takes the lock of the file at `path`, which is made where it is missing, and stays.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        Self::obtain(path, false, File::try_lock)
    }

    /// Takes it together with others who share it, and with nobody who takes it alone.
    pub fn share(path: &Path) -> Result<Self, LockError> {
        Self::obtain(path, false, File::try_lock_shared)
    }

    /// Takes it alone, after waiting until nobody else has it. For what is held for moments only.
    pub fn wait(path: &Path) -> Result<Self, LockError> {
        Self::obtain(path, false, |file| file.lock().map_err(TryLockError::Error))
    }

    /// Takes it alone, with a file that goes away with the lock.
    pub fn take_passing(path: &Path) -> Result<Self, LockError> {
        Self::obtain(path, true, File::try_lock)
    }

    /// The lock of everybody who writes `target`: the one that its [`Pending`](crate::Pending) takes.
    pub fn beside(target: &Path) -> Result<Self, LockError> {
        Self::take_passing(&crate::pending::lock_path(target))
    }

    fn obtain(path: &Path, passing: bool, lock: impl Fn(&File) -> Result<(), TryLockError>) -> Result<Self, LockError> {
        for _ in 0..ATTEMPTS {
            let options = File::options().read(true).write(true).create(true).truncate(false).open(path);
            let mut file = options.map_err(LockError::Io)?;
            match lock(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(path))),
                Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
            }
            // Whoever had it before may have removed the file between our opening and our locking it. A link is none of
            // ours: what it leads to must not be written to.
            if is_at(&file, path) {
                // For people alone, so a full disk does not matter here.
                let _ = introduce(&mut file);
                return Ok(Self { path: path.to_owned(), _file: file, passing });
            }
        }
        Err(LockError::Io(io::Error::other(format!("{} is no ordinary file", path.display()))))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.passing {
            // While it is still held: whoever waits for it sees that the name is gone, and starts over.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(holder) => f.write_str(holder),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LockError {}

fn is_at(file: &File, path: &Path) -> bool {
    matches!((Identity::of_file(file, path), Identity::of_name(path)), (Ok(file), Ok(name)) if file == name)
}

/// `dtkc-label, process 4711 on host, since 2026-01-31 12:00:00 UTC`
fn introduce(file: &mut File) -> io::Result<()> {
    let program = std::env::current_exe().ok();
    let program =
        program.as_deref().and_then(Path::file_stem).map_or("a program".into(), |name| name.to_string_lossy());
    let host = host().map_or(String::new(), |host| format!(" on {host}"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let text = format!("{program}, process {}{host}, since {}\n", std::process::id(), date(now));
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())
}

fn holder(path: &Path) -> String {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_TEXT).read_to_string(&mut text));
    match text.lines().next().map(str::trim) {
        Some(line) if read.is_ok() && !line.is_empty() => line.to_owned(),
        _ => "another process".to_owned(),
    }
}

/// The machine's name. Locks reach across machines where folders are shared.
fn host() -> Option<String> {
    let told = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let told = told.or_else(|| std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).ok());
    told.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// A time in seconds since 1970 as people write it.
fn date(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from the first of March of the year 0, so that a leap day is the last of its year; 400 years
    // have 146,097 days.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", time / 3600, time / 60 % 60, time % 60)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let first = Lock::take(&path).unwrap();
        // A lock belongs to an open file, so a second one in this process stands for another process.
        let LockError::Held(who) = Lock::take(&path).unwrap_err() else { panic!("it was given twice") };
        let process = format!("process {}", std::process::id());
        assert!(who.contains(&process) && who.contains(", since 2") && who.ends_with(" UTC"), "{who}");
        drop(first);
        assert!(path.exists());
        drop(Lock::take_passing(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn some_share_it_and_nobody_has_it_alone_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let shared = [Lock::share(&path).unwrap(), Lock::share(&path).unwrap()];
        assert!(matches!(Lock::take(&path), Err(LockError::Held(_))));
        drop(shared);
        let alone = Lock::take(&path).unwrap();
        assert!(matches!(Lock::share(&path), Err(LockError::Held(_))));
        drop(alone);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (link, precious) = (folder.path().join("x.lock"), folder.path().join("precious"));
        std::fs::write(&precious, "mine").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        assert!(matches!(Lock::take_passing(&link), Err(LockError::Io(_))));
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "mine");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // python3: datetime.fromtimestamp(n, timezone.utc)
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_827_696, "2000-02-29 12:34:56 UTC"),
            (1_583_020_799, "2020-02-29 23:59:59 UTC"),
            (1_798_761_600, "2027-01-01 00:00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }
}
