//! A model loaded into ONNX Runtime.

use ndarray::Array2;
use ort::ep::{CUDA, ExecutionProviderDispatch, TensorRT};
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::{DynValue, PrimitiveTensorElementType, TensorRef};

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
    inner: ort::session::Session,
    each: usize,
    dims: [usize; 3],
    clusters: usize,
    embedding: usize,
}

impl Session {
    /// Loads `model`. A device that is not there is an error.
    pub fn new(runtime: &Runtime, model: &ModelFile, options: &SessionOptions) -> Result<Self, InferError> {
        let Some(environment) = runtime.environment() else {
            return Err(InferError::Run("this needs ONNX Runtime".into()));
        };
        let load = |reason: String| InferError::Load { name: model.name().into(), reason };
        let builder = ort::session::Session::builder(environment).map_err(|error| load(error.to_string()))?;
        let builder = configure(builder, options).map_err(|error| load(error.to_string()))?;
        let mut builder = add_device(builder, options.device)?;
        let inner = builder.commit_from_memory(model.bytes()).map_err(|error| load(error.to_string()))?;
        let shape = model.shape();
        Ok(Self {
            inner,
            each: shape.bytes(),
            dims: [shape.height, shape.width, shape.color.channels()],
            clusters: model.clusters(),
            embedding: model.embedding_size(),
        })
    }

    /// Assigns `count` images; `pixels` holds them one after the other in the model's shape. Each image's answer is
    /// the same whatever else is in the batch.
    pub fn run(&mut self, pixels: &[u8], count: usize) -> Result<Assignments, InferError> {
        if count.checked_mul(self.each) != Some(pixels.len()) {
            return Err(InferError::Pixels { count, each: self.each, found: pixels.len() });
        }
        if count == 0 {
            return Ok(Assignments {
                clusters: Vec::new(),
                probabilities: Array2::zeros((0, self.clusters)),
                embedding: Array2::zeros((0, self.embedding)),
            });
        }
        let failed = |error: ort::Error| InferError::Run(error.to_string());
        let [height, width, channels] = self.dims;
        let image = TensorRef::from_array_view(([count, height, width, channels], pixels)).map_err(failed)?;
        let outputs = self.inner.run(ort::inputs!["image" => image]).map_err(failed)?;
        Ok(Assignments {
            clusters: values(outputs.get("cluster"), count)?,
            probabilities: matrix(outputs.get("probabilities"), count, self.clusters)?,
            embedding: matrix(outputs.get("embedding"), count, self.embedding)?,
        })
    }
}

fn configure(builder: SessionBuilder, options: &SessionOptions) -> Result<SessionBuilder, ort::Error<SessionBuilder>> {
    builder
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_intra_threads(options.intra_threads.max(1))?
        .with_inter_threads(1)?
        // A spinning thread takes the processor from the decoders.
        .with_intra_op_spinning(false)?
        // Batches vary in size, and a pattern is kept for every size.
        .with_memory_pattern(false)
}

fn add_device(builder: SessionBuilder, device: Device) -> Result<SessionBuilder, InferError> {
    let cuda = |number: u16| CUDA::default().with_device_id(i32::from(number)).build().error_on_failure();
    let providers: Vec<ExecutionProviderDispatch> = match device {
        Device::Cpu => return Ok(builder),
        Device::Cuda(number) => vec![cuda(number)],
        // What TensorRT does not take runs on the same GPU.
        Device::TensorRt(number) => {
            vec![TensorRT::default().with_device_id(i32::from(number)).build().error_on_failure(), cuda(number)]
        }
        #[cfg(feature = "tract")]
        Device::Tract => return Ok(builder),
    };
    let failed = |reason: String| InferError::Device { device: device.to_string(), reason };
    // With the fallback disabled the runtime refuses a model rather than run parts of it on the processor.
    let builder = builder.with_disable_cpu_fallback().map_err(|error| failed(error.to_string()))?;
    builder.with_execution_providers(providers).map_err(|error| failed(error.to_string()))
}

fn values<T: PrimitiveTensorElementType + Clone>(
    value: Option<&DynValue>,
    expected: usize,
) -> Result<Vec<T>, InferError> {
    let value = value.ok_or_else(|| InferError::Run("an output is missing".into()))?;
    let (_, data) = value.try_extract_tensor::<T>().map_err(|error| InferError::Run(error.to_string()))?;
    if data.len() != expected {
        return Err(InferError::Run(format!("an output has {} values instead of {expected}", data.len())));
    }
    Ok(data.to_vec())
}

fn matrix(value: Option<&DynValue>, rows: usize, columns: usize) -> Result<Array2<f32>, InferError> {
    let data = values::<f32>(value, rows * columns)?;
    Array2::from_shape_vec((rows, columns), data).map_err(|error| InferError::Run(error.to_string()))
}
