//! How every method with an autoencoder starts.

use dtkc_core::{Autoencoder, AutoencoderConfig, AutoencoderKind, ConfigError};
use dtkc_item::ItemShape;

use super::{Images, Pretraining, adopt};
use crate::kmeans::images;
use crate::learner::Stage;
use crate::vectors::Vectors;
use crate::{LearnError, Method, SettingError, Task};

/// An autoencoder before its first step.
pub(crate) struct Start {
    pub(crate) images: Images,
    pub(crate) autoencoder: Autoencoder,
    /// Values of a code.
    pub(crate) code: usize,
    /// The stage that trains it.
    pub(crate) pretraining: Stage,
}

impl Start {
    /// New weights from `seed`, or another run's autoencoder.
    pub(crate) fn new(
        method: Method,
        network: &AutoencoderConfig,
        pretraining: &Pretraining,
        task: &Task,
        seed: u64,
    ) -> Result<Self, LearnError> {
        let vectors = vectors(method, network, task.input, task.length)?;
        let device = task.device.clone().autodiff();
        let mut autoencoder = Autoencoder::init(network, vectors.shape(), &device, seed).map_err(SettingError::from)?;
        let code = network.code_width(vectors.shape()).map_err(SettingError::from)?;
        adopt(&mut autoencoder, task)?;
        let images = Images { vectors, device: task.device.clone() };
        Ok(Self { images, autoencoder, code, pretraining: pretraining.stage(task) })
    }
}

/// Refuses what an autoencoder cannot take, before any work.
pub(crate) fn check_task(
    method: Method,
    network: &AutoencoderConfig,
    input: ItemShape,
    clusters: usize,
) -> Result<(), LearnError> {
    // The number of steps that sequences are resampled to changes nothing about what works.
    let vectors = vectors(method, network, input, 0)?;
    if clusters < 2 {
        return Err(SettingError::from(ConfigError::Clusters(clusters)).into());
    }
    Ok(network.check(vectors.shape()).map_err(SettingError::from)?)
}

/// How items become what the autoencoder takes; convolutions take images only.
fn vectors(
    method: Method,
    network: &AutoencoderConfig,
    input: ItemShape,
    length: usize,
) -> Result<Vectors, LearnError> {
    if network.kind == AutoencoderKind::Convolutional {
        let method = if method == Method::Dec { Method::Dbc } else { method };
        images(method, input)?;
    }
    Ok(Vectors::of(input, length))
}
