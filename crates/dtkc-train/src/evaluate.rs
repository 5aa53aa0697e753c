//! A trained network on a dataset: shares always, agreement where there are labels.

use dtkc_dataset::{DataError, Dataset};
use dtkc_item::{Batch, ItemKind};
use std::fmt::Write as _;
use std::path::Path;

use dtkc_human as human;
use dtkc_metrics::Confusion;
use dtkc_observe::Observer;
use serde::Serialize;

use crate::assign;
use crate::error::TrainError;
use crate::saved::Saved;

/// Items that are read at a time.
const READ: usize = 120;

/// One cluster of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// Its number in the exported model.
    pub cluster: usize,
    /// Items in it.
    pub images: u64,
    /// Part of all items.
    pub share: f64,
}

/// What a network says about a dataset.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// The dataset's name.
    pub dataset: String,
    /// The restart that was used.
    pub restart: usize,
    /// Images or sequences.
    pub kind: ItemKind,
    /// Number of items.
    pub images: usize,
    /// Mean of the largest membership.
    pub confidence: f64,
    /// Every cluster, as the exported model numbers them.
    pub clusters: Vec<Share>,
    /// Accuracy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acc: Option<f64>,
    /// Normalised mutual information.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nmi: Option<f64>,
    /// Adjusted Rand index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ari: Option<f64>,
    /// Classes against clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confusion: Option<Confusion>,
}

/// Runs a saved network over the dataset at `path`.
pub fn evaluate(saved: &Saved, path: &Path, observer: &dyn Observer) -> Result<Evaluation, TrainError> {
    let dataset = saved.dataset(path)?;
    observer.begin("look at items", dataset.kind().noun(), Some(dataset.len() as u64));
    let batches = in_order(&dataset).map(|batch| match observer.stop() {
        true => Err(TrainError::Stopped),
        false => {
            let batch = batch?;
            observer.advance(batch.len() as u64);
            Ok(batch)
        }
    });
    let assigned = assign::assign(saved.learner.as_ref(), dataset.len(), batches);
    observer.end();
    let mut assigned = assigned?;
    saved.renumber(&mut assigned.clusters);
    let k = saved.order.len();
    let shares = dtkc_metrics::shares(&assigned.clusters, k);
    let share =
        |(cluster, &share): (usize, &f64)| Share { cluster, images: assigned.sizes[saved.order[cluster]], share };
    let labels = dataset.labels()?;
    let scores = assign::scores(labels.as_deref(), &assigned.clusters)?;
    let confusion = match &labels {
        Some(labels) => Some(named(dtkc_metrics::confusion(labels, &assigned.clusters)?, dataset.label_names()?)),
        None => None,
    };
    Ok(Evaluation {
        dataset: dataset.name().to_owned(),
        restart: saved.restart,
        kind: dataset.kind(),
        images: dataset.len(),
        confidence: assigned.confidence,
        clusters: shares.iter().enumerate().map(share).collect(),
        acc: scores.map(|s| s.acc),
        nmi: scores.map(|s| s.nmi),
        ari: scores.map(|s| s.ari),
        confusion,
    })
}

fn named(confusion: Confusion, names: Option<Vec<String>>) -> Confusion {
    match names {
        Some(names) => confusion.with_names(&names),
        None => confusion,
    }
}

/// The items in the order of the file.
pub(crate) fn in_order(dataset: &Dataset) -> impl Iterator<Item = Result<Batch, DataError>> + '_ {
    let len = dataset.len();
    (0..len).step_by(READ).map(move |start| {
        let range = start..(start + READ).min(len);
        let items = dataset.items_of(range.clone())?;
        Ok(Batch { indices: range.collect(), items })
    })
}

impl Evaluation {
    /// The result for people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let (kind, items) = (self.kind.noun(), human::count(self.images as u64));
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{}: {items} {kind}, mean confidence {:.3}, restart {}",
            self.dataset, self.confidence, self.restart
        );
        if let (Some(acc), Some(nmi), Some(ari)) = (self.acc, self.nmi, self.ari) {
            let _ = writeln!(out, "ACC {acc:.4}  NMI {nmi:.4}  ARI {ari:.4}");
        }
        let _ = writeln!(out, "\ncluster{kind:>10}   share");
        for Share { cluster, images, share } in &self.clusters {
            let _ = writeln!(out, "{cluster:>7}  {:>8}  {:>5.1} %", human::count(*images), 100.0 * share);
        }
        if let Some(confusion) = &self.confusion {
            let _ = write!(out, "\n{confusion}");
        }
        out
    }
}
