//! The restarts of a run, finished or not.

use std::path::Path;

use dtkc_report::{Ending, Restart};

use super::read_log;
use crate::choice::By;
use crate::config::RunConfig;
use crate::error::TrainError;
use crate::log::EpochRecord;
use crate::restart::{Ended, Identity, Outcome, read_end};
use crate::run_dir;
use crate::summary::{Summary, finite};

/// What is known of one restart.
pub(super) struct One {
    pub(super) restart: usize,
    pub(super) ended: Option<Ended>,
    pub(super) outcome: Option<Outcome>,
}

/// Everything that a run wrote down about its restarts.
pub(super) struct Past {
    pub(super) chosen: usize,
    pub(super) summary: Option<Summary>,
    pub(super) restarts: Vec<One>,
    pub(super) records: Vec<EpochRecord>,
}

impl Past {
    /// Reads it. A restart without a checkpoint was not begun.
    pub(super) fn read(root: &Path, config: &RunConfig, chosen: usize) -> Result<Self, TrainError> {
        let clusters = config.clusters()?;
        let path = run_dir::summary_path(root);
        let summary = if path.exists() { Some(Summary::read(&path)?) } else { None };
        let (config_hash, data) = (config.hash()?, config.data.fingerprint.clone());
        let mut restarts = Vec::new();
        for restart in 0..config.plan.restarts {
            let path = run_dir::last_path(root, restart);
            if !path.exists() {
                continue;
            }
            let identity = Identity { config_hash: config_hash.clone(), data: data.clone(), restart };
            let (ended, outcome) = read_end(&path, &identity, clusters)?;
            restarts.push(One { restart, ended, outcome });
        }
        Ok(Self { chosen, summary, restarts, records: read_log(root)? })
    }

    /// Why the chosen one ended, if it has.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.restarts.iter().find(|one| one.restart == self.chosen)?.ended
    }

    /// The epochs of clustering of a restart.
    fn epochs(&self, restart: usize) -> usize {
        let own = self.records.iter().filter(|record| record.restart == restart && record.stage.is_none());
        own.map(|record| record.epoch).max().unwrap_or(0)
    }

    /// A row for each restart.
    pub(super) fn rows(&self) -> Vec<Restart> {
        self.restarts.iter().map(|one| self.row(one)).collect()
    }

    fn row(&self, one: &One) -> Restart {
        let figures = self.summary.as_ref().and_then(|s| s.restarts.iter().find(|f| f.restart == one.restart));
        let outcome = one.outcome.as_ref();
        let scores = outcome.and_then(|outcome| outcome.scores);
        Restart {
            restart: one.restart,
            chosen: one.restart == self.chosen,
            epochs: self.epochs(one.restart),
            kept: figures.map(|figures| figures.best_epoch),
            loss: outcome.and_then(|outcome| finite(outcome.loss)),
            used: outcome.map(|outcome| outcome.sizes.iter().filter(|&&size| size > 0).count()),
            ended: Ending {
                text: one.ended.map_or("not finished".into(), |ended| ended.to_string()),
                pruned: one.ended == Some(Ended::Pruned),
            },
            acc: scores.map(|[acc, _, _]| acc),
            nmi: scores.map(|[_, nmi, _]| nmi),
        }
    }

    /// Why the chosen restart is shown.
    pub(super) fn why(&self, is_asked: bool) -> String {
        let chosen = self.chosen;
        if is_asked {
            return format!("Restart {chosen} is shown because it was asked for.");
        }
        let mut losses: Vec<(usize, f64)> =
            self.restarts.iter().filter_map(|one| Some((one.restart, finite(one.outcome.as_ref()?.loss)?))).collect();
        losses.sort_by(|a, b| a.1.total_cmp(&b.1));
        if self.summary.as_ref().is_some_and(|summary| summary.best_by == By::Agreement) {
            return format!(
                "Of {} restarts, restart {chosen} is shown: its clusters agree most with those of the others. The losses of this method cannot be compared between restarts.",
                self.restarts.len()
            );
        }
        match losses[..] {
            _ if self.restarts.len() == 1 => {
                "There was only one restart, so nothing tells yet whether another beginning would lead to the same clusters.".into()
            }
            [(best, lowest), (_, second), ..] if best == chosen => format!(
                "Of {} restarts, restart {chosen} is shown: it has the lowest loss ({lowest:.4}, the next has {second:.4}) on batches that all of them share.",
                self.restarts.len()
            ),
            _ => format!("Of {} restarts, restart {chosen} is shown: it has the lowest loss so far.", self.restarts.len()),
        }
    }
}
