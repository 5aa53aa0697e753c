//! Files on which the HDF5 library itself never comes back.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dtkc_testing::wait_until;

/// Fuzzing found it: the library walks its strings in a circle.
fn endless(folder: &Path) -> PathBuf {
    let path = folder.join("endless.h5");
    let found = concat!(env!("CARGO_MANIFEST_DIR"), "/../dtkc-fuzz/corpus/dataset/hdf5-loops-1");
    std::fs::copy(found, &path).unwrap();
    path
}

fn info(path: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtkc-data"));
    command.arg("info").arg(path);
    command
}

#[test]
fn a_file_from_which_the_library_never_comes_back_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = info(&endless(folder.path())).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("endless.h5 is damaged") && text.contains("does not come back"), "{text}");
}

/// The process that reads the file first ends with the one that asked it to.
#[cfg(target_os = "linux")]
#[test]
fn nothing_goes_on_reading_after_the_program_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = endless(folder.path());
    let mut program = info(&path).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the other process reads", || readers(&path) == 1);
    program.kill().unwrap();
    program.wait().unwrap();
    wait_until("the other process has ended", || readers(&path) == 0);
}

/// Processes that were asked to read that file.
#[cfg(target_os = "linux")]
fn readers(path: &Path) -> usize {
    let asked = format!("DTKC_TRIAL_READ={}", path.display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let environments = processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
    environments.filter(|bytes| bytes.split(|b| *b == 0).any(|entry| entry == asked.as_bytes())).count()
}
