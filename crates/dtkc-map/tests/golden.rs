//! Against NumPy: scripts/golden/report_golden.py made the values.
#![allow(clippy::unwrap_used)]

use dtkc_map::{Gap, Pca};
use serde_json::Value;

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn near(found: &[f64], expected: &Value, within: f64) {
    let expected = floats(expected);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() <= within * expected.abs().max(1.0), "{found} for {expected}");
    }
}

#[test]
fn axes_and_gaps_are_those_of_numpy() {
    let golden: Value = serde_json::from_str(include_str!("golden.json")).unwrap();
    let values: Vec<f32> = floats(&golden["values"]).into_iter().map(|v| v as f32).collect();
    let width = golden["width"].as_u64().unwrap() as usize;
    let pca = Pca::of(&values, width, 3);
    near(&pca.variances, &golden["variances"], 1e-6);
    near(&pca.axes, &golden["axes"], 1e-6);
    near(&pca.mean, &golden["mean"], 1e-6);
    near(&[pca.total], &serde_json::json!([golden["total"]]), 1e-6);
    let group = |name: &str| floats(&golden[name]).into_iter().map(|v| v as u32).collect::<Vec<_>>();
    let gap = Gap::between(&values, width, &group("first"), &group("second")).unwrap();
    near(&[gap.width], &serde_json::json!([golden["gap"]]), 1e-6);
    let all = |bars: &[u32]| bars.iter().sum::<u32>();
    assert_eq!((all(&gap.first), all(&gap.second)), (50, 70));
}
