//! A loaded model that turns pixels into assignments.

use dtkc_item::ImageShape;
use ndarray::{Array2, s};

use crate::onnxruntime::OnnxRuntime;
use crate::{Assignments, Device, InferError, ModelFile, Runtime};

/// Bytes that the largest value inside the network may take on the CPU. More brings no speed, and a batch of photos
/// would otherwise need gigabytes.
const SLICE_BYTES: usize = 8 << 20;

/// How a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// Where.
    pub device: Device,
    /// Threads inside one run. 1 is right where several sessions run beside each other.
    pub intra_threads: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { device: Device::Cpu, intra_threads: 1 }
    }
}

/// A loaded model. It runs one batch at a time; workers own one each.
pub struct Session {
    /// The model's name.
    model: String,
    engine: Engine,
    size: ModelSize,
    /// Images that are run at once.
    slice: usize,
}

enum Engine {
    OnnxRuntime(OnnxRuntime),
    #[cfg(feature = "tract")]
    Tract(crate::tract::Tract),
}

/// The sizes of a model's input and outputs, without the batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelSize {
    pub image: ImageShape,
    pub clusters: usize,
    pub embedding: usize,
}

impl Session {
    /// Loads `model`. A device that is not there is an error.
    pub fn new(runtime: &Runtime, model: &ModelFile, options: &SessionOptions) -> Result<Self, InferError> {
        let image = model.spec().shape();
        let size = ModelSize { image, clusters: model.clusters(), embedding: model.embedding_size() };
        let engine = match options.device {
            #[cfg(feature = "tract")]
            Device::Tract => Engine::Tract(crate::tract::Tract::load(model, size)?),
            _ => Engine::OnnxRuntime(OnnxRuntime::load(runtime, model, size, options)?),
        };
        let slice = match options.device {
            Device::Cuda(_) | Device::TensorRt(_) => usize::MAX,
            _ => (SLICE_BYTES / size_of::<f32>() / model.largest_value()).max(1),
        };
        Ok(Self { model: model.name().to_owned(), engine, size, slice })
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Assigns `count` images; `pixels` holds them one after the other in the model's shape. On the CPU each image's
    /// answer is the same to the last bit whatever else is in the batch, and the memory that is needed does not grow
    /// with the batch: a large one is run in slices.
    pub fn run(&mut self, pixels: &[u8], count: usize) -> Result<Assignments, InferError> {
        let each = self.size.image.len();
        if count.checked_mul(each) != Some(pixels.len()) {
            return Err(InferError::Pixels { count, each, found: pixels.len() });
        }
        if (1..=self.slice).contains(&count) {
            return self.engine.run(pixels, count).map_err(|reason| self.failed(reason));
        }
        let mut all = Assignments {
            clusters: Vec::with_capacity(count),
            probabilities: Array2::zeros((count, self.size.clusters)),
            embedding: Array2::zeros((count, self.size.embedding)),
        };
        for part in pixels.chunks(self.slice.saturating_mul(each)) {
            let answer = self.engine.run(part, part.len() / each).map_err(|reason| self.failed(reason))?;
            let rows = all.clusters.len()..all.clusters.len() + answer.len();
            all.probabilities.slice_mut(s![rows.clone(), ..]).assign(&answer.probabilities);
            all.embedding.slice_mut(s![rows, ..]).assign(&answer.embedding);
            all.clusters.extend(answer.clusters);
        }
        Ok(all)
    }

    /// Why a run gave nothing, with the model's name.
    pub(crate) fn failed(&self, reason: impl Into<String>) -> InferError {
        InferError::Run { model: self.model.clone(), reason: reason.into() }
    }
}

impl Engine {
    fn run(&mut self, pixels: &[u8], count: usize) -> Result<Assignments, String> {
        match self {
            Engine::OnnxRuntime(engine) => engine.run(pixels, count),
            #[cfg(feature = "tract")]
            Engine::Tract(engine) => engine.run(pixels, count),
        }
    }
}

/// Rows of an output that a model gave as one flat list.
pub(crate) fn matrix(data: &[f32], rows: usize, columns: usize) -> Result<Array2<f32>, String> {
    Array2::from_shape_vec((rows, columns), data.to_vec())
        .map_err(|_| format!("an output has {} values instead of {}", data.len(), rows * columns))
}
