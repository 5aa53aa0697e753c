//! `--clusters auto`: which number of clusters the data itself supports, without labels.
//!
//! | way | for | where |
//! |---|---|---|
//! | one network with fine clusters, from which every number is read | runs that begin with fine clusters: `plus` | `fine.rs` |
//! | two short runs for every number | all others | `runs.rs` |
//!
//! Both give every number of the range a score. It is a guide for data about which nothing is known: look at the whole
//! ranking, and at the second best.

mod fine;
mod fine_state;
mod runs;
mod table;

use std::io::Write as _;
use std::path::Path;

use dtkc_observe::Observer;
use serde::{Deserialize, Serialize};

use crate::config::{KRange, RunConfig};
use crate::error::TrainError;
use crate::run_dir::{self, RunDir};

pub use table::{sentence, table};

/// What was found for one number of clusters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The number of clusters.
    pub clusters: usize,
    /// The ranking goes by it.
    pub score: f64,
    /// What the score is made of.
    #[serde(flatten)]
    pub figures: Figures,
}

/// What a score is made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Figures {
    /// Two short runs; the score is the mean of stability and silhouette.
    Runs {
        /// Adjusted Rand index between the two runs.
        stability: f64,
        /// Mean silhouette of the two embeddings.
        silhouette: f64,
        /// Clusters that were used, in the run that used fewer.
        used_clusters: usize,
    },
    /// How well so many groups are apart as a network sees the items; the score is what they tell less a part of what
    /// their sizes would allow: see [`dtkc_methods::dtkc::Joinings`].
    Apart {
        /// What is lost when the two of them that are least apart are joined, as a part of what could be.
        apart: f64,
        /// The same with one more group.
        further: f64,
    },
}

/// Gives every number of the range that has none a score and returns the ranking, best first.
pub fn rank(run: &RunDir, config: &RunConfig, observer: &dyn Observer) -> Result<Vec<Trial>, TrainError> {
    let found = read(run)?;
    let is_begun_with_runs = found.iter().any(|trial| matches!(trial.figures, Figures::Runs { .. }));
    let trials = match fine::Plan::of(config) {
        _ if is_whole(&found, config.run.k_range) => found,
        Some(plan) if !is_begun_with_runs => fine::rank(run, config, &plan, observer)?,
        _ => runs::rank(run, config, found, observer)?,
    };
    Ok(ranked(trials))
}

/// What has to be done before there is a ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// A network from which all numbers are read.
    Search,
    /// Short runs for each of these numbers, which may be none.
    Numbers(Vec<usize>),
}

/// What is left of the ranking.
pub fn left(run: &RunDir, config: &RunConfig) -> Result<Left, TrainError> {
    let found = read(run)?;
    let range = config.run.k_range;
    let missing = (range.first..=range.last).filter(|k| found.iter().all(|trial| trial.clusters != *k)).collect();
    let is_read = found.is_empty() && fine::Plan::of(config).is_some();
    Ok(if is_read { Left::Search } else { Left::Numbers(missing) })
}

/// Makes the short runs for one number and writes down what they show.
pub fn try_number(run: &RunDir, config: &RunConfig, number: usize, observer: &dyn Observer) -> Result<(), TrainError> {
    let mut narrow = config.clone();
    narrow.run.k_range = KRange { first: number, last: number };
    runs::rank(run, &narrow, read(run)?, observer).map(drop)
}

/// Takes over what a part of the run in `folder` has found, or how far its network has come.
pub fn join(run: &RunDir, folder: &Path) -> Result<(), TrainError> {
    let search = run_dir::search_path(folder);
    if search.exists() {
        dtkc_files::write(&run.search(), &fs_err::read(search)?)?;
    }
    let (mut trials, found) = (read(run)?, read_file(&run_dir::trials_path(folder))?);
    if found.is_empty() {
        return Ok(());
    }
    for trial in found {
        if trials.iter().all(|known| known.clusters != trial.clusters) {
            trials.push(trial);
        }
    }
    trials.sort_by_key(|trial| trial.clusters);
    write(run, &trials)
}

fn is_whole(trials: &[Trial], range: KRange) -> bool {
    (range.first..=range.last).all(|k| trials.iter().any(|trial| trial.clusters == k))
}

fn ranked(mut trials: Vec<Trial>) -> Vec<Trial> {
    trials.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.clusters.cmp(&b.clusters)));
    trials
}

/// What is written of the choice, best first; empty where the number was given.
pub fn recorded(run: &RunDir) -> Result<Vec<Trial>, TrainError> {
    Ok(ranked(read(run)?))
}

fn read(run: &RunDir) -> Result<Vec<Trial>, TrainError> {
    read_file(&run.trials())
}

fn read_file(path: &Path) -> Result<Vec<Trial>, TrainError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    // A line that was cut off by a crash is tried again.
    let text = fs_err::read_to_string(path)?;
    Ok(text.lines().map_while(|line| serde_json::from_str(line).ok()).collect())
}

/// Written as a whole: it is small, and a half-written line of a crash must not stay in its middle.
fn write(run: &RunDir, trials: &[Trial]) -> Result<(), TrainError> {
    let mut text = Vec::new();
    for trial in trials {
        writeln!(text, "{}", serde_json::to_string(trial).map_err(std::io::Error::from)?)?;
    }
    Ok(dtkc_files::write(&run.trials(), &text)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::run_dir::Existing;

    fn trial(clusters: usize) -> Trial {
        Trial { clusters, score: 0.5, figures: Figures::Runs { stability: 0.4, silhouette: 0.6, used_clusters: 3 } }
    }

    #[test]
    fn trials_survive_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), Existing::Refuse).unwrap();
        write(&run, &[trial(3), trial(4)]).unwrap();
        let mut text = std::fs::read_to_string(run.trials()).unwrap();
        text.push_str("{\"clusters\":5,");
        std::fs::write(run.trials(), text).unwrap();
        assert_eq!(read(&run).unwrap(), [trial(3), trial(4)]);
        assert!(!is_whole(&read(&run).unwrap(), KRange { first: 3, last: 5 }));
        assert!(is_whole(&read(&run).unwrap(), KRange { first: 3, last: 4 }));
    }

    #[test]
    fn both_kinds_come_back_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), Existing::Refuse).unwrap();
        let groups = Figures::Apart { apart: 0.6, further: 0.05 };
        let trials = [trial(3), Trial { clusters: 4, score: 0.7, figures: groups }];
        write(&run, &trials).unwrap();
        assert_eq!(read(&run).unwrap(), trials);
        assert_eq!(recorded(&run).unwrap()[0].clusters, 4);
        let old = r#"{"clusters":3,"score":0.5,"stability":0.4,"silhouette":0.6,"used_clusters":3}"#;
        assert_eq!(serde_json::from_str::<Trial>(old).unwrap(), trial(3), "as earlier versions wrote it");
    }
}
