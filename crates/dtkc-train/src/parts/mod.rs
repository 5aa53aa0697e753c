//! A run in parts that processes on any machines work on at the same time: restarts, and the numbers of clusters that `auto` looks at.
//!
//! A part is a run directory of its own below the run, `RUN/parts/NAME`, with its own lock, log and checkpoints: it is killed and goes on,
//! here or elsewhere, as any run. Whoever works on one holds the run's lock together with the others; whoever lists parts, or
//! resumes the run, holds it alone and first takes over what parts have. The run is then what one process would have made, byte for byte.
//!
//! | what | where |
//! |---|---|
//! | which parts there are | here |
//! | one part, to its end | `work.rs` |
//! | what parts have, taken over | `join.rs` |

mod join;
mod work;

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use dtkc_observe::Observer;

use crate::auto_k::{self, Left};
use crate::config::{Clusters, RunConfig};
use crate::error::TrainError;
use crate::pipeline;
use crate::restart;
use crate::run_dir::RunDir;

pub use join::join;
pub use work::work;

/// How often somebody who waits for a lock looks.
const LOOK: Duration = Duration::from_millis(250);

/// Work that knows nothing of the other parts of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The network that is asked for every number of clusters.
    Search,
    /// The short runs for one number of clusters.
    Clusters(usize),
    /// A restart, counted from 0.
    Restart(usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Search => f.write_str("search"),
            Self::Clusters(number) => write!(f, "clusters-{number}"),
            Self::Restart(index) => write!(f, "restart-{index}"),
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok();
        let found = match text.split_once('-') {
            None if text == "search" => Some(Self::Search),
            Some(("clusters", rest)) => number(rest).map(Self::Clusters),
            Some(("restart", rest)) => number(rest).map(Self::Restart),
            _ => None,
        };
        // One name for every part: its folder is called so.
        found.filter(|part| part.to_string() == text).ok_or_else(|| {
            format!("'{text}' is no part of a run; `dtkc-train parts RUN` lists them (restart-0, clusters-7, search)")
        })
    }
}

/// The parts that can be worked on now, at the same time; none where the run only has to be resumed. While the number of clusters is
/// looked for, restarts are none of them; it is settled here once everything about it is known.
pub fn left(run: &RunDir, config: &mut RunConfig, observer: &dyn Observer) -> Result<Vec<Part>, TrainError> {
    check(config)?;
    if config.run.clusters == Clusters::Auto {
        match auto_k::left(run, config)? {
            Left::Search => return Ok(vec![Part::Search]),
            Left::Numbers(numbers) if !numbers.is_empty() => {
                return Ok(numbers.into_iter().map(Part::Clusters).collect());
            }
            Left::Numbers(_) => pipeline::find_number(run, config, observer)?,
        }
    }
    let mut parts = Vec::new();
    for index in 0..config.plan.restarts {
        let path = run.last(index);
        if !path.exists() || !restart::reached(&path)?.ended {
            parts.push(Part::Restart(index));
        }
    }
    Ok(parts)
}

/// Refuses runs whose restarts must know of each other.
fn check(config: &RunConfig) -> Result<(), TrainError> {
    let refused = |text: &str| Err(TrainError::Setting(text.to_owned()));
    if config.pruning().is_some() && config.plan.restarts > config.prune.finalists {
        return refused(
            "the run drops restarts that are behind, for which they must wait for each other; begin it with --no-prune to have it in parts",
        );
    }
    if config.run.budget_seconds > 0.0 {
        return refused(
            "the run has a limit on its time, which one process shares out among restarts; begin it without --budget to have it in parts",
        );
    }
    Ok(())
}

/// Tries again, for as long as `wait`, while another process holds what is wanted: one that was lost with its machine may be taken for
/// alive until the file server gives up waiting for it.
pub fn patiently<T>(
    wait: Duration,
    observer: &dyn Observer,
    mut open: impl FnMut() -> Result<T, TrainError>,
) -> Result<T, TrainError> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        match open() {
            Err(error @ TrainError::Locked { .. }) if begun.elapsed() < wait => {
                if observer.stop() {
                    return Err(TrainError::Stopped);
                }
                if !told {
                    observer.say(&format!("{error}; waiting for it"));
                    told = true;
                }
                std::thread::sleep(LOOK);
            }
            other => return other,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_observe::Silent;

    use super::*;

    #[test]
    fn parts_have_one_name_each() {
        for part in [Part::Search, Part::Clusters(12), Part::Restart(0)] {
            assert_eq!(part.to_string().parse::<Part>().unwrap(), part);
        }
        for text in
            ["", "restart", "restart-", "restart-01", "restart-+1", "clusters--2", "search-1", "../x", "restart-1/.."]
        {
            assert!(text.parse::<Part>().unwrap_err().contains("dtkc-train parts"), "{text}");
        }
    }

    #[test]
    fn restarts_that_wait_for_each_other_are_no_parts() {
        let config = |text: &str| RunConfig::resolve(&[text.parse().unwrap()]).unwrap();
        let said = |text: &str| check(&config(text)).map_err(|error| error.to_string());
        assert!(said("plan.prune = true\nplan.restarts = 3").unwrap_err().contains("--no-prune"));
        assert!(said("run.budget_seconds = 5.0\nplan.prune = false").unwrap_err().contains("--budget"));
        assert_eq!(said("plan.prune = true\nplan.restarts = 2"), Ok(()), "both are finalists");
        assert_eq!(said("plan.prune = false\nplan.restarts = 20"), Ok(()));
    }

    #[test]
    fn a_lock_is_waited_for_and_not_for_ever() {
        let locked = || TrainError::Locked { path: "run".into(), holder: "me".into() };
        let mut tries = 0;
        let found = patiently(Duration::from_secs(600), &Silent, || {
            tries += 1;
            if tries < 3 { Err(locked()) } else { Ok(tries) }
        });
        assert_eq!(found.unwrap(), 3);
        let refused = patiently(Duration::ZERO, &Silent, || Err::<(), _>(locked()));
        assert!(matches!(refused, Err(TrainError::Locked { .. })));
    }
}
