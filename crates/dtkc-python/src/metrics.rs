//! How well clusters agree with labels, and with themselves.

use dtkc_metrics::Normalisation;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::raised;

type Labels<'py> = PyReadonlyArray1<'py, i64>;

fn list(labels: &Labels<'_>) -> Vec<i64> {
    labels.as_array().to_vec()
}

/// Part of the items that are right when every cluster stands for the class that suits all of them best.
#[pyfunction]
pub fn accuracy(truth: Labels<'_>, clusters: Labels<'_>) -> PyResult<f64> {
    dtkc_metrics::accuracy(&list(&truth), &list(&clusters)).map_err(raised)
}

/// Normalised mutual information, by the mean of the entropies or by its root ("geometric").
#[pyfunction]
pub fn nmi(truth: Labels<'_>, clusters: Labels<'_>, normalisation: &str) -> PyResult<f64> {
    let normalisation = match normalisation {
        "arithmetic" => Normalisation::Arithmetic,
        "geometric" => Normalisation::Geometric,
        other => return Err(raised(format!("'{other}' is no normalisation; there are arithmetic and geometric"))),
    };
    dtkc_metrics::nmi(&list(&truth), &list(&clusters), normalisation).map_err(raised)
}

/// The adjusted Rand index.
#[pyfunction]
pub fn ari(truth: Labels<'_>, clusters: Labels<'_>) -> PyResult<f64> {
    dtkc_metrics::ari(&list(&truth), &list(&clusters)).map_err(raised)
}

/// ACC, NMI, ARI and how many items were counted.
#[pyfunction]
pub fn scores<'py>(py: Python<'py>, truth: Labels<'_>, clusters: Labels<'_>) -> PyResult<Bound<'py, PyDict>> {
    let found = dtkc_metrics::scores(&list(&truth), &list(&clusters)).map_err(raised)?;
    let scores = PyDict::new(py);
    scores.set_item("acc", found.acc)?;
    scores.set_item("nmi", found.nmi)?;
    scores.set_item("ari", found.ari)?;
    scores.set_item("counted", found.counted)?;
    Ok(scores)
}

/// Mean silhouette of an embedding, of at most `max_samples` items.
#[pyfunction]
pub fn silhouette(
    py: Python<'_>,
    embedding: PyReadonlyArray2<'_, f32>,
    clusters: Labels<'_>,
    max_samples: usize,
    seed: u64,
) -> PyResult<f64> {
    let (embedding, clusters) = (embedding.as_array(), list(&clusters));
    py.detach(|| dtkc_metrics::silhouette(&embedding, &clusters, max_samples, seed)).map_err(raised)
}

/// Which cluster stands for which class: pairs of cluster and class.
#[pyfunction]
pub fn matching(truth: Labels<'_>, clusters: Labels<'_>) -> PyResult<Vec<(i64, i64)>> {
    dtkc_metrics::matching(&list(&truth), &list(&clusters)).map_err(raised)
}
