//! Helpers for the end-to-end tests in `tests/tests`, one file per user story.

use std::process::Command;

use dtkc_testing::{Place, Said, program};

/// Runs one of our programs in a test's folder, so that files go by their names.
///
/// # Panics
/// If it cannot be started.
#[track_caller]
pub fn run(place: &Place, name: &str, arguments: &[&str]) -> Said {
    let output = Command::new(program(name)).current_dir(place.folder()).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{name} did not start: {error}")).into()
}

/// Runs one of our programs with the words of a line; it must succeed. Gives its standard output.
///
/// # Panics
/// If it fails, with all that it said.
#[track_caller]
pub fn run_well(place: &Place, line: &str) -> String {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    run(place, name, &words.collect::<Vec<_>>()).ok()
}
