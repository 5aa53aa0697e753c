//! How every method with an autoencoder starts.

use dtkc_core::{Autoencoder, AutoencoderConfig, ConfigError};
use dtkc_item::ItemShape;

use super::{Images, Pretraining, adopt};
use crate::kmeans::images;
use crate::learner::Stage;
use crate::{LearnError, Method, SettingError, Task};

/// An autoencoder before its first step.
pub(crate) struct Start {
    pub(crate) images: Images,
    pub(crate) autoencoder: Autoencoder,
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
        let shape = images(method, task.input)?;
        let device = task.device.clone().autodiff();
        let mut autoencoder = Autoencoder::init(network, shape, &device, seed).map_err(SettingError::from)?;
        adopt(&mut autoencoder, task)?;
        let images = Images { shape, device: task.device.clone() };
        Ok(Self { images, autoencoder, pretraining: pretraining.stage(task) })
    }
}

/// Refuses what an autoencoder cannot take, before any work.
pub(crate) fn check_task(
    method: Method,
    network: &AutoencoderConfig,
    input: ItemShape,
    clusters: usize,
) -> Result<(), LearnError> {
    let shape = images(method, input)?;
    if clusters < 2 {
        return Err(SettingError::from(ConfigError::Clusters(clusters)).into());
    }
    Ok(network.check(shape).map_err(SettingError::from)?)
}
