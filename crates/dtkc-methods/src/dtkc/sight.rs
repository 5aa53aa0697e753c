//! Items as the network sees them: clean, or in pairs of views.

use burn::tensor::Device;
use dtkc_core::augment::{BatchKey, Steps};
use dtkc_core::{Augmenter, Input, Model, SequenceAugmenter, Views};
use dtkc_item::{ItemShape, Items};

use super::Settings;
use crate::SettingError;
use crate::features::{drawn_vectors, own_vectors};
use crate::sequences::{clean_input, feature_input};

/// What makes items ready for the network.
pub(super) struct Sight {
    /// Random views, where the loss compares views.
    augmenter: Option<Maker>,
}

/// What makes random views.
enum Maker {
    Images(Augmenter),
    Sequences(SequenceAugmenter),
    /// Views of features were made with them.
    Features,
}

impl Sight {
    /// Checks the settings of the views.
    pub(super) fn new(settings: &Settings, model: &Model) -> Result<Self, SettingError> {
        let valid = model.valid_config();
        let maker = match valid.config().input {
            ItemShape::Image(_) => Maker::Images(Augmenter::new(&settings.augment, valid.seen())?),
            ItemShape::Sequence { dim } => Maker::Sequences(SequenceAugmenter::new(&settings.sequence_views, dim)?),
            ItemShape::Features(_) => Maker::Features,
        };
        Ok(Self { augmenter: settings.paired().then_some(maker) })
    }

    /// Items as the network sees them in evaluation.
    pub(super) fn clean(&self, model: &Model, items: &Items, device: &Device) -> Input {
        clean_input(model, items, device)
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
            Some(Maker::Features) => {
                let mut vectors = own_vectors(items);
                vectors.extend(drawn_vectors(partners.unwrap_or(items), key));
                feature_input(model, &vectors, device)
            }
        };
        (pairs, Views::Paired)
    }
}
