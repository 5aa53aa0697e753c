//! A model in ONNX Runtime.

use dtkc_item::ImageShape;
use ort::ep::{CUDA, ExecutionProviderDispatch, TensorRT};
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::{DynValue, PrimitiveTensorElementType, TensorRef};

use crate::error::clause;
use crate::sequences::Padded;
use crate::session::{Input, ModelSize, column, matrix};
use crate::{Assignments, Device, InferError, ModelFile, Runtime, SessionOptions};

pub(crate) struct OnnxRuntime {
    session: ort::session::Session,
    size: ModelSize,
}

impl OnnxRuntime {
    pub fn load(
        runtime: &Runtime,
        model: &ModelFile,
        size: ModelSize,
        options: &SessionOptions,
    ) -> Result<Self, InferError> {
        Ok(Self { session: open(runtime, model.name(), model.bytes(), options)?, size })
    }

    pub fn run(&mut self, input: &Input<'_>) -> Result<Assignments, String> {
        let failed = |error: ort::Error| clause(&error);
        let count = input.len();
        let outputs = match *input {
            Input::Images { shape: ImageShape { height, width, channels }, pixels, .. } => {
                let image = TensorRef::from_array_view(([count, height, width, channels], pixels)).map_err(failed)?;
                self.session.run(ort::inputs!["image" => image])
            }
            Input::Sequences(Padded { values, lengths, time, dim }) => {
                let values = TensorRef::from_array_view(([count, *time, *dim], values.as_slice())).map_err(failed)?;
                let lengths = TensorRef::from_array_view(([count], lengths.as_slice())).map_err(failed)?;
                self.session.run(ort::inputs!["values" => values, "lengths" => lengths])
            }
        };
        let outputs = outputs.map_err(failed)?;
        let clusters = values::<i64>(outputs.get("cluster"))?.to_vec();
        if clusters.len() != count {
            return Err(format!("{} clusters came back for {count} items", clusters.len()));
        }
        Ok(Assignments {
            clusters,
            probabilities: matrix(values(outputs.get("probabilities"))?, count, self.size.clusters)?,
            embedding: matrix(values(outputs.get("embedding"))?, count, self.size.embedding)?,
            outliers: match self.size.outlier {
                true => column(values(outputs.get("outlier"))?, count)?,
                false => Vec::new(),
            },
        })
    }
}

/// Loads a graph. `name` is what messages call it.
pub(crate) fn open(
    runtime: &Runtime,
    name: &str,
    graph: &[u8],
    options: &SessionOptions,
) -> Result<ort::session::Session, InferError> {
    let load = |reason: String| InferError::Load { name: name.into(), runtime: "ONNX Runtime", reason };
    let Some(environment) = runtime.environment() else {
        return Err(load("the runtime is for another device".into()));
    };
    let builder = ort::session::Session::builder(environment).map_err(|error| load(clause(&error)))?;
    let builder = configure(builder, options).map_err(|error| load(clause(&error)))?;
    let mut builder = add_device(builder, options.device)?;
    builder.commit_from_memory(graph).map_err(|error| match options.device {
        Device::Cpu => load(clause(&error)),
        device => InferError::Device { device: device.to_string(), reason: clause(&error) },
    })
}

fn configure(builder: SessionBuilder, options: &SessionOptions) -> ort::Result<SessionBuilder> {
    let builder = builder
        // Below this level batches of one and of many, or one thread and two, can differ in the last bits.
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_intra_threads(options.intra_threads.max(1))?
        .with_inter_threads(1)?
        // A spinning thread takes the processor from the decoders.
        .with_intra_op_spinning(false)?
        // Batches vary in size, and a pattern is kept for every size.
        .with_memory_pattern(false)?;
    Ok(builder)
}

fn add_device(builder: SessionBuilder, device: Device) -> Result<SessionBuilder, InferError> {
    let cuda = |number: u16| CUDA::default().with_device_id(i32::from(number)).build().error_on_failure();
    let providers: Vec<ExecutionProviderDispatch> = match device {
        Device::Cuda(number) => vec![cuda(number)],
        // What TensorRT does not take runs on the same GPU.
        Device::TensorRt(number) => {
            vec![TensorRT::default().with_device_id(i32::from(number)).build().error_on_failure(), cuda(number)]
        }
        _ => return Ok(builder),
    };
    let failed =
        |error: &dyn std::error::Error| InferError::Device { device: device.to_string(), reason: clause(error) };
    // With the fallback disabled the runtime refuses a model rather than run parts of it on the processor.
    let builder = builder.with_disable_cpu_fallback().map_err(|error| failed(&error))?;
    builder.with_execution_providers(providers).map_err(|error| failed(&error))
}

fn values<T: PrimitiveTensorElementType>(value: Option<&DynValue>) -> Result<&[T], String> {
    let value = value.ok_or("an output is missing")?;
    Ok(value.try_extract_tensor::<T>().map_err(|error| clause(&error))?.1)
}
