//! A model file and the threads that run it.

use std::path::PathBuf;
use std::sync::Mutex;

use dtkc_image::Limits;
use dtkc_infer::{Assignments, Device, InferError, ModelFile, Prepared, Runtime, SessionOptions, Worker};
use dtkc_item::{ItemError, ItemShape};
use ndarray::{Array2, s};
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray4};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use serde_json::json;

use crate::error::raised;
use crate::images::{Failures, thread_count};
use crate::item::{Given, Item, column, pixels, sequences};
use crate::threads::share;

/// A path, the name of a bundled model, or a model file's content.
#[derive(FromPyObject)]
enum Source {
    Bytes(PyBackedBytes),
    Path(PathBuf),
}

/// A model file, ready to assign items. Answers do not depend on the threads nor on what else is assigned.
#[pyclass(frozen, module = "dtkc._dtkc")]
pub struct Model {
    file: ModelFile,
    runtime: Runtime,
    options: SessionOptions,
    limits: Limits,
    threads: usize,
    /// Loaded once, used by whoever comes next; two callers at a time have workers of their own.
    idle: Mutex<Vec<Worker>>,
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (source, threads = 0, device = "cpu", onnxruntime = None, name = "model"))]
    fn new(
        py: Python<'_>,
        source: Source,
        threads: usize,
        device: &str,
        onnxruntime: Option<PathBuf>,
        name: &str,
    ) -> PyResult<Self> {
        let device: Device = device.parse().map_err(raised)?;
        let options = SessionOptions { device, ..SessionOptions::default() };
        let (file, runtime, worker) = py
            .detach(|| {
                let file = match source {
                    Source::Bytes(bytes) => ModelFile::from_bytes(name, bytes.to_vec())?,
                    Source::Path(path) => ModelFile::open(path)?,
                };
                let runtime = Runtime::for_device(device, onnxruntime.as_deref())?;
                // What cannot run is known at once, not at the first image.
                let worker = Worker::new(&runtime, &file, &options, Limits::default())?;
                Ok::<_, InferError>((file, runtime, worker))
            })
            .map_err(raised)?;
        let (limits, threads) = (Limits::default(), thread_count(threads));
        Ok(Self { file, runtime, options, limits, threads, idle: Mutex::new(vec![worker]) })
    }

    /// The file's name without its ending.
    #[getter]
    fn name(&self) -> &str {
        self.file.name()
    }

    /// SHA-256 of the file.
    #[getter]
    fn fingerprint(&self) -> String {
        self.file.fingerprint()
    }

    /// The file itself.
    fn content<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.file.bytes())
    }

    /// What the file says about itself, as JSON.
    fn about(&self) -> String {
        let metadata = self.file.metadata();
        let input = match self.file.shape() {
            ItemShape::Sequence { dim } => json!({"kind": "sequences", "dim": dim}),
            _ => json!({"kind": "images", "image": metadata.input}),
        };
        let clusters: Vec<_> = (0..metadata.k())
            .map(|id| {
                let size = metadata.clusters[id].size;
                json!({"id": id, "name": metadata.cluster_name(id), "size": size, "share": metadata.cluster_share(id)})
            })
            .collect();
        json!({
            "input": input,
            "clusters": clusters,
            "embedding_size": metadata.embedding_size,
            "provenance": metadata.provenance,
            "metrics": metadata.metrics,
            "parity": metadata.parity,
            "outlier": metadata.outlier,
            "edits": metadata.edits,
        })
        .to_string()
    }

    /// Image files, by content or path.
    #[pyo3(signature = (files, wanted = (true, true)))]
    fn files<'py>(
        &self,
        py: Python<'py>,
        files: Vec<Given>,
        wanted: Wanted,
    ) -> PyResult<(Bound<'py, PyDict>, Failures)> {
        self.assign(py, &files.iter().map(Given::item).collect::<Vec<_>>(), wanted)
    }

    /// Image files in a column of a table.
    #[pyo3(signature = (data, offsets, missing = None, wanted = (true, true)))]
    fn column<'py>(
        &self,
        py: Python<'py>,
        data: PyReadonlyArray1<'py, u8>,
        offsets: PyReadonlyArray1<'py, i64>,
        missing: Option<PyReadonlyArray1<'py, bool>>,
        wanted: Wanted,
    ) -> PyResult<(Bound<'py, PyDict>, Failures)> {
        self.assign(py, &column(&data, &offsets, missing.as_ref())?, wanted)
    }

    /// Pixels `[n, h, w, c]` of any size.
    #[pyo3(signature = (images, wanted = (true, true)))]
    fn pixels<'py>(
        &self,
        py: Python<'py>,
        images: PyReadonlyArray4<'py, u8>,
        wanted: Wanted,
    ) -> PyResult<(Bound<'py, PyDict>, Failures)> {
        self.assign(py, &pixels(&images)?, wanted)
    }

    /// Sequences one after the other.
    #[pyo3(signature = (values, offsets, wanted = (true, true)))]
    fn sequences<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray2<'py, f32>,
        offsets: PyReadonlyArray1<'py, i64>,
        wanted: Wanted,
    ) -> PyResult<(Bound<'py, PyDict>, Failures)> {
        self.assign(py, &sequences(&values, &offsets)?, wanted)
    }
}

/// Whether embeddings and probabilities are wanted.
type Wanted = (bool, bool);

/// What a thread gives back for its piece: the answers, and for each item its row or why it has none.
type Piece = Result<(Assignments, Vec<Result<usize, ItemError>>), InferError>;

impl Model {
    fn assign<'py>(
        &self,
        py: Python<'py>,
        items: &[Item<'_>],
        wanted: Wanted,
    ) -> PyResult<(Bound<'py, PyDict>, Failures)> {
        let mut table = Table::new(&self.file, items.len(), wanted);
        let mut workers = self.workers(items.len())?;
        let shape = self.file.shape();
        let shared = share(
            py,
            items.len(),
            &mut workers,
            |worker, piece| -> Piece {
                let mut batch = Prepared::new(shape);
                worker.prepare(&items[piece], &mut batch);
                let assignments = worker.run(&batch)?;
                Ok((assignments, batch.rows))
            },
            |piece, result| {
                let (assignments, rows) = result.map_err(raised)?;
                table.put(piece.start, &assignments, rows);
                Ok(())
            },
        );
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).append(&mut workers);
        shared?;
        table.finish(py)
    }

    /// Workers for so many items: those that are idle, and new ones where they are too few.
    fn workers(&self, items: usize) -> PyResult<Vec<Worker>> {
        let wanted = self.threads.min(items.div_ceil(8)).max(1);
        let mut idle = self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let kept = idle.len().saturating_sub(wanted);
        let mut workers = idle.split_off(kept);
        drop(idle);
        while workers.len() < wanted {
            workers.push(Worker::new(&self.runtime, &self.file, &self.options, self.limits).map_err(raised)?);
        }
        Ok(workers)
    }
}

/// The answers for all items, in their order; -1 and NaN where there is none.
struct Table {
    clusters: Vec<i64>,
    confidence: Vec<f32>,
    second: Vec<i64>,
    second_confidence: Vec<f32>,
    margin: Vec<f32>,
    outlier: Option<Vec<f32>>,
    embedding: Option<Array2<f32>>,
    probabilities: Option<Array2<f32>>,
    failures: Failures,
}

impl Table {
    fn new(model: &ModelFile, items: usize, (embedding, probabilities): Wanted) -> Self {
        let matrix = |wanted: bool, width: usize| wanted.then(|| Array2::from_elem((items, width), f32::NAN));
        Self {
            clusters: vec![-1; items],
            confidence: vec![f32::NAN; items],
            second: vec![-1; items],
            second_confidence: vec![f32::NAN; items],
            margin: vec![f32::NAN; items],
            outlier: model.outlier().map(|_| vec![f32::NAN; items]),
            embedding: matrix(embedding, model.embedding_size()),
            probabilities: matrix(probabilities, model.clusters()),
            failures: Failures::new(),
        }
    }

    fn put(&mut self, start: usize, answers: &Assignments, rows: Vec<Result<usize, ItemError>>) {
        for (place, row) in (start..).zip(rows) {
            let row = match row {
                Ok(row) => row,
                Err(error) => {
                    self.failures.push((place, error.code.to_string(), error.message.to_string()));
                    continue;
                }
            };
            let Some(answer) = answers.get(row) else { continue };
            self.clusters[place] = answers.clusters[row];
            self.confidence[place] = answer.confidence;
            self.second[place] = answer.second as i64;
            self.second_confidence[place] = answer.second_confidence;
            self.margin[place] = answer.margin;
            if let (Some(all), Some(outlier)) = (&mut self.outlier, answer.outlier) {
                all[place] = outlier;
            }
            if let Some(all) = &mut self.embedding {
                all.slice_mut(s![place, ..]).assign(&answers.embedding.row(row));
            }
            if let Some(all) = &mut self.probabilities {
                all.slice_mut(s![place, ..]).assign(&answers.probabilities.row(row));
            }
        }
    }

    fn finish(mut self, py: Python<'_>) -> PyResult<(Bound<'_, PyDict>, Failures)> {
        self.failures.sort();
        let answers = PyDict::new(py);
        answers.set_item("cluster", self.clusters.into_pyarray(py))?;
        answers.set_item("confidence", self.confidence.into_pyarray(py))?;
        answers.set_item("second", self.second.into_pyarray(py))?;
        answers.set_item("second_confidence", self.second_confidence.into_pyarray(py))?;
        answers.set_item("margin", self.margin.into_pyarray(py))?;
        answers.set_item("outlier", self.outlier.map(|values| values.into_pyarray(py)))?;
        answers.set_item("embedding", self.embedding.map(|values| values.into_pyarray(py)))?;
        answers.set_item("probabilities", self.probabilities.map(|values| values.into_pyarray(py)))?;
        Ok((answers, self.failures))
    }
}

/// The names of the models that come with the package.
#[pyfunction]
pub fn bundled() -> Vec<String> {
    ModelFile::bundled()
}
