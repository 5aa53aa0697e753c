//! How far restarts agree, from the clusters of the same items that each of them keeps.

use std::collections::BTreeMap;

use dtkc_report::{Agreement, Consensus};

use super::Asked;
use super::items::Seen;
use super::restarts::Past;
use crate::choice::{agreement, alone};
use crate::error::TrainError;
use crate::restart::Ended;

/// Clusters beyond which those of two restarts cannot be matched in a moment.
const MOST: usize = 1000;

/// What restarts say about each other.
#[derive(Default)]
pub(super) struct Agreed {
    /// For the page; absent where there is nothing to compare.
    pub(super) agreement: Option<Agreement>,
    /// Mean ARI of the others that came to their end with the chosen one.
    pub(super) ari: Option<f64>,
    /// Clusters of the chosen one that no other restart has.
    pub(super) alone: Option<usize>,
    /// Items of the shown data, and the part of the other restarts that agree about each; empty for other data.
    pub(super) items: BTreeMap<u32, f32>,
}

/// One restart's clusters of the compared items.
struct Sample {
    restart: usize,
    is_pruned: bool,
    clusters: Vec<i64>,
}

/// Compares all restarts of a run that have clusters.
pub(super) fn compare(asked: &Asked<'_>, past: &Past, seen: &Seen) -> Result<Agreed, TrainError> {
    let all = asked.saved.config.data.items;
    let samples = samples(asked, past, seen);
    let count = samples.first().map_or(0, |sample| sample.clusters.len());
    let chosen = samples.iter().find(|sample| sample.restart == past.chosen);
    let (true, Some(chosen)) = (samples.len() > 1 && count > 0 && seen.k <= MOST, chosen) else {
        return Ok(Agreed::default());
    };
    let nmi = matrix(&samples)?;
    let others: Vec<&Sample> =
        samples.iter().filter(|other| other.restart != chosen.restart && !other.is_pruned).collect();
    let ari = others
        .iter()
        .map(|other| dtkc_metrics::ari(&chosen.clusters, &other.clusters))
        .collect::<Result<Vec<_>, _>>()?;
    let parts = agreeing(chosen, &others)?;
    let places = (0..count).map(|i| (i * all / count) as u32);
    let items = if asked.is_training_data && !others.is_empty() {
        places.zip(&parts).map(|(item, &agreeing)| (item, agreeing as f32 / others.len() as f32)).collect()
    } else {
        BTreeMap::new()
    };
    let consensus = (!others.is_empty()).then(|| consensus(chosen, &parts, others.len(), seen.k));
    let agreement = Agreement {
        restarts: samples.iter().map(|sample| sample.restart).collect(),
        pruned: samples.iter().filter(|sample| sample.is_pruned).map(|sample| sample.restart).collect(),
        mean: mean(&samples, &nmi),
        nmi,
        items: count,
        of: all,
        consensus,
    };
    let every: Vec<&[i64]> = samples
        .iter()
        .filter(|other| other.restart != chosen.restart)
        .map(|sample| sample.clusters.as_slice())
        .collect();
    let alone = Some(alone(&chosen.clusters, &every));
    Ok(Agreed { agreement: Some(agreement), ari: dtkc_metrics::mean(&ari), alone, items })
}

/// The clusters that every restart kept, those of the chosen one as the exported model numbers them. Those of a network that is still in training are looked up.
fn samples(asked: &Asked<'_>, past: &Past, seen: &Seen) -> Vec<Sample> {
    let wide = |sample: &[u32]| sample.iter().map(|&cluster| i64::from(cluster)).collect::<Vec<_>>();
    let mut samples: Vec<Sample> = Vec::new();
    for one in &past.restarts {
        let sample = one.outcome.as_ref().map(|outcome| wide(&outcome.sample));
        let is_whole = |sample: &Vec<i64>| !sample.is_empty() && sample.iter().all(|&cluster| cluster < seen.k as i64);
        let mut kept = sample.filter(is_whole);
        if let Some(clusters) = kept.as_mut().filter(|_| one.restart == past.chosen) {
            asked.saved.renumber(clusters);
        }
        let is_pruned = one.ended == Some(Ended::Pruned);
        samples.extend(kept.map(|clusters| Sample { restart: one.restart, is_pruned, clusters }));
    }
    let count = samples.first().map_or(0, |sample| sample.clusters.len());
    samples.retain(|sample| sample.clusters.len() == count);
    let has_chosen = samples.iter().any(|sample| sample.restart == past.chosen);
    if !has_chosen && asked.is_training_data && count > 0 && count <= seen.len() {
        let clusters = (0..count).map(|i| i64::from(seen.clusters[i * seen.len() / count])).collect();
        samples.push(Sample { restart: past.chosen, is_pruned: false, clusters });
        samples.sort_by_key(|sample| sample.restart);
    }
    samples
}

fn matrix(samples: &[Sample]) -> Result<Vec<Vec<f64>>, TrainError> {
    Ok(agreement(&samples.iter().map(|sample| sample.clusters.as_slice()).collect::<Vec<_>>())?)
}

/// The mean over pairs of restarts that came to their end.
fn mean(samples: &[Sample], nmi: &[Vec<f64>]) -> Option<f64> {
    let ended = |at: &usize| !samples[*at].is_pruned;
    let pairs = (0..samples.len()).filter(ended).flat_map(|a| (0..a).filter(ended).map(move |b| (a, b)));
    dtkc_metrics::mean(&pairs.map(|(a, b)| nmi[a][b]).collect::<Vec<_>>())
}

/// For every compared item how many of the others put it where the chosen one does, once their clusters are matched.
fn agreeing(chosen: &Sample, others: &[&Sample]) -> Result<Vec<usize>, TrainError> {
    let mut counts = vec![0; chosen.clusters.len()];
    for other in others {
        let matched: BTreeMap<i64, i64> =
            dtkc_metrics::matching(&chosen.clusters, &other.clusters)?.into_iter().collect();
        for ((own, theirs), count) in chosen.clusters.iter().zip(&other.clusters).zip(&mut counts) {
            *count += usize::from(matched.get(theirs) == Some(own));
        }
    }
    Ok(counts)
}

fn consensus(chosen: &Sample, parts: &[usize], others: usize, k: usize) -> Consensus {
    let mut counts = vec![0u64; others + 1];
    let (mut sums, mut sizes) = (vec![0.0; k], vec![0u64; k]);
    for (&agreeing, &cluster) in parts.iter().zip(&chosen.clusters) {
        counts[agreeing] += 1;
        let cluster = usize::try_from(cluster).unwrap_or(0).min(k.saturating_sub(1));
        sums[cluster] += agreeing as f64 / others as f64;
        sizes[cluster] += 1;
    }
    let by_cluster = sums.iter().zip(&sizes).map(|(sum, &size)| (size > 0).then(|| sum / size as f64)).collect();
    let mean = sums.iter().sum::<f64>() / parts.len().max(1) as f64;
    Consensus { others, mean, counts, by_cluster }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sample(restart: usize, is_pruned: bool, clusters: &[i64]) -> Sample {
        Sample { restart, is_pruned, clusters: clusters.to_vec() }
    }

    /// From scikit-learn: `normalized_mutual_info_score` of every pair, rounded to six digits (scripts/golden/report_golden.py).
    #[test]
    fn the_matrix_is_that_of_scikit_learn() {
        let samples = [
            sample(0, false, &[0, 0, 0, 1, 1, 1, 2, 2, 2, 2]),
            sample(1, false, &[2, 2, 2, 0, 0, 1, 1, 1, 1, 1]),
            sample(2, true, &[0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
        ];
        let nmi = matrix(&samples).unwrap();
        let expected = [[1.0, 0.791766, 0.012714], [0.791766, 1.0, 0.088010], [0.012714, 0.088010, 1.0]];
        for (row, expected) in nmi.iter().zip(expected) {
            for (value, expected) in row.iter().zip(expected) {
                assert!((value - expected).abs() < 1e-6, "{nmi:?}");
            }
        }
        assert_eq!(mean(&samples, &nmi), Some(nmi[0][1]), "pruned restarts do not count");
    }

    #[test]
    fn restarts_that_only_number_otherwise_agree_about_everything() {
        let chosen = sample(0, false, &[0, 0, 1, 1, 2, 2]);
        let renamed = sample(1, false, &[2, 2, 0, 0, 1, 1]);
        let torn = sample(2, false, &[2, 2, 0, 1, 1, 1]);
        let parts = agreeing(&chosen, &[&renamed, &torn]).unwrap();
        assert_eq!(parts, [2, 2, 2, 1, 2, 2]);
        let found = consensus(&chosen, &parts, 2, 3);
        assert_eq!((found.counts, found.by_cluster), (vec![0, 1, 5], vec![Some(1.0), Some(0.75), Some(1.0)]));
        assert!((found.mean - 11.0 / 12.0).abs() < 1e-12);
    }
}
