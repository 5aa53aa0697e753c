//! The figures of a comparison: one table per dataset, and the differences between methods.

use std::collections::HashSet;
use std::path::Path;

use dtkc_human as human;
use dtkc_item::ItemKind;
use serde::Serialize;

use super::paper::{self, Published, Recognised};
use super::{CellRecord, Record, SetRecord, State, Variant};
use crate::choice::By;
use crate::restart::Ended;
use crate::run_dir;
use crate::summary::{self, RestartFigures, Summary};

/// Of fewer restarts a rank correlation is chance.
const FEWEST_FOR_RANKS: usize = 3;
/// The confidence of an interval.
const LEVEL: f64 = 0.95;

/// All tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of dtkc-train.
    pub version: String,
    /// One table per dataset.
    pub datasets: Vec<Table>,
}

/// The table of one dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The set's own name.
    pub title: String,
    /// Number of items.
    pub items: usize,
    /// Images or sequences.
    pub kind: ItemKind,
    /// Number of classes, where it has labels.
    pub classes: Option<usize>,
    /// Number of clusters that was looked for.
    pub clusters: usize,
    /// Every method that has a result.
    pub methods: Vec<Figures>,
    /// Differences between methods over restarts with equal seeds.
    pub differences: Vec<Difference>,
    /// Cells without a result, or with a part of it: method and sentence.
    pub open: Vec<Open>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A cell without a result, or with a part of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Open {
    /// The method with its changes.
    pub method: String,
    /// Whether it failed; else it only has not come to its end.
    pub failed: bool,
    /// Why.
    pub reason: String,
}

/// The figures of one method on one dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// The method with its changes.
    pub method: String,
    /// The preset that its settings started from.
    pub preset: String,
    /// Restarts that count: all but those that were pruned.
    pub restarts: usize,
    /// Restarts that were pruned.
    pub pruned: usize,
    /// The loss on the batches that all restarts of the method share.
    pub loss: Option<Spread>,
    /// Accuracy.
    pub acc: Option<Spread>,
    /// Normalised mutual information.
    pub nmi: Option<Spread>,
    /// Spearman's rank correlation of loss and accuracy.
    pub loss_acc: Option<f64>,
    /// Spearman's rank correlation of loss and NMI.
    pub loss_nmi: Option<f64>,
    /// Wall time.
    pub seconds: f64,
    /// The most memory that its process held.
    pub peak_memory_bytes: Option<u64>,
    /// Items in each cluster of the restart with the lowest loss, largest first.
    pub cluster_sizes: Vec<u64>,
    /// The variant whose pretraining was taken over; its time is not in `seconds`.
    pub pretrained_by: Option<String>,
    /// What the paper reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<Published>,
}

/// Best (of the restart with the lowest loss), mean and standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Of the restart with the lowest loss, which is chosen without labels.
    pub best: f64,
    /// Over the restarts that count.
    pub mean: f64,
    /// The same; there is none of a single one.
    pub sd: Option<f64>,
}

/// What one method has more than another, over restarts with equal seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The one.
    pub method: String,
    /// The other, which is taken from it.
    pub minus: String,
    /// Pairs of restarts.
    pub pairs: usize,
    /// Of accuracy.
    pub acc: MeanDifference,
    /// Of normalised mutual information.
    pub nmi: MeanDifference,
}

/// A mean difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanDifference {
    /// The mean.
    pub mean: f64,
    /// Ends of its 95 % interval; there is none of a single pair.
    pub interval: Option<[f64; 2]>,
}

/// Makes all tables from the runs below `root`.
pub fn compare(root: &Path, record: &Record, with_paper: bool) -> Comparison {
    let of_set = |set: &SetRecord| {
        let cells = record.cells.iter().filter(|cell| cell.set == set.name);
        let found: Vec<(&CellRecord, Option<Result<Summary, String>>)> =
            cells.map(|cell| (cell, read_summary(root, cell))).collect();
        table(set, &found, with_paper)
    };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let sets = record.sets.iter().filter(|set| record.cells.iter().any(|cell| cell.set == set.name));
    Comparison { version, datasets: sets.map(of_set).collect() }
}

/// The summary of a cell; `None` where there is none yet.
fn read_summary(root: &Path, cell: &CellRecord) -> Option<Result<Summary, String>> {
    let path = run_dir::summary_path(&cell.folder(root));
    path.is_file().then(|| Summary::read(&path).map_err(|error| error.to_string()))
}

/// The table of one dataset.
fn table(set: &SetRecord, cells: &[(&CellRecord, Option<Result<Summary, String>>)], with_paper: bool) -> Table {
    let known = with_paper.then(|| paper::recognise(set));
    let remark = |known: &Result<Recognised, String>| match known {
        Ok(Recognised { remark, .. }) => remark.clone(),
        Err(reason) => Some(reason.clone()),
    };
    let mut notes: Vec<String> = known.iter().filter_map(remark).collect();
    let (mut methods, mut open, mut summaries) = (Vec::new(), Vec::new(), Vec::new());
    for (cell, summary) in cells {
        open.extend(unfinished(cell, summary.as_ref()));
        let Some(Ok(summary)) = summary else { continue };
        // What the paper reports is the method as it is, not a variant of it.
        let published = known.as_ref().filter(|_| cell.variant.is_plain());
        let paper = published.and_then(|known| known.as_ref().ok()?.known.published(cell.variant.method()));
        let figures = Figures { paper, ..figures(cell, summary) };
        notes.extend(remarks(cell, summary, &figures));
        methods.push(figures);
        summaries.push((&cell.variant, summary));
    }
    Table {
        name: set.name.clone(),
        title: set.title.clone(),
        items: set.items,
        kind: set.kind,
        classes: set.classes,
        clusters: set.clusters,
        methods,
        differences: differences(&summaries),
        open,
        notes,
    }
}

fn unfinished(cell: &CellRecord, summary: Option<&Result<Summary, String>>) -> Option<Open> {
    let (failed, reason) = match (&cell.state, summary) {
        (State::Failed(reason), _) | (_, Some(Err(reason))) => (true, reason.as_str()),
        (State::Begun, _) => (false, "not finished yet"),
        (State::Waiting, _) | (State::Done, None) => (false, "not begun yet"),
        (State::Done, Some(Ok(_))) => return None,
    };
    Some(Open { method: cell.variant.to_string(), failed, reason: reason.to_owned() })
}

/// What a reader should know about the figures of one method.
fn remarks(cell: &CellRecord, summary: &Summary, figures: &Figures) -> Vec<String> {
    let Figures { method, pruned, restarts, pretrained_by, .. } = figures;
    let mut notes = Vec::new();
    let (asked, made) = (cell.restarts, summary.restarts.len());
    if made < asked {
        notes.push(format!("{method}: {made} of {asked} restarts that were asked for are there"));
    }
    let cut = summary.restarts.iter().filter(|restart| restart.ended == Ended::Budget).count();
    if cut > 0 {
        notes.push(format!("{method}: {cut} of {made} restarts were cut short by the time limit"));
    }
    if *pruned > 0 {
        let all = pruned + restarts;
        notes.push(format!("{method}: {pruned} of {all} restarts were pruned and do not count"));
    }
    if let Some(other) = pretrained_by {
        notes.push(format!("{method}: began with the pretraining of {other}, whose time is not in its own"));
    }
    notes.extend(shared(summary).map(|text| format!("{method}: {text}")));
    notes.extend(kept_otherwise(summary).map(|text| format!("{method}: {text}")));
    notes
}

/// Best is the paper's lowest loss; where the run itself kept another restart, that is told.
fn kept_otherwise(summary: &Summary) -> Option<String> {
    let lowest = summary::best(&summary.restarts)?.restart;
    let kept = summary.restarts.iter().find(|restart| restart.restart == summary.best_restart)?;
    (summary.best_by == By::Agreement && kept.restart != lowest).then(|| {
        let scores = kept.acc.zip(kept.nmi).map_or_else(String::new, |(acc, nmi)| {
            format!(" (ACC {}, NMI {})", super::grid::number(acc), super::grid::number(nmi))
        });
        format!("the run keeps restart {}{scores}, which {}", kept.restart, summary.best_by.words())
    })
}

/// Restarts that began with the same autoencoder are alike: they tell less about chance than as many others would.
fn shared(summary: &Summary) -> Option<String> {
    let counted = summary.restarts.iter().filter(counts);
    let taken: Vec<usize> = counted.filter_map(|restart| restart.pretrained).collect();
    let different = taken.iter().collect::<HashSet<_>>().len();
    (different < taken.len()).then(|| {
        let (all, different) = (taken.len(), human::many(different, "pretrained autoencoder"));
        format!("{all} restarts share {different}, so that sd and intervals come out too small")
    })
}

fn counts(restart: &&RestartFigures) -> bool {
    restart.ended != Ended::Pruned
}

fn figures(cell: &CellRecord, summary: &Summary) -> Figures {
    let counted: Vec<&RestartFigures> = summary.restarts.iter().filter(counts).collect();
    // As the paper has it, also where `fit` keeps another.
    let best = summary::best(&summary.restarts);
    let spread = |metric: fn(&RestartFigures) -> Option<f64>| {
        let values: Vec<f64> = counted.iter().filter_map(|restart| metric(restart)).collect();
        Some(Spread { best: metric(best?)?, mean: dtkc_metrics::mean(&values)?, sd: dtkc_metrics::sd(&values) })
    };
    let with_loss = |metric: fn(&RestartFigures) -> Option<f64>| {
        let pairs = counted.iter().filter_map(|restart| Some((restart.loss?, metric(restart)?)));
        let (losses, values): (Vec<f64>, Vec<f64>) = pairs.unzip();
        dtkc_metrics::spearman(&losses, &values).filter(|_| losses.len() >= FEWEST_FOR_RANKS)
    };
    Figures {
        method: cell.variant.to_string(),
        preset: summary.preset.clone(),
        restarts: counted.len(),
        pruned: summary.restarts.len() - counted.len(),
        loss: spread(|restart| restart.loss),
        acc: spread(|restart| restart.acc),
        nmi: spread(|restart| restart.nmi),
        loss_acc: with_loss(|restart| restart.acc),
        loss_nmi: with_loss(|restart| restart.nmi),
        seconds: summary.timing.wall(),
        peak_memory_bytes: summary.timing.peak_memory_bytes,
        cluster_sizes: summary.cluster_sizes.clone(),
        pretrained_by: cell.pretrained_by.as_ref().map(Variant::to_string),
        paper: None,
    }
}

/// Every method against every later one.
fn differences(summaries: &[(&Variant, &Summary)]) -> Vec<Difference> {
    let mut all = Vec::new();
    for (i, (method, one)) in summaries.iter().enumerate() {
        for (minus, other) in &summaries[i + 1..] {
            all.extend(difference(method, one, minus, other));
        }
    }
    all
}

fn difference(method: &Variant, one: &Summary, minus: &Variant, other: &Summary) -> Option<Difference> {
    let (mut acc, mut nmi) = (Vec::new(), Vec::new());
    for a in one.restarts.iter().filter(counts) {
        let same = |b: &&RestartFigures| (b.restart, b.seed) == (a.restart, a.seed);
        let Some(b) = other.restarts.iter().filter(counts).find(same) else { continue };
        if let (Some(x), Some(y), Some(v), Some(w)) = (a.acc, b.acc, a.nmi, b.nmi) {
            acc.push(x - y);
            nmi.push(v - w);
        }
    }
    let mean = |values: &[f64]| {
        let interval = dtkc_metrics::mean_interval(values, LEVEL).map(|interval| [interval.low, interval.high]);
        Some(MeanDifference { mean: dtkc_metrics::mean(values)?, interval })
    };
    Some(Difference {
        method: method.to_string(),
        minus: minus.to_string(),
        pairs: acc.len(),
        acc: mean(&acc)?,
        nmi: mean(&nmi)?,
    })
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
