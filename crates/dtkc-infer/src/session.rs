//! A loaded model that turns pixels or sequences into assignments.

use dtkc_item::{ImageShape, ItemShape, Items};
use dtkc_onnx::Largest;
use ndarray::{Array2, s};

use crate::onnxruntime::OnnxRuntime;
use crate::sequences::{Padded, groups};
use crate::{Assignments, Device, InferError, ModelFile, Runtime};

/// Bytes that the largest value inside the network may take on the CPU. More brings no speed, and a batch of photos
/// would otherwise need gigabytes.
pub(crate) const SLICE_BYTES: usize = 8 << 20;

/// Steps of a sequence at most, where nobody says otherwise: a quarter of a GiB inside the paper's network.
const MAX_STEPS: usize = 1 << 17;

/// How a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// Where.
    pub device: Device,
    /// Threads inside one run. 1 is right where several sessions run beside each other.
    pub intra_threads: usize,
    /// The most steps of a sequence: the memory of a run goes with them.
    pub max_steps: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { device: Device::Cpu, intra_threads: 1, max_steps: MAX_STEPS }
    }
}

/// A loaded model. It runs one batch at a time; workers own one each.
pub struct Session {
    /// The model's name.
    model: String,
    engine: Engine,
    size: ModelSize,
    /// Numbers that the largest value inside the network may hold.
    slice: usize,
    largest: Largest,
    /// Sequences side by side; the memory is used again.
    padded: Padded,
}

enum Engine {
    OnnxRuntime(OnnxRuntime),
    #[cfg(feature = "tract")]
    Tract(crate::tract::Tract),
}

/// The sizes of a model's input and outputs, without the batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelSize {
    pub input: ItemShape,
    pub clusters: usize,
    pub embedding: usize,
    /// Whether it tells outliers.
    pub outlier: bool,
}

impl ModelSize {
    fn of(model: &ModelFile) -> Self {
        Self {
            input: model.shape(),
            clusters: model.clusters(),
            embedding: model.embedding_size(),
            outlier: model.outlier().is_some(),
        }
    }
}

impl Session {
    /// Loads `model`. A device that is not there is an error.
    pub fn new(runtime: &Runtime, model: &ModelFile, options: &SessionOptions) -> Result<Self, InferError> {
        let size = ModelSize::of(model);
        let engine = match options.device {
            #[cfg(feature = "tract")]
            Device::Tract => Engine::Tract(crate::tract::Tract::load(model, size)?),
            _ => Engine::OnnxRuntime(OnnxRuntime::load(runtime, model, size, options)?),
        };
        let slice = match options.device {
            Device::Cuda(_) | Device::TensorRt(_) => usize::MAX,
            _ => SLICE_BYTES / size_of::<f32>(),
        };
        let (largest, padded) = (model.largest(), Padded::default());
        Ok(Self { model: model.name().to_owned(), engine, size, slice, largest, padded })
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Assigns `count` images; `pixels` holds them one after the other in the model's shape. On the CPU each image's
    /// answer is the same to the last bit whatever else is in the batch, and the memory that is needed does not grow
    /// with the batch: a large one is run in slices.
    pub fn run(&mut self, pixels: &[u8], count: usize) -> Result<Assignments, InferError> {
        let Some(shape) = self.size.input.image() else { return Err(self.other_kind()) };
        let each = shape.len();
        if count.checked_mul(each) != Some(pixels.len()) {
            return Err(InferError::Pixels { count, each, found: pixels.len() });
        }
        let slice = (self.slice / self.largest.item).max(1);
        if (1..=slice).contains(&count) {
            return self.engine.run(&Input::images(shape, pixels)).map_err(|reason| self.failed(reason));
        }
        let mut all = self.nothing_yet(count);
        for (part, start) in pixels.chunks(slice.saturating_mul(each)).zip((0..).step_by(slice)) {
            let answer = self.engine.run(&Input::images(shape, part)).map_err(|reason| self.failed(reason))?;
            let rows = start..start + answer.len();
            all.probabilities.slice_mut(s![rows.clone(), ..]).assign(&answer.probabilities);
            all.embedding.slice_mut(s![rows.clone(), ..]).assign(&answer.embedding);
            all.clusters[rows.clone()].copy_from_slice(&answer.clusters);
            if self.size.outlier {
                all.outliers[rows].copy_from_slice(&answer.outliers);
            }
        }
        Ok(all)
    }

    /// The same for items of the model's shape, whatever kind they are.
    pub fn run_items(&mut self, items: &Items) -> Result<Assignments, InferError> {
        match items {
            Items::Images { pixels, .. } => self.run(pixels, items.len()),
            Items::Sequences { dim, values, offsets } => self.run_sequences(*dim, values, offsets),
            Items::Features { .. } => Err(self.other_kind()),
        }
    }

    /// Assigns sequences of `dim` values a step, which lie one after the other; `offsets` say where each begins, and
    /// the end. They are run in groups of similar length. On the CPU a sequence's answer is the same to the last bit
    /// whatever else is in the batch, and memory goes with the longest sequence, not with the number of them.
    pub fn run_sequences(&mut self, dim: usize, values: &[f32], offsets: &[usize]) -> Result<Assignments, InferError> {
        let wanted = self.size.input.dim().ok_or_else(|| self.other_kind())?;
        let fits = offsets.first() == Some(&0)
            && offsets.windows(2).all(|pair| pair[0] < pair[1])
            && offsets.last().and_then(|end| end.checked_mul(dim)) == Some(values.len());
        if dim != wanted || !fits {
            let found = ItemShape::Sequence { dim };
            return Err(InferError::Sequences { model: self.model.clone(), found, wanted });
        }
        let mut all = self.nothing_yet(offsets.len() - 1);
        let Largest { item, step } = self.largest;
        let most = |time: usize| self.slice / time.saturating_mul(step).saturating_add(item);
        for group in groups(offsets, most) {
            self.padded.fill(&group, dim, values, offsets);
            let answer = self.engine.run(&Input::Sequences(&self.padded)).map_err(|reason| self.failed(reason))?;
            for (row, &member) in group.members.iter().enumerate() {
                all.probabilities.row_mut(member).assign(&answer.probabilities.row(row));
                all.embedding.row_mut(member).assign(&answer.embedding.row(row));
                all.clusters[member] = answer.clusters[row];
                if self.size.outlier {
                    all.outliers[member] = answer.outliers[row];
                }
            }
        }
        Ok(all)
    }

    fn nothing_yet(&self, count: usize) -> Assignments {
        Assignments {
            clusters: vec![0; count],
            probabilities: Array2::zeros((count, self.size.clusters)),
            embedding: Array2::zeros((count, self.size.embedding)),
            outliers: if self.size.outlier { vec![0.0; count] } else { Vec::new() },
        }
    }

    /// Why the model cannot be given items of the other kind.
    pub(crate) fn other_kind(&self) -> InferError {
        InferError::OtherKind { model: self.model.clone(), kind: self.size.input.kind() }
    }

    /// Why a run gave nothing, with the model's name.
    pub(crate) fn failed(&self, reason: impl Into<String>) -> InferError {
        InferError::Run { model: self.model.clone(), reason: reason.into() }
    }
}

/// What an engine runs at once.
pub(crate) enum Input<'a> {
    /// Images of the model's shape, one after the other.
    Images { shape: ImageShape, pixels: &'a [u8], count: usize },
    /// Sequences side by side.
    Sequences(&'a Padded),
}

impl<'a> Input<'a> {
    fn images(shape: ImageShape, pixels: &'a [u8]) -> Self {
        Self::Images { shape, pixels, count: pixels.len() / shape.len().max(1) }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        match self {
            Input::Images { count, .. } => *count,
            Input::Sequences(padded) => padded.lengths.len(),
        }
    }
}

impl Engine {
    fn run(&mut self, input: &Input<'_>) -> Result<Assignments, String> {
        match self {
            Engine::OnnxRuntime(engine) => engine.run(input),
            #[cfg(feature = "tract")]
            Engine::Tract(engine) => engine.run(input),
        }
    }
}

/// An output with one value for each row.
pub(crate) fn column(data: &[f32], rows: usize) -> Result<Vec<f32>, String> {
    match data.len() == rows {
        true => Ok(data.to_vec()),
        false => Err(format!("an output has {} values instead of {rows}", data.len())),
    }
}

/// Rows of an output that a model gave as one flat list.
pub(crate) fn matrix(data: &[f32], rows: usize, columns: usize) -> Result<Array2<f32>, String> {
    Array2::from_shape_vec((rows, columns), data.to_vec())
        .map_err(|_| format!("an output has {} values instead of {}", data.len(), rows * columns))
}
