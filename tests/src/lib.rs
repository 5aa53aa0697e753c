//! Helpers for the end-to-end tests in `tests/tests`, one file per user story.

use std::process::{Command, Output};

pub use dtkc_testing::program;

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
