//! Files of strangers are read by a process that may break before they are read here.
//!
//! The HDF5 library is written in C and was not made for hostile files: a damaged one can end the process or keep it busy
//! for ever. A program that opens files of others starts with [`answer_or_enable`]. From then on every file is first
//! given to a second process of the same program, which reads all of its structure. Where that one breaks down or does not
//! come back, the file is refused with a sentence.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::{DataError, Dataset};

/// The file that a second process should read.
const ASKED: &str = "DTKC_TRIAL_READ";
/// Reading the structure of a file takes milliseconds, of the largest sets seconds; this is for slow disks.
const LEAST: Duration = Duration::from_secs(8);
const PER_MIB: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(2);
/// Paths that are read at a time.
const PATHS: usize = 1 << 16;

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Where this is the second process: reads the file, also with `more`, and ends. Else turns trials on for this process.
/// The first thing that a program does.
pub fn answer_or_enable(more: impl FnOnce(&Path)) {
    let Some(path) = std::env::var_os(ASKED) else {
        ENABLED.store(true, Ordering::Relaxed);
        return;
    };
    let path = Path::new(&path);
    // Nobody else would end this process if the first one ended while the library loops.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    // What is wrong with it, the first process finds out by itself and says.
    let _ = read_all(path);
    more(path);
    std::process::exit(0);
}

fn read_all(path: &Path) -> Result<(), DataError> {
    let dataset = Dataset::open(path)?;
    dataset.labels()?;
    for first in (0..dataset.len()).step_by(PATHS) {
        if dataset.paths(first..(first + PATHS).min(dataset.len()))?.is_none() {
            break;
        }
    }
    Ok(())
}

/// Refuses a file on which the library breaks down. Does nothing where trials are off, and once per file.
pub fn check(path: &Path) -> Result<(), DataError> {
    if !ENABLED.load(Ordering::Relaxed) || !is_new(path) {
        return Ok(());
    }
    // Whatever is wrong with starting a process is no fault of the file.
    let Ok(program) = std::env::current_exe() else { return Ok(()) };
    let mut command = Command::new(program);
    // The pipe ends with this process, and the second process with the pipe.
    command.env(ASKED, path).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(child) = command.spawn() else { return Ok(()) };
    let mib = std::fs::metadata(path).map_or(0, |meta| u32::try_from(meta.len() >> 20).unwrap_or(u32::MAX));
    let damaged = |reason: &str| DataError::Damaged { path: path.to_owned(), reason: reason.to_owned() };
    match wait(child, LEAST + PER_MIB.saturating_mul(mib)) {
        Ended::Well => Ok(()),
        Ended::Badly => Err(damaged("the HDF5 library breaks down on it")),
        Ended::Never => Err(damaged("the HDF5 library does not come back from reading it")),
    }
}

enum Ended {
    Well,
    Badly,
    Never,
}

fn wait(mut child: Child, limit: Duration) -> Ended {
    let until = Instant::now() + limit;
    loop {
        match child.try_wait() {
            // Ended by a signal, not by itself.
            Ok(Some(status)) if status.code().is_none() => return Ended::Badly,
            Ok(Some(_)) => return Ended::Well,
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Ended::Never;
            }
        }
    }
}

/// Whether the file was not tried yet, as it is now.
fn is_new(path: &Path) -> bool {
    static TRIED: LazyLock<Mutex<HashSet<(OsString, u64, SystemTime)>>> = LazyLock::new(Mutex::default);
    let Ok(meta) = std::fs::metadata(path) else { return false };
    let state = (path.into(), meta.len(), meta.modified().unwrap_or(SystemTime::UNIX_EPOCH));
    meta.is_file() && TRIED.lock().unwrap_or_else(PoisonError::into_inner).insert(state)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).spawn().unwrap()
    }

    #[test]
    fn a_process_that_breaks_or_hangs_is_told_from_one_that_ends() {
        assert!(matches!(wait(shell("exit 0"), LEAST), Ended::Well));
        assert!(matches!(wait(shell("exit 3"), LEAST), Ended::Well));
        assert!(matches!(wait(shell("kill -SEGV $$"), LEAST), Ended::Badly));
        assert!(matches!(wait(shell("exec sleep 600"), Duration::from_millis(20)), Ended::Never));
    }

    #[test]
    fn a_file_is_tried_once_as_long_as_it_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        assert!(!is_new(&path), "there is none");
        std::fs::write(&path, "x").unwrap();
        assert_eq!((is_new(&path), is_new(&path)), (true, false));
        std::fs::write(&path, "xx").unwrap();
        assert!(is_new(&path));
        assert!(!is_new(folder.path()), "a folder is no file");
    }
}
