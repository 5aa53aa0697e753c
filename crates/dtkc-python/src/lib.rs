//! The compiled half of the Python package `dtkc`: models, datasets and metrics.
//!
//! What Python code can do as well (arguments, arrays of other types, progress, the estimator, tables of Arrow) it does, in `python/dtkc`; here is what
//! must be fast or must be the same bits as in the programs. Training is not in it: the package runs the program `dtkc-train`.
//!
//! - `Model`: a model file and threads that assign items; the interpreter is free meanwhile, and Ctrl-C is heard.
//! - `Images`: images of any kind to pixels of one size, by the same code.
//! - `Shard`: the images of a Parquet file or a tar, some at a time.
//! - `Dataset`, `Writer`: the dataset file.
//! - `accuracy`, `nmi`, `ari`, `scores`, `silhouette`, `matching`.

mod dataset;
mod error;
mod images;
mod item;
mod metrics;
mod model;
mod shard;
mod threads;

use pyo3::pymodule;

/// The compiled half of `dtkc`.
#[pymodule]
mod _dtkc {
    #[pymodule_export]
    use super::dataset::{Dataset, Writer};
    #[pymodule_export]
    use super::error::Error;
    #[pymodule_export]
    use super::images::Images;
    #[pymodule_export]
    use super::metrics::{accuracy, ari, matching, nmi, scores, silhouette};
    #[pymodule_export]
    use super::model::{Model, bundled};
    #[pymodule_export]
    use super::shard::Shard;
}
