//! A model in tract: pure Rust, no library to install, slower.

use std::sync::Arc;

use dtkc_item::{ImageShape, ItemKind};
use tract_onnx::prelude::*;

use crate::error::clause;
use crate::session::{Input, ModelSize, column, matrix};
use crate::{Assignments, InferError, ModelFile};

pub(crate) struct Tract {
    plan: Arc<TypedRunnableModel>,
    size: ModelSize,
}

impl Tract {
    pub fn load(model: &ModelFile, size: ModelSize) -> Result<Self, InferError> {
        let load = |error: TractError| InferError::Load {
            name: model.name().into(),
            runtime: "tract",
            reason: clause(&error),
        };
        // It has a GRU, but none that knows how long each sequence is.
        if size.input.kind() == ItemKind::Sequences {
            let reason = "models for sequences need ONNX Runtime, so use --device cpu".into();
            return Err(InferError::Load { name: model.name().into(), runtime: "tract", reason });
        }
        let plan = plan(model.bytes(), size.outlier).map_err(load)?;
        Ok(Self { plan, size })
    }

    pub fn run(&mut self, input: &Input<'_>) -> Result<Assignments, String> {
        let count = input.len();
        let Input::Images { shape, pixels, .. } = *input else {
            return Err("it takes no sequences".into());
        };
        let outputs = outputs(&self.plan, shape, pixels, count).map_err(failed)?;
        // In the order that the plan asks for: cluster, probabilities, embedding and, where there is one, outlier.
        let [cluster, probabilities, embedding, outlier @ ..] = outputs.as_slice() else {
            return Err("an output is missing".into());
        };
        Ok(Assignments {
            clusters: values::<i64>(cluster)?.to_vec(),
            probabilities: matrix(values(probabilities)?, count, self.size.clusters)?,
            embedding: matrix(values(embedding)?, count, self.size.embedding)?,
            outliers: match outlier.first() {
                Some(outlier) => column(values(outlier)?, count)?,
                None => Vec::new(),
            },
        })
    }
}

fn outputs(
    plan: &Arc<TypedRunnableModel>,
    shape: ImageShape,
    pixels: &[u8],
    count: usize,
) -> TractResult<TVec<TValue>> {
    let image = Tensor::from_shape(&[count, shape.height, shape.width, shape.channels], pixels)?;
    plan.run(tvec!(image.into_tvalue()))
}

fn values<T: Datum>(output: &TValue) -> Result<&[T], String> {
    output.try_as_plain_ram().and_then(|view| view.as_slice::<T>()).map_err(failed)
}

fn failed(error: TractError) -> String {
    clause(&error)
}

fn plan(mut bytes: &[u8], outlier: bool) -> TractResult<Arc<TypedRunnableModel>> {
    let model = tract_onnx::onnx().model_for_read(&mut bytes)?;
    let outlier = outlier.then_some("outlier");
    model
        .with_outputs_by_name(["cluster", "probabilities", "embedding"].into_iter().chain(outlier))?
        .into_optimized()?
        .into_runnable()
}
