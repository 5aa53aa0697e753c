//! A model in tract: pure Rust, no library to install, slower.

use std::sync::Arc;

use tract_onnx::prelude::*;

use crate::error::clause;
use crate::session::{ModelSize, matrix};
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
        let plan = plan(model.bytes()).map_err(load)?;
        Ok(Self { plan, size })
    }

    pub fn run(&mut self, pixels: &[u8], count: usize) -> Result<Assignments, InferError> {
        self.answer(pixels, count).map_err(|error| InferError::Run(clause(&error)))?
    }

    fn answer(&self, pixels: &[u8], count: usize) -> TractResult<Result<Assignments, InferError>> {
        let [height, width, channels] = self.size.image;
        let image = Tensor::from_shape(&[count, height, width, channels], pixels)?;
        // The outputs come in the order of the graph: cluster, probabilities, embedding.
        let outputs = self.plan.run(tvec!(image.into_tvalue()))?;
        let clusters = outputs[0].try_as_plain_ram()?.as_slice::<i64>()?.to_vec();
        let probabilities = matrix(outputs[1].try_as_plain_ram()?.as_slice::<f32>()?, count, self.size.clusters);
        let embedding = matrix(outputs[2].try_as_plain_ram()?.as_slice::<f32>()?, count, self.size.embedding);
        Ok(probabilities.and_then(|probabilities| Ok(Assignments { clusters, probabilities, embedding: embedding? })))
    }
}

fn plan(mut bytes: &[u8]) -> TractResult<Arc<TypedRunnableModel>> {
    let model = tract_onnx::onnx().model_for_read(&mut bytes)?;
    model.with_output_names(["cluster", "probabilities", "embedding"])?.into_optimized()?.into_runnable()
}
