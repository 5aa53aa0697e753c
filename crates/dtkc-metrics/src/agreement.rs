//! Agreement of clusters with labels: ACC, NMI, ARI.

use crate::MetricError;
use crate::contingency::Contingency;
use crate::matching::matched_rows;
use serde::{Deserialize, Serialize};

/// What the mutual information is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalisation {
    /// The arithmetic mean of both entropies, as in the paper and scikit-learn's default.
    #[default]
    Arithmetic,
    /// Their geometric mean.
    Geometric,
}

/// The three usual figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Accuracy under the best matching of clusters to classes.
    pub acc: f64,
    /// Normalised mutual information, arithmetic.
    pub nmi: f64,
    /// Adjusted Rand index.
    pub ari: f64,
    /// Rows that have both a label and a cluster.
    pub counted: usize,
}

/// The part of images whose cluster is matched with their class, under the best one-to-one matching (Hungarian).
///
/// Works for any number of clusters and classes; what has no partner counts as wrong.
pub fn accuracy(truth: &[i64], clusters: &[i64]) -> Result<f64, MetricError> {
    accuracy_of(&Contingency::new(truth, clusters)?)
}

/// Normalised mutual information: 1 for equal partitions, 0 for independent ones.
pub fn nmi(truth: &[i64], clusters: &[i64], normalisation: Normalisation) -> Result<f64, MetricError> {
    Ok(nmi_of(&Contingency::new(truth, clusters)?, normalisation))
}

/// Adjusted Rand index: 1 for equal partitions, about 0 for random ones.
pub fn ari(truth: &[i64], clusters: &[i64]) -> Result<f64, MetricError> {
    Ok(ari_of(&Contingency::new(truth, clusters)?))
}

/// ACC, NMI and ARI in one pass over the labels.
pub fn scores(truth: &[i64], clusters: &[i64]) -> Result<Scores, MetricError> {
    scores_of(&Contingency::new(truth, clusters)?)
}

/// The same from counts: (label, cluster, how often they meet). For sets whose labels do not fit in memory; a pair
/// may occur more than once.
pub fn scores_of_counts(counts: &[(i64, i64, u64)]) -> Result<Scores, MetricError> {
    scores_of(&Contingency::from_counts(counts)?)
}

fn scores_of(table: &Contingency) -> Result<Scores, MetricError> {
    let nmi = nmi_of(table, Normalisation::Arithmetic);
    Ok(Scores { acc: accuracy_of(table)?, nmi, ari: ari_of(table), counted: table.total as usize })
}

fn accuracy_of(table: &Contingency) -> Result<f64, MetricError> {
    Ok(matched_rows(table)? as f64 / table.total as f64)
}

fn nmi_of(table: &Contingency, normalisation: Normalisation) -> f64 {
    if table.classes.len() == 1 && table.clusters.len() == 1 {
        return 1.0;
    }
    let (classes, clusters) = (table.class_sizes(), table.cluster_sizes());
    let total = table.total as f64;
    let cell = |&(class, cluster, count): &(usize, usize, u64)| {
        let p = count as f64 / total;
        let independent = classes[class] as f64 / total * (clusters[cluster] as f64 / total);
        p * (p / independent).ln()
    };
    let information: f64 = table.cells.iter().map(cell).sum();
    // Rounding may leave a little of nothing, also divided by nothing.
    if information <= f64::EPSILON {
        return 0.0;
    }
    let (a, b) = (entropy(&classes, total), entropy(&clusters, total));
    let norm = match normalisation {
        Normalisation::Arithmetic => (a + b) / 2.0,
        Normalisation::Geometric => (a * b).sqrt(),
    };
    (information / norm).clamp(0.0, 1.0)
}

fn entropy(sizes: &[u64], total: f64) -> f64 {
    sizes.iter().map(|&size| size as f64 / total).map(|p| -p * p.ln()).sum()
}

fn ari_of(table: &Contingency) -> f64 {
    // Pairs of rows: together in both, in the clusters only, in the classes only, in neither.
    let pairs = |sizes: &mut dyn Iterator<Item = u64>| -> f64 { sizes.map(|s| s as f64 * (s as f64 - 1.0)).sum() };
    let both = pairs(&mut table.cells.iter().map(|cell| cell.2));
    let in_classes = pairs(&mut table.class_sizes().into_iter());
    let in_clusters = pairs(&mut table.cluster_sizes().into_iter());
    let all = pairs(&mut std::iter::once(table.total));
    let (only_classes, only_clusters) = (in_classes - both, in_clusters - both);
    if only_classes == 0.0 && only_clusters == 0.0 {
        return 1.0;
    }
    let neither = all - both - only_classes - only_clusters;
    let chance = (both + only_classes) * (only_classes + neither) + (both + only_clusters) * (only_clusters + neither);
    2.0 * (both * neither - only_classes * only_clusters) / chance
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn more_clusters_than_classes_and_fewer() {
        assert_eq!(accuracy(&[0, 0, 0, 0, 1, 1], &[0, 0, 1, 1, 2, 2]).unwrap(), 4.0 / 6.0);
        assert_eq!(accuracy(&[0, 1, 2, 2], &[5, 5, 5, 5]).unwrap(), 0.5);
    }

    #[test]
    fn counts_give_the_same_as_rows() {
        let truth: Vec<i64> = (0..1000).map(|i| i * i % 7 - 1).collect();
        let clusters: Vec<i64> = (0..1000).map(|i| i * 5 % 11 - 1).collect();
        let counts: Vec<(i64, i64, u64)> = truth.iter().zip(&clusters).map(|(t, c)| (*t, *c, 1)).collect();
        assert_eq!(scores_of_counts(&counts).unwrap(), scores(&truth, &clusters).unwrap());
        let doubled = scores_of_counts(&[(0, 3, 2), (1, 4, 0), (1, 4, 2), (0, 4, 1), (-1, 3, 9)]).unwrap();
        assert_eq!(doubled, scores(&[0, 0, 1, 1, 0], &[3, 3, 4, 4, 4]).unwrap());
        assert_eq!(scores_of_counts(&[(0, 0, 0), (-1, 0, 5)]).unwrap_err(), MetricError::Empty);
    }

    #[test]
    fn one_cluster_and_one_class_is_perfect() {
        let all = scores(&[3, 3], &[1, 1]).unwrap();
        assert_eq!((all.acc, all.nmi, all.ari, all.counted), (1.0, 1.0, 1.0, 2));
        let one = scores(&[3], &[1]).unwrap();
        assert_eq!((one.acc, one.nmi, one.ari), (1.0, 1.0, 1.0));
    }

    #[test]
    fn a_million_rows_and_a_hundred_clusters() {
        // A known permutation with a tenth of the rows moved to the next cluster.
        let truth: Vec<i64> = (0..1_000_000).map(|i| i % 100).collect();
        let clusters: Vec<i64> =
            (0..1_000_000).map(|i| ((i % 100) * 37 + i64::from(i / 100 % 10 == 0)) % 100).collect();
        let started = std::time::Instant::now();
        let all = scores(&truth, &clusters).unwrap();
        assert!((all.acc - 0.9).abs() < 1e-12, "{}", all.acc);
        assert!(started.elapsed().as_secs_f64() < 2.0, "{:?}", started.elapsed());
    }

    #[test]
    fn too_many_to_match_is_an_error_but_nmi_works() {
        let labels: Vec<i64> = (0..5000).collect();
        assert!(matches!(accuracy(&labels, &labels), Err(MetricError::TooMany { .. })));
        assert!((nmi(&labels, &labels, Normalisation::Geometric).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(ari(&labels, &labels).unwrap(), 1.0);
    }
}
