//! What the columns of the output are, and what the clusters are called.

use serde::{Deserialize, Serialize};

use crate::row::Label;

/// The name that rows below `--min-confidence` get.
pub const UNSURE: &str = "unsure";

/// What a reader or writer of rows must know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The clusters' names, by id.
    pub names: Vec<String>,
    /// Rows below it are called unsure.
    pub min_confidence: Option<f32>,
    /// Whether every probability is a column.
    pub probabilities: bool,
    /// Columns of the embedding; 0 for none.
    pub embedding: usize,
    /// Whether there is a column for the known class.
    pub truth: bool,
    /// Rows above it are unlike anything in the training set; there is a column for that where the model tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlier: Option<f32>,
}

impl Layout {
    /// Number of clusters.
    pub fn clusters(&self) -> usize {
        self.names.len()
    }

    /// Columns of the probabilities; 0 for none.
    pub fn probability_columns(&self) -> usize {
        if self.probabilities { self.clusters() } else { 0 }
    }

    /// True where the confidence is below the asked minimum.
    pub fn is_unsure(&self, label: &Label) -> bool {
        self.min_confidence.is_some_and(|minimum| label.confidence < minimum)
    }

    /// True where an item is unlike anything in the training set.
    pub fn is_outlier(&self, label: &Label) -> bool {
        matches!((self.outlier, label.outlier), (Some(threshold), Some(value)) if value > threshold)
    }

    /// The name of a row's cluster, or that it is unsure.
    pub fn name(&self, label: &Label) -> &str {
        match self.is_unsure(label) {
            true => UNSURE,
            false => self.names.get(label.cluster as usize).map_or("", String::as_str),
        }
    }
}
