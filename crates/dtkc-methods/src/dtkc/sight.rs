//! Items as the network sees them: clean, or in pairs of views.

use burn::tensor::Device;
use dtkc_core::augment::{BatchKey, Steps};
use dtkc_core::{Augmenter, Input, Model, SequenceAugmenter, Sequences, StepMoments, Views};
use dtkc_item::{ItemShape, Items};
use dtkc_ops::Lengths;

use super::Settings;
use crate::learner::Passes;
use crate::places::Pass;
use crate::{LearnError, SettingError};

/// What makes items ready for the network.
pub(super) struct Sight {
    /// Random views, where the loss compares views.
    augmenter: Option<Maker>,
}

/// What makes random views.
enum Maker {
    Images(Augmenter),
    Sequences(SequenceAugmenter),
}

impl Sight {
    /// Checks the settings of the views.
    pub(super) fn new(settings: &Settings, model: &Model) -> Result<Self, SettingError> {
        let valid = model.valid_config();
        let maker = match valid.config().input {
            ItemShape::Image(_) => Maker::Images(Augmenter::new(&settings.augment, valid.seen())?),
            ItemShape::Sequence { dim } => Maker::Sequences(SequenceAugmenter::new(&settings.sequence_views, dim)?),
        };
        Ok(Self { augmenter: settings.paired().then_some(maker) })
    }

    /// Items as the network sees them in evaluation.
    pub(super) fn clean(&self, model: &Model, items: &Items, device: &Device) -> Input {
        match items.steps() {
            Some((steps, lengths)) => {
                let dim = items.shape().dim().unwrap_or(1);
                Sequences::new(model.scaled(steps), dim, Lengths::new(&lengths), device).into()
            }
            None => model.valid_config().input(items.pixels().unwrap_or_default(), device).into(),
        }
    }

    /// Items as the loss wants them: single, or paired with a second view of themselves or of the partners.
    pub(super) fn views(
        &self,
        model: &Model,
        (items, partners): (&Items, Option<&Items>),
        key: BatchKey,
        device: &Device,
    ) -> (Input, Views) {
        let pairs = match &self.augmenter {
            None => return (self.clean(model, items, device), Views::Single),
            Some(Maker::Images(augmenter)) => {
                let values = |items: &Items| model.valid_config().input_values(items.pixels().unwrap_or_default());
                match partners {
                    Some(partners) => augmenter.pairs_with(values(items), &values(partners), key, device).into(),
                    None => augmenter.pairs(values(items), key, device).into(),
                }
            }
            Some(Maker::Sequences(augmenter)) => {
                let scaled = |items: &Items| {
                    let (steps, lengths) = items.steps().unwrap_or_default();
                    Steps { values: model.scaled(steps), lengths }
                };
                let partners = partners.map(scaled);
                augmenter.pairs(scaled(items), partners.as_ref(), key, device).into()
            }
        };
        (pairs, Views::Paired)
    }
}

/// Mean and deviation of all steps, learnt by the model; refuses sequences that no network can take.
pub(super) fn learn_scaling(model: &mut Model, data: &mut dyn Passes) -> Result<(), LearnError> {
    let Some(dim) = model.valid_config().config().input.dim() else { return Ok(()) };
    let mut moments = StepMoments::new(dim);
    for batch in data.batches(Pass::Everything) {
        let batch = batch?;
        let Some((steps, lengths)) = batch.items.steps() else { continue };
        if let Some(place) = lengths.iter().position(|&length| length == 0) {
            let text = format!(
                "sequence {} of the set has no steps, so nothing can be learnt from it: import the set again, which leaves such sequences out",
                batch.indices[place]
            );
            return Err(LearnError::Unsuitable(text));
        }
        moments.add(steps);
        if !moments.is_finite() {
            let text = "the set has values that are missing or not finite: import it again with `--missing fill` or `--missing drop`";
            return Err(LearnError::Unsuitable(text.into()));
        }
    }
    model.set_scaling(&moments);
    Ok(())
}
