//! Statistics over restarts: values from NumPy and SciPy (scripts/golden/statistics_golden.py).
#![allow(clippy::unwrap_used)]

use dtkc_metrics::{mean, mean_interval, sd, spearman, t_quantile};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    samples: Vec<Sample>,
    pairs: Vec<Pair>,
    quantiles: Vec<Quantile>,
}

#[derive(Deserialize)]
struct Sample {
    name: String,
    values: Vec<f64>,
    mean: f64,
    sd: f64,
    intervals: Vec<Level>,
}

#[derive(Deserialize)]
struct Level {
    level: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    a: Vec<f64>,
    b: Vec<f64>,
    spearman: f64,
}

#[derive(Deserialize)]
struct Quantile {
    p: f64,
    df: f64,
    t: f64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("statistics.json")).unwrap()
}

#[track_caller]
fn close(what: &str, found: f64, expected: f64) {
    let off = (found - expected).abs() / expected.abs().max(1e-3);
    assert!(off < 1e-9, "{what}: {found}, SciPy says {expected}");
}

#[test]
fn means_and_intervals_are_those_of_scipy() {
    for Sample { name, values, mean: expected, sd: spread, intervals } in golden().samples {
        close(&name, mean(&values).unwrap(), expected);
        close(&name, sd(&values).unwrap(), spread);
        for Level { level, low, high } in intervals {
            let found = mean_interval(&values, level).unwrap();
            close(&format!("{name} {level}"), found.low, low);
            close(&format!("{name} {level}"), found.high, high);
        }
    }
}

#[test]
fn rank_correlations_are_those_of_scipy() {
    for Pair { name, a, b, spearman: expected } in golden().pairs {
        close(&name, spearman(&a, &b).unwrap(), expected);
        close(&name, spearman(&b, &a).unwrap(), expected);
    }
}

#[test]
fn quantiles_of_student_are_those_of_scipy() {
    for Quantile { p, df, t } in golden().quantiles {
        close(&format!("p {p}, {df} degrees"), t_quantile(p, df).unwrap(), t);
    }
}
