#![allow(clippy::unwrap_used)]

use serde::Deserialize;

use super::*;

/// What NumPy computed: `scripts/golden/outliers_golden.py`.
#[derive(Deserialize)]
struct Golden {
    width: usize,
    embedding: Vec<f32>,
    clusters: Vec<usize>,
    items: u64,
    points: usize,
    knots: Vec<f64>,
    probes: Vec<Vec<f64>>,
    values: Vec<f64>,
}

fn golden() -> (Golden, Seen) {
    let golden: Golden = serde_json::from_str(include_str!("golden.json")).unwrap();
    let seen = Seen { width: golden.width, embedding: golden.embedding.clone(), clusters: golden.clusters.clone() };
    (golden, seen)
}

#[test]
fn distances_and_values_are_those_of_numpy() {
    let (golden, seen) = golden();
    let outlier = measure(&seen).unwrap();
    assert_eq!((outlier.items, outlier.points.shape[0]), (golden.items, golden.points));
    assert_eq!(outlier.knots.len(), golden.knots.len());
    for (found, expected) in outlier.knots.iter().zip(&golden.knots) {
        assert!((f64::from(*found) - expected).abs() < 1e-3 * golden.knots[32], "{found} instead of {expected}");
    }
    for (probe, expected) in golden.probes.iter().zip(&golden.values) {
        let found = outlier.evaluate(probe);
        assert!((found - expected).abs() < 2e-3, "{found} instead of {expected}");
    }
    assert!(golden.values.iter().any(|&value| value > 0.99) && golden.values.iter().any(|&value| value < 0.9));
}

#[test]
fn the_length_after_scaling_is_that_of_the_covariance() {
    // By hand: the inverse of [[4, 2], [2, 5]] is [[5, -2], [-2, 4]] / 16.
    let matrix = scaling::whitening(vec![4.0, 2.0, 2.0, 5.0], 2);
    let square = |x: f32, y: f32| (x * matrix[0] + y * matrix[2]).powi(2) + (x * matrix[1] + y * matrix[3]).powi(2);
    for (x, y) in [(1.0, 0.0), (0.0, 1.0), (2.0, -3.0)] {
        assert!((square(x, y) - (5.0 * x * x - 4.0 * x * y + 4.0 * y * y) / 16.0).abs() < 1e-6);
    }
}

/// Nothing about the items may make the file unusable: few of them, equal ones, wide ones, a cluster of one.
#[test]
fn any_items_give_distances_that_a_file_takes() {
    let (_, seen) = golden();
    let of = |width: usize, values: Vec<f32>, clusters: Vec<usize>| Seen { width, embedding: values, clusters };
    let wave = |count: usize| (0..count).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<f32>>();
    let cases = [
        of(3, wave(3), vec![0]),
        of(3, wave(27), (0..9).map(|i| i / 8 * 5).collect()),
        of(2, vec![0.5; 40], vec![1; 20]),
        of(2, [[0.0, 1.0], [1.0, 0.0]].concat().repeat(20), [0, 1].repeat(20)),
        of(700, wave(700 * 12), (0..12).map(|i| i % 3).collect()),
        of(1, wave(50).iter().map(|x| 1e15 * x).collect(), vec![0; 50]),
        of(1, wave(50).iter().map(|x| 1e-15 * x).collect(), vec![0; 50]),
    ];
    for case in cases {
        let outlier = measure(&case).unwrap();
        let rising = outlier.knots.windows(2).all(|pair| pair[0] < pair[1] && pair[1].is_finite());
        assert!(rising && outlier.knots[0] == 0.0, "{:?}", outlier.knots);
        assert!(outlier.points.data.iter().chain(&outlier.scaling.data).chain(&outlier.shift).all(|v| v.is_finite()));
        assert_eq!(outlier.scaling.shape.len(), if case.width > 512 { 1 } else { 2 });
        let far: Vec<f64> = case.row(0).iter().map(|v| f64::from(*v) + 1e18).collect();
        assert!(outlier.evaluate(&far) > 0.99);
    }
    let broken = Seen { embedding: vec![f32::NAN; 400], ..seen };
    assert!(measure(&broken).unwrap_err().to_string().contains("no number"));
}
