//! Items of any kind as a network takes them, and what must be known about all sequences before.

use burn::tensor::{Device, Tensor, TensorData};
use dtkc_core::{Input, Model, Sequences, StepMoments};
use dtkc_item::{ItemShape, Items};
use dtkc_ops::Lengths;

use crate::LearnError;
use crate::features::{own_vectors, vector_moments};
use crate::learner::Passes;
use crate::places::Pass;

/// Items as a network sees them in evaluation.
pub(crate) fn clean_input(model: &Model, items: &Items, device: &Device) -> Input {
    match items {
        Items::Sequences { dim, .. } => {
            let (steps, lengths) = items.steps().unwrap_or_default();
            Sequences::new(model.scaled(steps), *dim, Lengths::new(&lengths), device).into()
        }
        Items::Images { pixels, .. } => model.valid_config().input(pixels, device).into(),
        Items::Features { .. } => feature_input(model, &own_vectors(items), device),
    }
}

/// Vectors of another network as ours takes them.
pub(crate) fn feature_input(model: &Model, vectors: &[f32], device: &Device) -> Input {
    let dim = model.valid_config().features();
    let data = TensorData::new(model.scaled(vectors), [vectors.len() / dim.max(1), dim]);
    Tensor::<2>::from_data(data, device).into()
}

/// Mean and deviation of all steps, or of all vectors, learnt by a network that takes sequences or features.
pub(crate) fn learn_scaling(model: &mut Model, data: &mut dyn Passes) -> Result<(), LearnError> {
    match model.valid_config().config().input {
        ItemShape::Image(_) => {}
        ItemShape::Sequence { dim } => {
            let moments = step_moments(data, dim)?;
            model.set_scaling(moments.means(), moments.deviations());
        }
        ItemShape::Features(shape) => {
            let (mean, deviation) = vector_moments(data, shape.dim)?;
            model.set_scaling(mean, deviation);
        }
    }
    Ok(())
}

/// Looks at the steps of all sequences, and refuses those that nothing can be learnt from.
pub(crate) fn step_moments(data: &mut dyn Passes, dim: usize) -> Result<StepMoments, LearnError> {
    let mut moments = StepMoments::new(dim);
    for batch in data.batches(Pass::Everything) {
        let batch = batch?;
        let Some((steps, lengths)) = batch.items.steps() else { continue };
        if let Some(place) = lengths.iter().position(|&length| length == 0) {
            let sequence = batch.indices[place];
            return Err(LearnError::Unsuitable(format!(
                "sequence {sequence} of the set has no steps, so nothing can be learnt from it: import the set again, which \
                 leaves such sequences out"
            )));
        }
        moments.add(steps);
        if !moments.is_finite() {
            return Err(LearnError::Unsuitable(
                "the set has values that are missing or not finite: import it again with `--missing fill` or \
                 `--missing drop`"
                    .into(),
            ));
        }
    }
    Ok(moments)
}
