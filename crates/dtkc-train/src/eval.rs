//! What a network is worth: its loss on fixed batches, its clusters, its agreement with labels.

use dtkc_dataset::{Batch, Batches, DataError};
use burn::module::Module as _;
use dtkc_core::augment::BatchKey;
use dtkc_core::regroup::{Evidence, OutputLayer};
use dtkc_core::{Model, Output, StatisticsPass};
use dtkc_metrics::Scores;
use ndarray::Array2;

use crate::error::TrainError;
use crate::monitor::argmax;
use crate::recipe::Recipe;
use crate::seeds::{self, Purpose};

/// Epoch numbers of the loader that no training epoch has: their order is the same for every restart.
const COMPARISON_EPOCH: u64 = 1 << 62;
const STATISTICS_EPOCH: u64 = (1 << 62) + 2;
/// Images after which batch-norm statistics no longer change in a digit that matters.
const STATISTICS_IMAGES: usize = 20_000;
/// Images per forward pass in evaluation.
const CHUNK: usize = 500;

/// The mean loss over the first `count` batches of a fixed order, in training mode and with fixed views: the
/// same question for every restart, and one that needs no labels.
pub fn comparison_loss(
    recipe: &Recipe,
    model: &Model,
    batches: &mut Batches,
    seed: u64,
    count: usize,
) -> Result<f64, TrainError> {
    let (mut sum, mut images) = (0.0, 0.0);
    for batch in comparison_batches(batches, seed, count) {
        let (batch, key) = batch?;
        let loss = recipe.loss(model, &batch.images, key);
        let weight = batch.indices.len() as f64;
        sum += weight * loss.total;
        images += weight;
    }
    Ok(sum / images)
}

/// The first `count` batches of the fixed order, with the seeds of their fixed views.
fn comparison_batches(
    batches: &mut Batches,
    seed: u64,
    count: usize,
) -> impl Iterator<Item = Result<(Batch, BatchKey), DataError>> {
    let seed = seeds::derive(seed, Purpose::Comparison, &[]);
    let numbered = batches.epoch(COMPARISON_EPOCH).take(count).enumerate();
    numbered.map(move |(i, batch)| Ok((batch?, BatchKey { seed, epoch: 0, batch: i as u64 })))
}

/// A better output layer from the fine clusters of the same batches, if there is one.
pub fn propose_output(
    recipe: &Recipe,
    model: &Model,
    batches: &mut Batches,
    seed: u64,
    count: usize,
) -> Result<Option<OutputLayer>, TrainError> {
    let mut evidence = Evidence::default();
    for batch in comparison_batches(batches, seed, count) {
        let (batch, key) = batch?;
        evidence.add(&recipe.output(model, &batch.images, key).0);
    }
    Ok(evidence.propose())
}

/// Replaces the running batch-norm statistics by those of clean images.
pub fn refresh_statistics(recipe: &Recipe, model: &mut Model, batches: &mut Batches) -> Result<(), TrainError> {
    let valid = model.valid();
    let mut pass = StatisticsPass::new();
    for chunk in Chunks::new(batches.epoch(STATISTICS_EPOCH), recipe.settings().plan.batch) {
        pass.add(&valid.forward_train(recipe.clean(&chunk?.images)));
        if pass.images() >= STATISTICS_IMAGES {
            break;
        }
    }
    pass.apply(model);
    Ok(())
}

/// Clusters, and on request the embedding, of images in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Assigned {
    /// The cluster of every image, as the network numbers them.
    pub clusters: Vec<i64>,
    /// Images in each cluster.
    pub sizes: Vec<u64>,
    /// Mean of the largest membership.
    pub confidence: f64,
    /// The embedding of every image, where it was asked for.
    pub embedding: Option<Array2<f32>>,
}

/// Runs the network in evaluation mode over all images of `source`, in any order.
pub fn assign(
    recipe: &Recipe,
    model: &Model,
    images: usize,
    source: impl Iterator<Item = Result<Batch, DataError>>,
    with_embedding: bool,
) -> Result<Assigned, TrainError> {
    let valid = model.valid();
    let (k, hidden) = (recipe.clusters(), recipe.model().config().network.hidden);
    let mut found = Assigned {
        clusters: vec![-1; images],
        sizes: vec![0; k],
        confidence: 0.0,
        embedding: with_embedding.then(|| Array2::zeros((images, hidden))),
    };
    for chunk in Chunks::new(source, CHUNK) {
        let chunk = chunk?;
        let Output { membership, embedding, .. } = valid.forward_eval(recipe.clean(&chunk.images));
        let membership: Vec<f32> = membership.into_data().iter::<f32>().collect();
        for (&index, row) in chunk.indices.iter().zip(membership.chunks_exact(k)) {
            let cluster = argmax(row);
            found.clusters[index] = cluster as i64;
            found.sizes[cluster] += 1;
            found.confidence += f64::from(row[cluster]);
        }
        if let Some(target) = &mut found.embedding {
            let values: Vec<f32> = embedding.into_data().iter::<f32>().collect();
            for (&index, row) in chunk.indices.iter().zip(values.chunks_exact(hidden)) {
                target.row_mut(index).iter_mut().zip(row).for_each(|(slot, &value)| *slot = value);
            }
        }
    }
    found.confidence /= images.max(1) as f64;
    Ok(found)
}

/// [`assign`] for the images that the loader holds.
pub fn assign_all(
    recipe: &Recipe,
    model: &Model,
    batches: &mut Batches,
    with_embedding: bool,
) -> Result<Assigned, TrainError> {
    let images = batches.len();
    assign(recipe, model, images, batches.epoch(STATISTICS_EPOCH), with_embedding)
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

/// Joins batches until there are at least `size` images, so that a forward pass is worth its overhead.
struct Chunks<I> {
    source: I,
    size: usize,
}

impl<I> Chunks<I> {
    fn new(source: I, size: usize) -> Self {
        Self { source, size }
    }
}

impl<I: Iterator<Item = Result<Batch, DataError>>> Iterator for Chunks<I> {
    type Item = Result<Batch, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut joined: Option<Batch> = None;
        for batch in self.source.by_ref() {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            };
            let all = match &mut joined {
                None => joined.insert(batch),
                Some(all) => {
                    all.indices.extend(batch.indices);
                    all.images.extend(batch.images);
                    all
                }
            };
            if all.indices.len() >= self.size {
                break;
            }
        }
        joined.map(Ok)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_ordered_by_size_and_ties_stay() {
        assert_eq!(order_by_size(&[3, 9, 0, 9, 4]), [1, 3, 4, 0, 2]);
    }

    #[test]
    fn chunks_join_whole_batches() {
        let batch =
            |first: usize, n: usize| Ok(Batch { indices: (first..first + n).collect(), images: vec![first as u8; n] });
        let chunks: Vec<Batch> =
            Chunks::new([batch(0, 2), batch(2, 2), batch(4, 1)].into_iter(), 3).collect::<Result<_, _>>().unwrap();
        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[0].indices, [0, 1, 2, 3]);
        assert_eq!(chunks[0].images, [0, 0, 2, 2]);
        assert_eq!(chunks[1].indices, [4]);
    }
}
