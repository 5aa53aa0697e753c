//! What was seen, from the logs of the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use super::Subject;
use crate::compare::{Record, SetRecord, State};
use crate::log::{self, EpochRecord};
use crate::run_dir;

/// Everything that was seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mismatch {
    /// Version of dtkc-train.
    pub version: String,
    /// One table per dataset.
    pub datasets: Vec<MismatchTable>,
}

/// What was seen on one dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MismatchTable {
    /// Its name.
    pub name: String,
    /// Number of items.
    pub items: usize,
    /// One course per network and restart, as far as they went.
    pub courses: Vec<Course>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One restart of one network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Course {
    /// The network.
    pub subject: String,
    /// Restart, counted from 0.
    pub restart: usize,
    /// What was seen, in order.
    pub seen: Vec<Seen>,
}

/// What was seen after an epoch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    /// Epochs of all stages together.
    pub epoch: usize,
    /// The stage, where it is another than clustering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Mean loss of the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// NMI of k-means on the last block's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nmi: Option<f64>,
    /// Cosines of gradients, by term.
    pub cosines: BTreeMap<String, f64>,
}

/// Reads what the runs below `root` have written so far.
pub fn table(root: &Path, record: &Record, subjects: &[Subject]) -> Mismatch {
    let datasets = record.sets.iter().map(|set| of_set(root, record, set, subjects)).collect();
    Mismatch { version: env!("CARGO_PKG_VERSION").into(), datasets }
}

fn of_set(root: &Path, record: &Record, set: &SetRecord, subjects: &[Subject]) -> MismatchTable {
    let (mut courses, mut notes) = (Vec::new(), Vec::new());
    for subject in subjects {
        let Some(cell) = record.cell(&set.name, &subject.variant) else {
            notes.push(format!("{subject}: not begun yet"));
            continue;
        };
        if let State::Failed(reason) = &cell.state {
            notes.push(format!("{subject}: {reason}"));
        }
        match log::read(&cell.folder(root).join(run_dir::LOG)) {
            Ok(lines) => courses.extend(courses_of(subject, &lines)),
            Err(error) => notes.push(format!("{subject}: {error}")),
        }
    }
    MismatchTable { name: set.name.clone(), items: set.items, courses, notes }
}

/// The courses of all restarts of a run. Epochs count from the first of its first stage.
fn courses_of(subject: &Subject, lines: &[EpochRecord]) -> Vec<Course> {
    let restarts: BTreeSet<usize> = lines.iter().map(|line| line.restart).collect();
    let of = |restart: usize| {
        let own = lines.iter().filter(|line| line.restart == restart);
        let seen = own.enumerate().filter_map(|(before, line)| {
            let inside = line.inside.clone()?;
            let (nmi, cosines) = (inside.nmi, inside.cosines);
            Some(Seen { epoch: before + 1, stage: line.stage.clone(), loss: line.loss, nmi, cosines })
        });
        Course { subject: subject.to_string(), restart, seen: seen.collect() }
    };
    restarts.into_iter().map(of).filter(|course| !course.seen.is_empty()).collect()
}

impl Course {
    /// Every number of a kind, with its epoch.
    pub(super) fn values(&self, value: impl Fn(&Seen) -> Option<f64>) -> Vec<(usize, f64)> {
        self.seen.iter().filter_map(|seen| Some((seen.epoch, value(seen)?))).collect()
    }

    /// The terms that have cosines.
    pub(super) fn terms(&self) -> BTreeSet<&str> {
        self.seen.iter().flat_map(|seen| seen.cosines.keys()).map(String::as_str).collect()
    }
}
