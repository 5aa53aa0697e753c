//! Neighbours, graph, eigenvectors and clusters against scikit-learn and SciPy: values of `scripts/golden/kmeans_golden.py`.
#![allow(clippy::unwrap_used)]

use dtkc_methods::kmeans::Points;
use dtkc_methods::nearest::Neighbours;
use dtkc_methods::spectral::{Affinity, EXACT, Graph, SpectralOptions, eigenvectors, spectral};
use serde_json::Value;

const NEVER: &dyn Fn() -> bool = &|| false;

struct Case {
    name: String,
    values: Vec<f32>,
    width: usize,
    neighbours: usize,
    clusters: usize,
    affinity: Affinity,
    golden: Value,
}

impl Case {
    fn points(&self) -> Points<'_> {
        Points { values: &self.values, width: self.width }
    }

    fn floats(&self, name: &str) -> Vec<f64> {
        self.golden[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    }

    fn options(&self, seed: u64) -> SpectralOptions {
        let &Self { clusters, neighbours, affinity, .. } = self;
        SpectralOptions { clusters, neighbours, affinity, residual: EXACT, seed }
    }

    fn neighbours(&self) -> Neighbours {
        Neighbours::find(&self.points(), self.neighbours, NEVER).unwrap()
    }
}

fn cases() -> Vec<Case> {
    let all: Value = serde_json::from_str(include_str!("golden/spectral.json")).unwrap();
    let cases = all.as_object().unwrap().iter().map(|(name, golden)| {
        let count = |key: &str| golden[key].as_u64().unwrap() as usize;
        Case {
            name: name.clone(),
            values: golden["points"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect(),
            width: count("width"),
            neighbours: count("neighbours"),
            clusters: count("clusters"),
            affinity: if golden["kernel"] == Value::Bool(true) { Affinity::Rbf } else { Affinity::Connectivity },
            golden: golden.clone(),
        }
    });
    cases.collect()
}

#[test]
fn neighbours_are_scikit_learns() {
    for case in cases() {
        let found: Vec<f64> = case.neighbours().items.iter().map(|&item| f64::from(item)).collect();
        assert_eq!(found, case.floats("indices"), "{}", case.name);
    }
}

#[test]
fn weights_are_scikit_learns() {
    for case in cases() {
        let graph = Graph::new(&case.neighbours(), case.affinity);
        for (found, expected) in graph.degrees().iter().zip(case.floats("degrees")) {
            assert!((found - expected).abs() < 1e-5, "{}: {found} {expected}", case.name);
        }
    }
}

/// Equal eigenvalues have a space and not vectors, so the products of rows are compared: no rotation changes them.
#[test]
fn eigenvectors_are_scipys() {
    for case in cases() {
        let graph = Graph::new(&case.neighbours(), case.affinity);
        let found = eigenvectors(&graph, &case.options(1), NEVER).unwrap();
        for (found, expected) in found.values.iter().zip(case.floats("eigenvalues")) {
            assert!((found - expected).abs() < 1e-6, "{}: {found} {expected}", case.name);
        }
        let (k, expected) = (case.clusters, case.floats("rows"));
        let n = graph.len();
        let product =
            |rows: &[f64], a: usize, b: usize| -> f64 { (0..k).map(|j| rows[a * k + j] * rows[b * k + j]).sum() };
        for a in 0..n {
            for b in [0, a, (a * 7 + 3) % n] {
                let (found, expected) = (product(&found.vectors, a, b), product(&expected, a, b));
                assert!((found - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{}: {found} {expected}", case.name);
            }
        }
    }
}

#[test]
fn clusters_are_scikit_learns_up_to_names() {
    for case in cases() {
        let found = spectral(&case.points(), &case.options(3), &|_| (), NEVER).unwrap();
        let mut names = std::collections::BTreeMap::new();
        for (label, expected) in found.clustering.labels.iter().zip(case.floats("labels")) {
            let name = *names.entry(*label).or_insert(expected);
            assert_eq!(name, expected, "{}", case.name);
        }
        let different: std::collections::BTreeSet<u64> = names.values().map(|&name| name as u64).collect();
        assert_eq!((names.len(), different.len()), (case.clusters, case.clusters), "{}", case.name);
    }
}
