//! `summary.json` and the table Best / Mean / Sd.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use dtkc_human as human;
use dtkc_item::ItemKind;
use serde::{Deserialize, Serialize};

use crate::auto_k::Trial;
use crate::choice::By;
use crate::error::TrainError;
use crate::restart::Ended;

/// The figures of one restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestartFigures {
    /// Restart, counted from 0.
    pub restart: usize,
    /// Seed of its initial weights.
    pub seed: u64,
    /// Why it ended.
    pub ended: Ended,
    /// Epochs trained.
    pub epochs: usize,
    /// The epoch whose weights were kept.
    pub best_epoch: usize,
    /// Mean training loss of that epoch; absent where no epoch had a finite one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_loss: Option<f64>,
    /// Loss on the fixed batches that all restarts share: restarts are compared by it. Absent where it is not finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Accuracy, where the data has labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acc: Option<f64>,
    /// Normalised mutual information (arithmetic mean).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nmi: Option<f64>,
    /// Adjusted Rand index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ari: Option<f64>,
    /// Clusters that have at least one item.
    pub used_clusters: usize,
    /// Steps skipped because they were not finite.
    pub skipped_steps: usize,
    /// The restart of another run whose pretraining it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretrained: Option<usize>,
    /// The kinds of machines that it was trained on: only those of one kind give the same bits. Absent in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,
}

/// Best, mean and standard deviation of one metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Value of the restart that is kept, which is chosen without labels.
    pub best: f64,
    /// Mean over restarts.
    pub mean: f64,
    /// Standard deviation over restarts (of a sample: n - 1).
    pub sd: f64,
}

/// Wall times and memory; they are the only part of the summary that differs between two runs with the same seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Sum over all epochs.
    pub seconds: f64,
    /// Part of it that was spent waiting for items.
    pub loading_seconds: f64,
    /// Items trained on per second.
    pub items_per_second: f64,
    /// All that the result took, with what was done between epochs; not work that was lost and done again. Absent in
    /// older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<f64>,
    /// The most memory that a process of the run held, where the system tells it. Absent in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
}

impl Timing {
    /// The wall time of the run, as far as its file tells.
    pub fn wall(&self) -> f64 {
        self.wall_seconds.unwrap_or(self.seconds)
    }

    /// One line for people.
    fn line(&self) -> String {
        // A damaged file is no reason to panic.
        let wall = Duration::try_from_secs_f64(self.wall()).unwrap_or_default();
        let memory =
            self.peak_memory_bytes.map_or(String::new(), |peak| format!(", at most {} of memory", human::bytes(peak)));
        format!("{}{memory}", human::duration(wall))
    }
}

/// How the number of clusters was found. The whole ranking is in clusters.jsonl.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The number that was taken.
    pub clusters: usize,
    /// Its score.
    pub score: f64,
    /// The second best number, where more than one was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<usize>,
    /// The score of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_score: Option<f64>,
}

impl Choice {
    /// From a ranking, best first; `None` where there was none.
    pub fn of(trials: &[Trial]) -> Option<Self> {
        let (best, second) = (trials.first()?, trials.get(1));
        let (clusters, score) = (best.clusters, best.score);
        Some(Self { clusters, score, second: second.map(|t| t.clusters), second_score: second.map(|t| t.score) })
    }
}

/// Everything a run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of dtkc-train.
    pub version: String,
    /// Method.
    pub method: String,
    /// Preset that the settings started from.
    pub preset: String,
    /// Name of the dataset.
    pub dataset: String,
    /// Its fingerprint.
    pub dataset_fingerprint: String,
    /// Images or sequences.
    pub kind: ItemKind,
    /// Number of items.
    pub items: usize,
    /// Number of clusters.
    pub clusters: usize,
    /// How `--clusters auto` found that number; absent where it was given, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Choice>,
    /// Seed of the run.
    pub seed: u64,
    /// Hash of the settings.
    pub config_hash: String,
    /// The restart that is kept.
    pub best_restart: usize,
    /// Why it is.
    #[serde(default, skip_serializing_if = "is_loss")]
    pub best_by: By,
    /// Items in each cluster of the best restart, largest first, as the exported model numbers them.
    pub cluster_sizes: Vec<u64>,
    /// Accuracy over all restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acc: Option<Spread>,
    /// Normalised mutual information over all restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nmi: Option<Spread>,
    /// Signs that the clusters are not what was hoped for, each with what to try; absent in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Every restart, pruned ones too.
    pub restarts: Vec<RestartFigures>,
    /// Wall times.
    pub timing: Timing,
}

/// The restart with the lowest loss; of equal ones the first. `None` when no loss is finite.
pub fn best(restarts: &[RestartFigures]) -> Option<&RestartFigures> {
    restarts
        .iter()
        .filter_map(|restart| Some((restart, restart.loss?)))
        .min_by(|(a, x), (b, y)| x.total_cmp(y).then(a.restart.cmp(&b.restart)))
        .map(|(restart, _)| restart)
}

/// A number that JSON can hold.
pub fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn is_loss(by: &By) -> bool {
    *by == By::Loss
}

/// Best / mean / sd of a metric over the restarts that have it.
pub fn spread(
    restarts: &[RestartFigures],
    kept: usize,
    metric: impl Fn(&RestartFigures) -> Option<f64>,
) -> Option<Spread> {
    let best = metric(restarts.iter().find(|restart| restart.restart == kept)?)?;
    let values: Vec<f64> = restarts.iter().filter_map(&metric).collect();
    Some(Spread { best, mean: dtkc_metrics::mean(&values)?, sd: dtkc_metrics::sd(&values).unwrap_or(0.0) })
}

impl Summary {
    /// Writes the file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), TrainError> {
        let mut text = serde_json::to_string_pretty(self).map_err(std::io::Error::from)?;
        text.push('\n');
        Ok(dtkc_files::write(path, text.as_bytes())?)
    }

    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, TrainError> {
        let text = fs_err::read_to_string(path)?;
        serde_json::from_str(&text).map_err(|e| TrainError::ConfigFile { path: path.to_owned(), reason: e.to_string() })
    }

    /// The table for people.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let Self { method, preset, dataset, kind, clusters, .. } = self;
        let items = human::count(self.items as u64);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{method} ({preset}) on {dataset}: {items} {}, {clusters} clusters", kind.noun());
        let _ = writeln!(out, "\nrestart  epochs  kept      loss    ACC    NMI    ARI  used  ended");
        for restart in &self.restarts {
            let mark = if restart.restart == self.best_restart { '*' } else { ' ' };
            let _ = writeln!(
                out,
                "{mark}{:>6}  {:>6}  {:>4}  {:>8}  {}  {}  {}  {:>4}  {}",
                restart.restart,
                restart.epochs,
                restart.best_epoch,
                restart.loss.map_or("-".into(), |loss| format!("{loss:.4}")),
                share(restart.acc),
                share(restart.nmi),
                share(restart.ari),
                restart.used_clusters,
                restart.ended
            );
        }
        let _ = writeln!(out, "(* {}; chosen without labels)", self.best_by.words());
        if let (Some(acc), Some(nmi)) = (self.acc, self.nmi) {
            let _ = writeln!(out, "\n        Best   Mean     Sd");
            for (name, s) in [("ACC", acc), ("NMI", nmi)] {
                let _ =
                    writeln!(out, "{name}   {}  {}  {}", share(Some(s.best)), share(Some(s.mean)), share(Some(s.sd)));
            }
            let pruned = self.restarts.iter().filter(|restart| restart.ended == Ended::Pruned).count();
            if pruned > 0 {
                let all = self.restarts.len();
                let were = if pruned == 1 { "was" } else { "were" };
                let _ = writeln!(out, "(Mean and Sd over all {all} restarts; {pruned} of them {were} pruned early)");
            }
        }
        let _ = writeln!(out, "\nThe run took {}", self.timing.line());
        for warning in &self.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        out
    }
}

/// A number between 0 and 1 as the paper prints it, with three digits: `.812`.
pub(crate) fn share(value: Option<f64>) -> String {
    match value {
        None => "    -".into(),
        Some(v) => {
            let text = format!("{v:.3}");
            format!("{:>5}", text.strip_prefix('0').unwrap_or(&text))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn run(restart: usize, loss: f64, acc: Option<f64>) -> RestartFigures {
        RestartFigures {
            restart,
            seed: restart as u64,
            ended: Ended::Epochs,
            epochs: 100,
            best_epoch: 90,
            training_loss: finite(loss),
            loss: finite(loss),
            acc,
            nmi: acc,
            ari: acc,
            used_clusters: 10,
            skipped_steps: 0,
            pretrained: None,
            machines: Vec::new(),
        }
    }

    #[test]
    fn the_lowest_loss_is_the_best_whatever_its_accuracy() {
        let restarts =
            [run(0, 0.3, Some(0.9)), run(1, 0.1, Some(0.6)), run(2, f64::NAN, Some(0.99)), run(3, 0.1, Some(0.7))];
        assert_eq!(best(&restarts).unwrap().restart, 1);
        let acc = spread(&restarts, 1, |r| r.acc).unwrap();
        // NumPy: mean and std(ddof=1) of [.9, .6, .99, .7]
        assert!((acc.best - 0.6).abs() < 1e-12 && (acc.mean - 0.7975).abs() < 1e-12, "{acc:?}");
        assert!((acc.sd - 0.178_955_3).abs() < 1e-6, "{acc:?}");
    }

    #[test]
    fn without_labels_there_is_no_spread() {
        let restarts = [run(0, 0.3, None)];
        assert!(spread(&restarts, 0, |r| r.acc).is_none());
        assert_eq!(best(&restarts).unwrap().restart, 0);
        assert!(best(&[run(0, f64::INFINITY, None)]).is_none());
    }

    #[test]
    fn the_table_reads_well() {
        let restarts = vec![run(0, 0.3, Some(0.9)), run(1, 0.1, Some(1.0))];
        let summary = Summary {
            version: "1".into(),
            method: "dtkc".into(),
            preset: "plus".into(),
            dataset: "usps".into(),
            dataset_fingerprint: String::new(),
            kind: ItemKind::Images,
            items: 9298,
            clusters: 10,
            chosen: None,
            seed: 0,
            config_hash: String::new(),
            best_restart: 1,
            best_by: By::Loss,
            cluster_sizes: vec![1; 10],
            acc: spread(&restarts, 1, |r| r.acc),
            nmi: spread(&restarts, 1, |r| r.nmi),
            warnings: vec!["1 of 10 clusters are empty".into()],
            restarts,
            timing: Timing { wall_seconds: Some(185.0), peak_memory_bytes: Some(3 << 29), ..Timing::default() },
        };
        let table = summary.table();
        assert!(table.contains("dtkc (plus) on usps: 9,298 images, 10 clusters"), "{table}");
        assert!(table.contains("*     1     100    90    0.1000  1.000  1.000"), "{table}");
        assert!(table.contains("ACC   1.000   .950   .071"), "{table}");
        assert!(
            table.ends_with(
                "\nThe run took 3 min 5 s, at most 1.5 GiB of memory\nwarning: 1 of 10 clusters are empty\n"
            ),
            "{table}"
        );
    }

    #[test]
    fn older_files_know_neither_wall_time_nor_memory() {
        let old: Timing =
            serde_json::from_str(r#"{"seconds":2.5,"loading_seconds":0.5,"items_per_second":9.0}"#).unwrap();
        assert_eq!((old.wall(), old.peak_memory_bytes), (2.5, None));
        assert_eq!(old.line(), "2.5 s");
        let text = serde_json::to_string(&old).unwrap();
        assert!(!text.contains("wall") && !text.contains("peak"), "{text}");
    }
}
