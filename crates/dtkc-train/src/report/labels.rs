//! Clusters against labels, where there are any. Nothing is chosen by them.

use std::collections::BTreeMap;

use dtkc_dataset::Dataset;
use dtkc_report::{ClassScore, Confusion, Mostly, Scores};

use super::items::Seen;
use crate::error::TrainError;

/// Classes beyond which a confusion matrix says nothing.
const MOST: usize = 1000;

/// The labels of a dataset.
pub(super) struct Classes {
    /// A label for every item; negative where it has none.
    pub(super) labels: Vec<i64>,
    /// Every class that occurs, ascending, and its name.
    pub(super) names: BTreeMap<i64, String>,
}

impl Classes {
    /// Reads them; `None` where no item has a label.
    pub(super) fn read(dataset: &Dataset) -> Result<Option<Self>, TrainError> {
        let Some(labels) = dataset.labels()? else { return Ok(None) };
        let given = dataset.label_names()?.unwrap_or_default();
        let name = |label: i64| {
            usize::try_from(label).ok().and_then(|at| given.get(at).cloned()).unwrap_or_else(|| label.to_string())
        };
        let names: BTreeMap<i64, String> =
            labels.iter().filter(|&&label| label >= 0).map(|&label| (label, name(label))).collect();
        Ok((!names.is_empty() && names.len() <= MOST).then_some(Self { labels, names }))
    }

    /// The name of an item's class.
    pub(super) fn of(&self, item: usize) -> Option<String> {
        self.names.get(self.labels.get(item)?).cloned()
    }

    /// The most frequent class of every cluster.
    pub(super) fn mostly(&self, seen: &Seen) -> Vec<Option<Mostly>> {
        let mut counts: Vec<BTreeMap<i64, u64>> = vec![BTreeMap::new(); seen.k];
        for (&label, &cluster) in self.labels.iter().zip(&seen.clusters).filter(|(label, _)| **label >= 0) {
            *counts[usize::from(cluster)].entry(label).or_default() += 1;
        }
        let most = |counts: &BTreeMap<i64, u64>| {
            let (label, &count) = counts.iter().max_by_key(|(label, count)| (**count, std::cmp::Reverse(**label)))?;
            let total: u64 = counts.values().sum();
            Some(Mostly { class: self.names.get(label)?.clone(), share: count as f64 / total as f64 })
        };
        counts.iter().map(most).collect()
    }
}

/// Scores, the confusion matrix and every class; `None` where there are too many clusters to match.
pub(super) fn scores(classes: &Classes, seen: &Seen) -> Result<Option<Scores>, TrainError> {
    if seen.k > MOST {
        return Ok(None);
    }
    let clusters: Vec<i64> = seen.clusters.iter().map(|&cluster| i64::from(cluster)).collect();
    let labels = &classes.labels;
    let scores = dtkc_metrics::scores(labels, &clusters)?;
    let table = dtkc_metrics::confusion(labels, &clusters)?;
    let matched: BTreeMap<i64, i64> =
        dtkc_metrics::matching(labels, &clusters)?.into_iter().map(|(cluster, class)| (class, cluster)).collect();
    let column = |cluster: i64| table.clusters.iter().position(|&other| other == cluster);
    let score = |(row, &class): (usize, &i64)| {
        let items: u64 = table.counts.row(row).iter().sum();
        let own = matched.get(&class).and_then(|&cluster| Some((cluster, column(cluster)?)));
        let there = own.map_or(0, |(_, at)| table.counts[[row, at]]);
        let whole = own.map_or(0, |(_, at)| table.counts.column(at).iter().sum::<u64>());
        ClassScore {
            class: classes.names.get(&class).cloned().unwrap_or_default(),
            items,
            cluster: own.and_then(|(cluster, _)| usize::try_from(cluster).ok()),
            found: there as f64 / items.max(1) as f64,
            pure: there as f64 / whole.max(1) as f64,
        }
    };
    Ok(Some(Scores {
        acc: scores.acc,
        nmi: scores.nmi,
        ari: scores.ari,
        labelled: scores.counted,
        classes: table.classes.iter().enumerate().map(score).collect(),
        confusion: Confusion {
            classes: table.classes.iter().map(|class| classes.names.get(class).cloned().unwrap_or_default()).collect(),
            clusters: table.clusters.iter().map(|&cluster| usize::try_from(cluster).unwrap_or(0)).collect(),
            counts: table.counts.rows().into_iter().map(|row| row.to_vec()).collect(),
        },
    }))
}
