//! What parts have made, taken over by their run, in an order that survives a crash at any point.

use std::path::Path;

use super::Part;
use crate::auto_k;
use crate::config::RunConfig;
use crate::error::TrainError;
use crate::log::Log;
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
    // In the order of one process, so that the log is its log, too.
    found.sort_unstable();
    for part in found {
        let folder = parts.join(part.to_string());
        match part {
            Part::Search | Part::Clusters(_) => auto_k::join(run, &folder)?,
            Part::Restart(index) => take_restart(run, config, &folder, index)?,
        }
        fs_err::remove_dir_all(folder)?;
    }
    // What somebody else has put there stays.
    let _ = std::fs::remove_dir(parts);
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
