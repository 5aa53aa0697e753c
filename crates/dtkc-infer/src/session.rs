//! A loaded model that turns pixels into assignments.

use ndarray::Array2;

use crate::onnxruntime::OnnxRuntime;
use crate::{Assignments, Device, InferError, ModelFile, Runtime};

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
    engine: Engine,
    size: ModelSize,
}

enum Engine {
    OnnxRuntime(OnnxRuntime),
    #[cfg(feature = "tract")]
    Tract(crate::tract::Tract),
}

/// The sizes of a model's input and outputs, without the batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelSize {
    /// Height, width, channels.
    pub image: [usize; 3],
    pub clusters: usize,
    pub embedding: usize,
}

impl Session {
    /// Loads `model`. A device that is not there is an error.
    pub fn new(runtime: &Runtime, model: &ModelFile, options: &SessionOptions) -> Result<Self, InferError> {
        let shape = model.shape();
        let image = [shape.height, shape.width, shape.color.channels()];
        let size = ModelSize { image, clusters: model.clusters(), embedding: model.embedding_size() };
        #[cfg(feature = "tract")]
        if options.device == Device::Tract {
            let engine = Engine::Tract(crate::tract::Tract::load(model, size)?);
            return Ok(Self { engine, size });
        }
        let engine = Engine::OnnxRuntime(OnnxRuntime::load(runtime, model, size, options)?);
        Ok(Self { engine, size })
    }

    /// Assigns `count` images; `pixels` holds them one after the other in the model's shape. On the CPU each image's
    /// answer is the same to the last bit whatever else is in the batch.
    pub fn run(&mut self, pixels: &[u8], count: usize) -> Result<Assignments, InferError> {
        let each = self.size.image.iter().product();
        if count.checked_mul(each) != Some(pixels.len()) {
            return Err(InferError::Pixels { count, each, found: pixels.len() });
        }
        if count == 0 {
            return Ok(Assignments {
                clusters: Vec::new(),
                probabilities: Array2::zeros((0, self.size.clusters)),
                embedding: Array2::zeros((0, self.size.embedding)),
            });
        }
        match &mut self.engine {
            Engine::OnnxRuntime(engine) => engine.run(pixels, count),
            #[cfg(feature = "tract")]
            Engine::Tract(engine) => engine.run(pixels, count),
        }
    }
}

/// Rows of an output that a model gave as one flat list.
pub(crate) fn matrix(data: &[f32], rows: usize, columns: usize) -> Result<Array2<f32>, InferError> {
    Array2::from_shape_vec((rows, columns), data.to_vec())
        .map_err(|_| InferError::Run(format!("an output has {} values instead of {}", data.len(), rows * columns)))
}
