//! What features were made of.

use std::path::PathBuf;

use dtkc_item::{ImageShape, Resize};
use dtkc_views::AugmentConfig;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;

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
    /// From the text that is kept with features.
    pub fn read(text: &str) -> Result<Self, TrainError> {
        serde_json::from_str(text).map_err(|error| {
            TrainError::Mismatch(format!(
                "the features do not say as this program expects what they were made of ({error})"
            ))
        })
    }

    /// The text that is kept with features.
    pub fn write(&self) -> Result<String, TrainError> {
        serde_json::to_string(self).map_err(|error| TrainError::Mismatch(error.to_string()))
    }
}
