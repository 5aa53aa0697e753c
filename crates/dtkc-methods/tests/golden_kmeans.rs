//! k-means against scikit-learn: values of `scripts/golden/kmeans_golden.py`.
#![allow(clippy::unwrap_used)]

use dtkc_methods::kmeans::{KmeansOptions, Points, kmeans, lloyd_from};
use serde_json::Value;

const NEVER: &dyn Fn() -> bool = &|| false;

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/kmeans.json")).unwrap()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn singles(value: &Value) -> Vec<f32> {
    floats(value).iter().map(|&v| v as f32).collect()
}

#[test]
fn equal_starts_end_in_equal_clusters() {
    for (number, case) in golden()["cases"].as_array().unwrap().iter().enumerate() {
        let values = singles(&case["points"]);
        let points = Points { values: &values, width: case["width"].as_u64().unwrap() as usize };
        let (most, tolerance) = (case["most"].as_u64().unwrap() as usize, case["tolerance"].as_f64().unwrap());
        let found = lloyd_from(points, singles(&case["first"]), most, tolerance, NEVER).unwrap();
        let labels: Vec<f64> = found.labels.iter().map(|&label| f64::from(label)).collect();
        assert_eq!(labels, floats(&case["labels"]), "case {number}");
        assert_eq!(found.iterations as u64, case["iterations"].as_u64().unwrap(), "case {number}");
        let inertia = case["inertia"].as_f64().unwrap();
        assert!((found.inertia - inertia).abs() < 2e-6 * inertia, "case {number}: {} {inertia}", found.inertia);
        for (centre, expected) in found.centres.iter().zip(floats(&case["centres"])) {
            assert!((f64::from(*centre) - expected).abs() < 1e-6 * (1.0 + expected.abs()), "case {number}");
        }
    }
}

/// Inertias of `starts` starts for every seed, on the points of a case.
fn inertias(case: &Value, clusters: usize, starts: usize, seeds: u64) -> Vec<f64> {
    let values = singles(&case["points"]);
    let points = Points { values: &values, width: case["width"].as_u64().unwrap() as usize };
    let run = |seed| {
        let options = KmeansOptions { clusters, starts, iterations: 300, tolerance: 1e-4, seed };
        kmeans(points, &options, NEVER).unwrap().inertia
    };
    (0..seeds).map(run).collect()
}

#[test]
fn the_best_of_some_starts_is_as_good_as_scikit_learns() {
    let golden = golden();
    let best = floats(&golden["best"]);
    for inertia in inertias(&golden["cases"][0], best[0] as usize, 10, 5) {
        assert!(inertia < 1.01 * best[1], "{inertia} and {}", best[1]);
    }
}

/// One percent is five standard errors of the mean of 300 starts.
#[test]
fn a_single_start_is_worth_as_much_as_scikit_learns() {
    let golden = golden();
    let expected = floats(&golden["mean"]);
    let found = inertias(&golden["cases"][1], expected[0] as usize, 1, 300);
    let mean = found.iter().sum::<f64>() / found.len() as f64;
    assert!((mean - expected[1]).abs() < 0.01 * expected[1], "{mean} and {}", expected[1]);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let values: Vec<f32> = (0..6000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 16) as f32 / 65536.0).collect();
    let options = KmeansOptions { clusters: 7, starts: 2, iterations: 50, tolerance: 0.0, seed: 1 };
    let run = || kmeans(Points { values: &values, width: 3 }, &options, NEVER).unwrap();
    dtkc_ops::set_threads(1);
    let alone = run();
    for threads in [2, 3, 8] {
        dtkc_ops::set_threads(threads);
        assert_eq!(run(), alone, "{threads} threads");
    }
}
