//! One target in a process of its own.

use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::{Context, anyhow};

use crate::{mutate, targets};

/// Runs a target from input `from` on, until the parent ends it. The number of the input is in `place` before it is tried.
pub fn run(name: &str, from: u64, place: &Path) -> anyhow::Result<()> {
    let target = targets::named(name)?;
    // Whatever a target writes goes where the parent removes it: this process is ended, it does not end.
    std::env::set_current_dir(place.parent().context("the place has no folder")?)?;
    let place = fs_err::OpenOptions::new().write(true).create(true).truncate(false).open(place)?;
    let seeds = target.seeds();
    let mut execute = target.start()?;
    // A panic that a decoder keeps to itself is no finding; one that comes out is told by its number.
    std::panic::set_hook(Box::new(|_| {}));
    for n in from.. {
        place.file().write_all_at(&n.to_le_bytes(), 0)?;
        let input = mutate::input(&seeds, n);
        match catch_unwind(AssertUnwindSafe(|| execute(&input))) {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => return Err(anyhow!("input {n}: {problem}")),
            Err(panic) => return Err(anyhow!("input {n}: {}", words(&*panic))),
        }
    }
    Ok(())
}

/// Writes one input.
pub fn write(name: &str, n: u64, file: &Path) -> anyhow::Result<()> {
    let seeds = targets::named(name)?.seeds();
    fs_err::write(file, mutate::input(&seeds, n)).context("the input cannot be written")
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("no words"))
}
