//! Autoencoders: images to codes and back.

mod config;
mod conv;
mod dense;

use burn::module::Module;
use burn::tensor::{Device, Gradients, Tensor};
use dtkc_item::ImageShape;
use dtkc_onnx::Layer;

pub use config::{AutoencoderConfig, AutoencoderKind};

use crate::model::state::{self, NamedArray, Parameters, Visit};
use crate::model::{BatchStatistics, StatisticsPass};
use crate::{ConfigError, StateError, Views};
use conv::ConvAutoencoder;
use dense::DenseAutoencoder;

/// Images to codes and back, of dense layers or of convolutions.
#[derive(Module, Debug)]
pub struct Autoencoder {
    network: Network,
}

#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // There is one of them at a time.
enum Network {
    Dense(DenseAutoencoder),
    Conv(ConvAutoencoder),
}

/// What companion objectives see of a layer or block.
#[derive(Debug, Clone)]
pub enum Tapped {
    /// The output of a dense layer: `[n, units]`.
    Vectors(Tensor<2>),
    /// The output of a block: `[n, height, width, filters]`.
    Maps(Tensor<4>),
}

impl Tapped {
    /// What it is of the first views alone.
    pub(crate) fn first(&self, views: Views) -> Self {
        match self {
            Self::Vectors(output) => Self::Vectors(views.first(output.clone())),
            Self::Maps(output) => Self::Maps(views.first(output.clone())),
        }
    }
}

/// What an encoder says about a batch.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// The output of every layer or block before the code.
    pub taps: Vec<Tapped>,
    /// What the last block gives, in a row; the codes of an autoencoder without blocks: `[n, features]`.
    pub features: Tensor<2>,
    /// The codes: `[n, code]`.
    pub code: Tensor<2>,
    /// Batch mean and variance of every batch norm where they were used.
    pub statistics: Vec<BatchStatistics>,
}

/// Which statistics batch norm uses; dense autoencoders have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norms {
    /// Those of the batch.
    Batch,
    /// The running ones: an image's code does not depend on its batch.
    Running,
}

impl Autoencoder {
    /// New weights; the same bits for the same seed on every device.
    pub fn init(
        config: &AutoencoderConfig,
        input: ImageShape,
        device: &Device,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        config.check(input)?;
        let network = match config.kind {
            AutoencoderKind::Dense => Network::Dense(DenseAutoencoder::init(config, input, device, seed)),
            AutoencoderKind::Convolutional => Network::Conv(ConvAutoencoder::init(config, input, device, seed)?),
        };
        Ok(Self { network })
    }

    /// # Shapes
    /// - x: `[n, height, width, channels]`, scaled by [`scale_images`](crate::scale_images)
    pub fn encode(&self, x: Tensor<4>, norms: Norms) -> Encoded {
        match &self.network {
            Network::Dense(network) => network.encode(x),
            Network::Conv(network) => network.encode(x, norms),
        }
    }

    /// The images that codes stand for.
    ///
    /// # Shapes
    /// - code: `[n, code]`
    /// - result: `[n, height * width * channels]`
    pub fn decode(&self, code: Tensor<2>) -> Tensor<2> {
        match &self.network {
            Network::Dense(network) => network.decode(code),
            Network::Conv(network) => network.decode(code),
        }
    }

    /// The encoder as it is now, from the image to the code, as a plain list of layers.
    pub fn frozen_encoder(&self) -> Vec<Layer> {
        match &self.network {
            Network::Dense(network) => network.frozen_encoder(),
            Network::Conv(network) => network.frozen_encoder(),
        }
    }

    /// Whether it has statistics that are learnt beside the weights.
    pub fn has_statistics(&self) -> bool {
        matches!(&self.network, Network::Conv(network) if network.has_norms())
    }

    /// Replaces the running statistics by those of a pass.
    pub fn set_statistics(&mut self, pass: &StatisticsPass) {
        if let Network::Conv(network) = &mut self.network {
            pass.apply_to(network.norms_mut());
        }
    }

    /// The gradients of the encoder's weights in a row; 0 where a loss does not depend on them.
    pub fn encoder_gradient(&self, gradients: &Gradients) -> Vec<f32> {
        state::gradient(self, |name| name.starts_with("encoder."), gradients)
    }

    /// All weights and running statistics, always in the same order.
    pub fn state(&self) -> Vec<NamedArray> {
        state::state(self)
    }

    /// Replaces them by those of [`state`](Self::state). On an error nothing is changed.
    pub fn load_state(&mut self, state: &[NamedArray]) -> Result<(), StateError> {
        state::load_state(self, state)
    }
}

impl Encoded {
    /// Adds its statistics to a pass.
    pub fn add_to(&self, pass: &mut StatisticsPass) {
        pass.add_batch(self.code.dims()[0], &self.statistics);
    }
}

impl Parameters for Autoencoder {
    fn each(&mut self, f: &mut Visit<'_>) -> Result<(), StateError> {
        match &mut self.network {
            Network::Dense(network) => network.each(f),
            Network::Conv(network) => network.each(f),
        }
    }
}

/// The mean over all values of the squared difference.
///
/// # Shapes
/// - a, b: `[n, d]`
/// - result: `[1]`
pub fn mean_square_error(a: Tensor<2>, b: Tensor<2>) -> Tensor<1> {
    (a - b).square().mean()
}
