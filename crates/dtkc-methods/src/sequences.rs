//! Items of any kind as a network takes them, and what must be known about all sequences before.

use burn::tensor::Device;
use dtkc_core::{Input, Model, Sequences, StepMoments};
use dtkc_item::Items;
use dtkc_ops::Lengths;

use crate::LearnError;
use crate::learner::Passes;
use crate::places::Pass;

/// Items as a network sees them in evaluation.
pub(crate) fn clean_input(model: &Model, items: &Items, device: &Device) -> Input {
    match items.steps() {
        Some((steps, lengths)) => {
            let dim = items.shape().dim().unwrap_or(1);
            Sequences::new(model.scaled(steps), dim, Lengths::new(&lengths), device).into()
        }
        None => model.valid_config().input(items.pixels().unwrap_or_default(), device).into(),
    }
}

/// Mean and deviation of all steps, learnt by a network that takes sequences.
pub(crate) fn learn_scaling(model: &mut Model, data: &mut dyn Passes) -> Result<(), LearnError> {
    if let Some(dim) = model.valid_config().config().input.dim() {
        model.set_scaling(&step_moments(data, dim)?);
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
