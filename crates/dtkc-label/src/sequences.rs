//! What decides how sequences are read: part of a run's settings, so that `--resume`, `merge` and the page read the same.

use dtkc_formats::sequences::missing::Unfit;
use dtkc_formats::sequences::sound::{SoundKind, SoundOptions};
use dtkc_formats::sequences::table::Columns;
use dtkc_formats::{Format, Missing, ReadOptions};
use dtkc_image::Limits;
use dtkc_infer::SequenceSpec;
use serde::{Deserialize, Serialize};

use crate::error::{LabelError, Result};

/// How sequences are read, as the user says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SequenceSettings {
    /// The most steps of one.
    pub max_steps: usize,
    /// What the inputs are, where their content does not tell.
    pub format: Option<String>,
    /// Which sequence a row of a table belongs to.
    pub id_column: Option<String>,
    /// The time of a row.
    pub time_column: Option<String>,
    /// The class.
    pub label_column: Option<String>,
    /// The values.
    pub value_columns: Vec<String>,
    /// Values of a step, where one row holds all steps.
    pub dim: Option<usize>,
    /// Whether missing values are filled.
    pub fill: bool,
    /// Whether sounds become cepstral coefficients.
    pub mfcc: bool,
    /// Milliseconds of a window of a sound.
    pub window: f64,
    /// Milliseconds from one window to the next.
    pub hop: f64,
}

impl Default for SequenceSettings {
    fn default() -> Self {
        let sound = SoundOptions::default();
        Self {
            max_steps: dtkc_infer::SessionOptions::default().max_steps,
            format: None,
            id_column: None,
            time_column: None,
            label_column: None,
            value_columns: Vec::new(),
            dim: None,
            fill: false,
            mfcc: false,
            window: sound.window,
            hop: sound.hop,
        }
    }
}

/// The same for the readers, with what the model takes.
#[derive(Debug, Clone)]
pub struct SequenceOptions {
    /// Values per time step that the model takes.
    pub dim: usize,
    /// The format of all inputs, where it was named.
    pub format: Option<Format>,
    /// How they are read.
    pub read: ReadOptions,
}

impl SequenceSettings {
    /// For a model that takes such sequences.
    pub fn options(&self, dim: usize, limits: Limits) -> Result<SequenceOptions> {
        let format = self.format.as_ref().map(|format| format.parse::<Format>()).transpose();
        let columns = Columns {
            id: self.id_column.clone(),
            time: self.time_column.clone(),
            label: self.label_column.clone(),
            values: self.value_columns.clone(),
            dim: self.dim,
            image: None,
        };
        let kind = if self.mfcc { SoundKind::Mfcc } else { SoundKind::Spectrogram };
        let sound = SoundOptions { kind, window: self.window, hop: self.hop };
        // An array of three axes can only be sequences here.
        let read = ReadOptions { sequences: true, columns, sound, limits, ..ReadOptions::default() };
        Ok(SequenceOptions { dim, format: format.map_err(LabelError::Usage)?, read })
    }

    /// Makes the values of a sequence whole, where that was asked for, and says why it cannot be used otherwise.
    pub fn settle(&self, spec: &SequenceSpec, values: &mut [f32]) -> Result<(), dtkc_item::ItemError> {
        spec.check_steps(values.len() / spec.dim)?;
        match self.fill {
            true => Missing::Fill.settle(values, spec.dim).map_err(Unfit::into_error),
            false => Ok(()),
        }
    }
}
