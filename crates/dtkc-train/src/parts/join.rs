//! What parts have made, taken over by their run, in an order that survives a crash at any point.

use std::path::Path;

use super::Part;
use crate::auto_k;
use crate::config::RunConfig;
use crate::error::TrainError;
use crate::log::{self, Log};
use crate::restart;
use crate::run_dir::{self, RunDir};

/// Takes over whatever parts have made, finished or not, and removes them. The caller holds the run alone, so nobody works on a part.
pub fn join(run: &RunDir, config: &RunConfig) -> Result<(), TrainError> {
    let parts = run.parts();
    if !parts.is_dir() {
        return Ok(());
    }
    let mut found: Vec<Part> = Vec::new();
    for entry in fs_err::read_dir(&parts)? {
        found.extend(entry?.file_name().to_str().and_then(|name| name.parse::<Part>().ok()));
    }
    found.sort_unstable();
    for &part in &found {
        let folder = parts.join(part.to_string());
        match part {
            Part::Search | Part::Clusters(_) => auto_k::join(run, &folder)?,
            Part::Restart(index) => take_restart(run, config, &folder, index)?,
        }
    }
    sort_log(run, config.plan.restarts)?;
    // Only now: as long as they are there, all of this is done again.
    for part in found {
        fs_err::remove_dir_all(parts.join(part.to_string()))?;
    }
    // What somebody else has put there stays.
    let _ = std::fs::remove_dir(parts);
    Ok(())
}

/// Brings the log into the order in which one process would have written it, and tells the checkpoints where their lines are then.
fn sort_log(run: &RunDir, restarts: usize) -> Result<(), TrainError> {
    let known = restart::known_lines(run, restarts)?;
    let total = Log::open(&run.log(), known)?.lines();
    let text = fs_err::read_to_string(run.log())?;
    let mut lines = log::read(&run.log())?.iter().map(|record| record.restart).zip(text.lines()).collect::<Vec<_>>();
    lines.sort_by_key(|(restart, _)| *restart);
    let sorted: String = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
    if sorted != text {
        dtkc_files::write(&run.log(), sorted.as_bytes())?;
    }
    // The last one first: some checkpoint must know of all lines at any time.
    let begun: Vec<usize> = (0..restarts).rev().filter(|index| run.last(*index).exists()).collect();
    for (place, &index) in begun.iter().enumerate() {
        let end = if place == 0 { total } else { lines.partition_point(|(restart, _)| *restart <= index) };
        let path = run.last(index);
        if restart::reached(&path)?.log_lines != end {
            restart::copy(&path, &path, end)?;
        }
    }
    Ok(())
}

/// Takes over a restart that has come further than the run's own.
fn take_restart(run: &RunDir, config: &RunConfig, part: &Path, index: usize) -> Result<(), TrainError> {
    let (theirs, own) = (run_dir::last_path(part, index), run.last(index));
    if !theirs.exists() {
        return Ok(());
    }
    let reached = restart::reached(&theirs)?;
    if own.exists() && !reached.is_beyond(&restart::reached(&own)?) {
        return Ok(());
    }
    let mut log = Log::open(&run.log(), restart::known_lines(run, config.plan.restarts)?)?;
    log.take_over(&part.join(run_dir::LOG), reached.log_lines)?;
    log.sync()?;
    for (from, to) in [
        (run_dir::pretrained_path(part, index), run.pretrained(index)),
        (run_dir::best_path(part, index), run.best(index)),
    ] {
        // What was there before the part is not its own.
        if from.exists() && !to.exists() {
            dtkc_files::write(&to, &fs_err::read(from)?)?;
        }
    }
    // Last: from now on the run knows the lines and the network.
    restart::copy(&theirs, &own, log.lines())
}
