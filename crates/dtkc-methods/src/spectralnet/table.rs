//! What the stages after pretraining know about all items.

use dtkc_core::{NamedArray, Values};

use crate::coder::Codes;
use crate::{LearnError, arrays};

/// Codes of all items, who is near, and what the siamese network says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Table {
    /// The codes.
    pub(super) codes: Codes,
    /// The nearest codes of every item, `[n, count]`.
    pub(super) neighbours: Vec<u32>,
    /// What the siamese network makes of the codes.
    pub(super) embedded: Codes,
}

impl Table {
    /// Number of items.
    pub(super) fn len(&self) -> usize {
        self.codes.values.len().checked_div(self.codes.width).unwrap_or(0)
    }

    pub(super) fn save(&self) -> Vec<NamedArray> {
        let floats = |name: &str, codes: &Codes| NamedArray::list(name, Values::F32(codes.values.clone()));
        vec![
            floats("codes", &self.codes),
            floats("embedded", &self.embedded),
            NamedArray::list("neighbours", Values::U32(self.neighbours.clone())),
            NamedArray::list("widths", Values::U64(vec![self.codes.width as u64, self.embedded.width as u64])),
        ]
    }

    pub(super) fn restore(saved: &[NamedArray]) -> Result<Self, LearnError> {
        let widths = arrays::u64s(saved, "widths", Some(2))?;
        let codes = |name: &str, width: u64| -> Result<Codes, LearnError> {
            Ok(Codes { values: arrays::f32s(saved, name, None)?, width: width as usize })
        };
        Ok(Self {
            codes: codes("codes", widths[0])?,
            embedded: codes("embedded", widths[1])?,
            neighbours: arrays::u32s(saved, "neighbours", None)?,
        })
    }
}
