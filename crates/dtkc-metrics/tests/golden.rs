//! Values from scikit-learn and SciPy (scripts/golden/metrics_golden.py), and what must hold for any labels.
#![allow(clippy::unwrap_used)]

use dtkc_metrics::{Normalisation, accuracy, ari, confusion, nmi, scores, silhouette};
use ndarray::Array2;
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    agreement: Vec<Agreement>,
    embeddings: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Agreement {
    name: String,
    truth: Vec<i64>,
    clusters: Vec<i64>,
    acc: f64,
    nmi: f64,
    nmi_geometric: f64,
    ari: f64,
}

#[derive(Deserialize)]
struct Embedding {
    name: String,
    dim: usize,
    points: Vec<f32>,
    clusters: Vec<i64>,
    silhouette: f64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden.json")).unwrap()
}

#[track_caller]
fn close(what: &str, found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{what}: {found}, scikit-learn says {expected}");
}

#[test]
fn agreement_is_that_of_scikit_learn() {
    for case in golden().agreement {
        let (truth, clusters) = (&case.truth, &case.clusters);
        let all = scores(truth, clusters).unwrap();
        close(&case.name, all.acc, case.acc);
        close(&case.name, all.nmi, case.nmi);
        close(&case.name, all.ari, case.ari);
        close(&case.name, nmi(truth, clusters, Normalisation::Geometric).unwrap(), case.nmi_geometric);
        assert_eq!(all.counted, truth.len());
    }
}

#[test]
fn silhouette_is_that_of_scikit_learn() {
    for case in golden().embeddings {
        let points = Array2::from_shape_vec((case.clusters.len(), case.dim), case.points).unwrap();
        close(&case.name, silhouette(&points.view(), &case.clusters, usize::MAX, 0).unwrap(), case.silhouette);
    }
}

/// Labels and clusters of equal length, some of them missing.
fn pairs() -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::vec((-1i64..6, -1i64..8), 1..120)
        .prop_filter("something must count", |pairs| pairs.iter().any(|(t, c)| *t >= 0 && *c >= 0))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_of_clusters_and_classes_do_not_matter(pairs in pairs(), a in 1i64..1000, b in 1i64..1000) {
        let (truth, clusters): (Vec<i64>, Vec<i64>) = pairs.into_iter().unzip();
        // An injective renaming that reverses the order and leaves missing values missing.
        let rename = |v: &i64, shift: i64| if *v < 0 { *v } else { (10 - v) * 7919 + shift };
        let renamed_truth: Vec<i64> = truth.iter().map(|v| rename(v, a)).collect();
        let renamed_clusters: Vec<i64> = clusters.iter().map(|v| rename(v, b)).collect();
        let (before, after) = (scores(&truth, &clusters).unwrap(), scores(&renamed_truth, &renamed_clusters).unwrap());
        prop_assert_eq!(before.acc, after.acc);
        prop_assert!((before.nmi - after.nmi).abs() < 1e-12 && (before.ari - after.ari).abs() < 1e-12);
    }

    #[test]
    fn values_stay_in_range_and_are_symmetric(pairs in pairs()) {
        let (truth, clusters): (Vec<i64>, Vec<i64>) = pairs.into_iter().unzip();
        let all = scores(&truth, &clusters).unwrap();
        prop_assert!(all.acc > 0.0 && all.acc <= 1.0);
        prop_assert!((0.0..=1.0).contains(&all.nmi));
        prop_assert!((-0.5 - 1e-12..=1.0).contains(&all.ari));
        prop_assert_eq!(all.acc, accuracy(&clusters, &truth).unwrap());
        prop_assert!((all.ari - ari(&clusters, &truth).unwrap()).abs() < 1e-12);
        let geometric = nmi(&truth, &clusters, Normalisation::Geometric).unwrap();
        prop_assert!(geometric >= all.nmi - 1e-12);
    }

    #[test]
    fn a_partition_agrees_with_itself(labels in prop::collection::vec(0i64..9, 1..80)) {
        let all = scores(&labels, &labels).unwrap();
        prop_assert!(all.acc == 1.0 && (all.nmi - 1.0).abs() < 1e-12 && (all.ari - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_diagonal_of_the_confusion_is_the_accuracy(pairs in pairs()) {
        let (truth, clusters): (Vec<i64>, Vec<i64>) = pairs.into_iter().unzip();
        let confusion = confusion(&truth, &clusters).unwrap();
        let counted: u64 = confusion.counts.sum();
        let hits: u64 = confusion
            .matched
            .iter()
            .enumerate()
            .filter_map(|(column, class)| class.map(|class| (column, class)))
            .map(|(column, class)| {
                let row = confusion.classes.iter().position(|c| *c == class).unwrap();
                confusion.counts[[row, column]]
            })
            .sum();
        prop_assert!((hits as f64 / counted as f64 - accuracy(&truth, &clusters).unwrap()).abs() < 1e-12);
        prop_assert!(!confusion.to_string().is_empty());
    }

    #[test]
    fn silhouettes_stay_in_range(points in prop::collection::vec(-5f32..5.0, 24..60), seed in any::<u64>()) {
        let n = points.len() / 2;
        let array = Array2::from_shape_vec((n, 2), points[..2 * n].to_vec()).unwrap();
        let clusters: Vec<i64> = (0..n as i64).map(|i| i % 3).collect();
        let value = silhouette(&array.view(), &clusters, 20, seed).unwrap();
        prop_assert!((-1.0..=1.0).contains(&value));
    }
}
