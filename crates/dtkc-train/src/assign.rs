//! What a learner is worth: its loss on fixed batches, its clusters, their agreement with labels.

use dtkc_item::Batch;
use dtkc_methods::learner::{Answers, Learner, Passes, joined};
use dtkc_methods::places::Pass;
use dtkc_metrics::Scores;

use crate::error::TrainError;
use crate::monitor::argmax;
use crate::spread::spread;

/// Items per forward pass in evaluation, at least: no more than a training step has, whose memory is planned for.
const CHUNK: usize = 120;

/// The mean loss over the fixed batches that all restarts share, in training mode and with fixed views: the same
/// question for every restart, and one that needs no labels.
pub fn comparison_loss(learner: &dyn Learner, data: &mut dyn Passes) -> Result<f64, TrainError> {
    let (mut sum, mut items) = (0.0, 0.0);
    for batch in data.comparison() {
        let (batch, views) = batch?;
        let weight = batch.len() as f64;
        sum += weight * learner.loss(&batch, views);
        items += weight;
    }
    Ok(sum / items)
}

/// The clusters of items in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Assigned {
    /// The cluster of every item, as the network numbers them.
    pub clusters: Vec<i64>,
    /// Items in each cluster.
    pub sizes: Vec<u64>,
    /// Mean of the largest membership.
    pub confidence: f64,
}

/// Items whose clusters are kept with a restart, at most: enough to compare restarts by.
const SAMPLE: usize = 5000;

impl Assigned {
    /// The clusters of items that are spread evenly over the set; the same items for sets of one size.
    pub fn sample(&self) -> Vec<u32> {
        spread(self.clusters.len(), SAMPLE).map(|item| self.clusters[item].max(0) as u32).collect()
    }
}

/// Runs the network in evaluation mode over all `items` items of `source`, in any order.
pub fn assign<E>(
    learner: &dyn Learner,
    items: usize,
    source: impl Iterator<Item = Result<Batch, E>>,
) -> Result<Assigned, TrainError>
where
    TrainError: From<E>,
{
    let k = learner.clusters();
    let mut found = Assigned { clusters: vec![-1; items], sizes: vec![0; k], confidence: 0.0 };
    for batch in joined(source, CHUNK) {
        let batch = batch?;
        let Answers { membership, .. } = learner.answers(&batch.items);
        for (&index, row) in batch.indices.iter().zip(membership.chunks_exact(k)) {
            let cluster = argmax(row);
            found.clusters[index] = cluster as i64;
            found.sizes[cluster] += 1;
            found.confidence += f64::from(row[cluster]);
        }
    }
    found.confidence /= items.max(1) as f64;
    Ok(found)
}

/// [`assign`] for all items of a run.
pub fn assign_all(learner: &dyn Learner, data: &mut dyn Passes) -> Result<Assigned, TrainError> {
    let items = data.len();
    assign(learner, items, data.batches(Pass::Everything))
}

/// ACC, NMI and ARI where there are labels.
pub fn scores(labels: Option<&[i64]>, clusters: &[i64]) -> Result<Option<Scores>, TrainError> {
    labels.map(|labels| dtkc_metrics::scores(labels, clusters)).transpose().map_err(TrainError::from)
}

/// The order of clusters by size: position i holds the network's number of the i-th largest. Of equal ones the
/// lower number comes first.
pub fn order_by_size(sizes: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&cluster| (std::cmp::Reverse(sizes[cluster]), cluster));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_the_set() {
        let of = |clusters: Vec<i64>| Assigned { clusters, sizes: vec![], confidence: 1.0 }.sample();
        assert_eq!(of(vec![2, 0, 1]), [2, 0, 1]);
        let many = of((0..12_000).collect());
        assert_eq!((many.len(), many[1], many[4999]), (5000, 2, 11_997));
    }

    #[test]
    fn clusters_are_ordered_by_size_and_ties_stay() {
        assert_eq!(order_by_size(&[3, 9, 0, 9, 4]), [1, 3, 4, 0, 2]);
    }
}
