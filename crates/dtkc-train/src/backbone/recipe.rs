//! What features were made of.

use std::path::PathBuf;

use dtkc_dataset::Dataset;
use dtkc_item::{ImageShape, Resize};
use dtkc_views::AugmentConfig;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;

/// The graph from pixels to the features of a dataset, as ONNX.
pub fn graph_of(features: &Dataset) -> Result<Vec<u8>, TrainError> {
    features.network()?.ok_or_else(|| without_origin(features))
}

fn without_origin(features: &Dataset) -> TrainError {
    TrainError::Mismatch(format!(
        "{} does not say which network made its features; make them with `dtkc-train features`",
        features.path().display()
    ))
}

/// What features were made of and how. Equal recipes give equal features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The dataset of the images.
    pub images: PathBuf,
    /// Its name.
    pub name: String,
    /// Its content.
    pub fingerprint: String,
    /// What its images look like.
    pub image: ImageShape,
    /// How they were brought to that size.
    pub resize: Option<Resize>,
    /// The network's file name.
    pub network: String,
    /// SHA-256 of its file.
    pub network_sha256: String,
    /// The value of the network that describes an image.
    pub layer: String,
    /// Values inside it that are kept, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taps: Vec<String>,
    /// Rows and columns that it gets.
    pub size: [usize; 2],
    /// What is taken away from pixels between 0 and 1.
    pub mean: Vec<f32>,
    /// What the rest is divided by.
    pub deviation: Vec<f32>,
    /// Random views of each image.
    pub views: usize,
    /// How those were changed.
    pub augment: AugmentConfig,
}

impl Recipe {
    /// What the features of a dataset were made of.
    pub fn of(features: &Dataset) -> Result<Self, TrainError> {
        let path = features.path().display();
        let Some(text) = features.origin() else { return Err(without_origin(features)) };
        serde_json::from_str(text).map_err(|error| {
            TrainError::Mismatch(format!(
                "{path} does not say as this program expects what its features were made of ({error})"
            ))
        })
    }

    /// The images themselves, as long as they are where they were and still the same in number and size.
    pub fn images(&self, features: &Dataset) -> Result<Dataset, TrainError> {
        let images = Dataset::open(&self.images)?;
        if images.image_shape() != Some(self.image) || images.len() != features.len() {
            return Err(TrainError::Mismatch(format!(
                "{} does not hold the images any more that the features in {} were made of",
                self.images.display(),
                features.path().display()
            )));
        }
        Ok(images)
    }

    /// The text that is kept with features.
    pub fn write(&self) -> Result<String, TrainError> {
        serde_json::to_string(self).map_err(|error| TrainError::Mismatch(error.to_string()))
    }
}
