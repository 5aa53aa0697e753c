//! What a run says at its end: clusters with counts and mean confidence, failures by kind, agreement with the truth.

use std::collections::{BTreeMap, HashMap};

use dtkc_metrics::Scores;
use serde::Serialize;

use crate::error::Result;
use crate::layout::Layout;
use crate::row::Row;

/// Counts rows as they come. Its size depends on the number of clusters and classes, not on that of the rows.
#[derive(Debug, Clone)]
pub struct Tally {
    layout: Layout,
    clusters: Vec<Group>,
    unsure: Group,
    outliers: u64,
    failures: BTreeMap<String, u64>,
    classes: HashMap<String, i64>,
    pairs: BTreeMap<(i64, i64), u64>,
}

#[derive(Debug, Clone, Default)]
struct Group {
    images: u64,
    confidence: f64,
}

impl Group {
    fn add(&mut self, confidence: f32) {
        self.images += 1;
        self.confidence += f64::from(confidence);
    }

    fn mean(&self) -> Option<f64> {
        (self.images > 0).then(|| self.confidence / self.images as f64)
    }
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(layout: &Layout) -> Self {
        Self {
            clusters: vec![Group::default(); layout.clusters()],
            layout: layout.clone(),
            unsure: Group::default(),
            outliers: 0,
            failures: BTreeMap::new(),
            classes: HashMap::new(),
            pairs: BTreeMap::new(),
        }
    }

    /// Counts one row.
    pub fn add(&mut self, row: &Row) {
        let label = match &row.outcome {
            Ok(label) => label,
            Err(error) => {
                *self.failures.entry(error.code.to_string()).or_default() += 1;
                return;
            }
        };
        self.outliers += u64::from(self.layout.is_outlier(label));
        match self.layout.is_unsure(label) {
            true => self.unsure.add(label.confidence),
            false => self.clusters[label.cluster as usize].add(label.confidence),
        }
        if let Some(truth) = &row.truth {
            let class = match self.classes.get(truth) {
                Some(class) => *class,
                None => {
                    let class = self.classes.len() as i64;
                    self.classes.insert(truth.clone(), class);
                    class
                }
            };
            *self.pairs.entry((class, i64::from(label.cluster))).or_default() += 1;
        }
    }

    /// Rows with a label.
    pub fn labelled(&self) -> u64 {
        self.unsure.images + self.clusters.iter().map(|c| c.images).sum::<u64>()
    }

    /// Rows without.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// The figures, for people and programs.
    pub fn summary(&self) -> Result<Summary> {
        let names = self.layout.names.iter().zip(&self.clusters).enumerate();
        let clusters = names.map(|(cluster, (name, group))| ClusterSummary {
            cluster,
            name: name.clone(),
            images: group.images,
            share: share(group.images, self.labelled()),
            mean_confidence: group.mean(),
            mostly: self.mostly(cluster as i64),
        });
        let unsure = self.layout.min_confidence.map(|minimum| UnsureSummary {
            below: minimum,
            images: self.unsure.images,
            share: share(self.unsure.images, self.labelled()),
            mean_confidence: self.unsure.mean(),
        });
        let outliers = self.layout.outlier.map(|threshold| OutlierSummary {
            above: threshold,
            images: self.outliers,
            share: share(self.outliers, self.labelled()),
        });
        let scores = match self.pairs.is_empty() {
            true => None,
            false => Some(dtkc_metrics::scores_of_counts(&self.cells())?),
        };
        Ok(Summary {
            images: self.labelled() + self.failed(),
            labelled: self.labelled(),
            failed: self.failed(),
            failures: self.failures.clone(),
            clusters: clusters.collect(),
            unsure,
            outliers,
            scores,
        })
    }

    fn cells(&self) -> Vec<(i64, i64, u64)> {
        self.pairs.iter().map(|((class, cluster), count)| (*class, *cluster, *count)).collect()
    }

    /// The class that most images of a cluster have, and which part of them.
    fn mostly(&self, cluster: i64) -> Option<Majority> {
        let in_cluster = || self.pairs.iter().filter(|((_, c), _)| *c == cluster);
        let total: u64 = in_cluster().map(|(_, count)| count).sum();
        let name = |class: i64| self.classes.iter().find(|(_, id)| **id == class).map(|(name, _)| name.clone());
        // The first class by name where two have the same count.
        let best = in_cluster().filter_map(|((class, _), count)| Some((*count, name(*class)?)));
        let (count, class) = best.max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)))?;
        Some(Majority { class, share: share(count, total) })
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The figures of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Rows in all.
    pub images: u64,
    /// Rows with a cluster.
    pub labelled: u64,
    /// Rows without.
    pub failed: u64,
    /// How often each failure occurred, by code.
    pub failures: BTreeMap<String, u64>,
    /// The clusters, by id.
    pub clusters: Vec<ClusterSummary>,
    /// Rows below `--min-confidence`; they are in no cluster's count.
    pub unsure: Option<UnsureSummary>,
    /// Rows that are unlike anything in the training set, where the model tells; they count in their clusters, too.
    pub outliers: Option<OutlierSummary>,
    /// ACC, NMI and ARI, with `--truth`.
    pub scores: Option<Scores>,
}

/// The figures of one cluster.
#[derive(Debug, Clone, Serialize)]
pub struct ClusterSummary {
    /// Its id.
    pub cluster: usize,
    /// What it is called.
    pub name: String,
    /// Rows in it.
    pub images: u64,
    /// Part of all labelled rows.
    pub share: f64,
    /// Mean probability of the rows in it.
    pub mean_confidence: Option<f64>,
    /// The most frequent class in it, with `--truth`.
    pub mostly: Option<Majority>,
}

/// The rows that are not sure enough.
#[derive(Debug, Clone, Serialize)]
pub struct UnsureSummary {
    /// The asked minimum.
    pub below: f32,
    /// How many.
    pub images: u64,
    /// Part of all labelled rows.
    pub share: f64,
    /// Their mean probability.
    pub mean_confidence: Option<f64>,
}

/// The rows that are unlike anything in the training set.
#[derive(Debug, Clone, Serialize)]
pub struct OutlierSummary {
    /// The model's threshold.
    pub above: f32,
    /// How many.
    pub images: u64,
    /// Part of all labelled rows.
    pub share: f64,
}

/// A cluster's most frequent class.
#[derive(Debug, Clone, Serialize)]
pub struct Majority {
    /// Which class.
    pub class: String,
    /// Part of the cluster's rows with a known class.
    pub share: f64,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_item::ItemError;

    use super::*;
    use crate::row::Label;

    #[test]
    fn rows_are_counted_by_cluster_doubt_failure_and_class() {
        let layout = Layout {
            names: vec!["a".into(), "b".into()],
            min_confidence: Some(0.5),
            probabilities: false,
            embedding: 0,
            truth: true,
            outlier: Some(0.5),
        };
        let mut tally = Tally::new(&layout);
        let rows = [(0, 0.9, "x"), (0, 0.7, "x"), (1, 0.6, "y"), (1, 0.4, "x")];
        for (index, (cluster, confidence, truth)) in rows.into_iter().enumerate() {
            let label = Label { cluster, confidence, outlier: Some(index as f32 * 0.25), ..Label::default() };
            tally.add(&Row { index: index as u64, path: "p".into(), truth: Some(truth.into()), outcome: Ok(label) });
        }
        tally.add(&Row { index: 4, path: "q".into(), truth: None, outcome: Err(ItemError::new("empty", "")) });
        let summary = tally.summary().unwrap();
        assert_eq!((summary.images, summary.labelled, summary.failed), (5, 4, 1));
        assert_eq!(summary.failures["empty"], 1);
        assert_eq!((summary.clusters[0].images, summary.clusters[1].images), (2, 1));
        assert!((summary.clusters[0].mean_confidence.unwrap() - 0.8).abs() < 1e-6);
        assert_eq!(summary.unsure.as_ref().unwrap().images, 1);
        // 0, .25, .5 and .75; what lies on the threshold is not above it.
        let outliers = summary.outliers.as_ref().unwrap();
        assert_eq!((outliers.images, outliers.share), (1, 0.25));
        // By hand: x and y match clusters 0 and 1, three of four rows agree.
        assert_eq!(summary.scores.unwrap().acc, 0.75);
        let mostly = summary.clusters[1].mostly.as_ref().unwrap();
        assert_eq!((mostly.class.as_str(), mostly.share), ("x", 0.5));
    }
}
