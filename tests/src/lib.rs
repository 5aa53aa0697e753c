//! Helpers for the end-to-end tests in `tests/tests`, one file per user story.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The path of one of our programs, built into the same target folder as the running test.
///
/// # Panics
/// If the program has not been built: `cargo build --release --workspace` does that, and `scripts/test.sh` runs it first.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps");
    let path = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.is_file(), "{} is missing: run `cargo build --release --workspace` first", path.display());
    path
}

/// Runs a program of ours to its end.
///
/// # Panics
/// If it cannot be started.
pub fn run(name: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program(name)).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{name} did not start: {error}"))
}

/// Runs a program of ours that must succeed, and gives its standard output.
///
/// # Panics
/// If it fails, with all that it said.
pub fn run_well(name: &str, arguments: &[&str]) -> String {
    let output = run(name, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?} failed with {}:\n{stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
