//! The configuration of an autoencoder and its check.

use dtkc_item::ImageShape;
use serde::{Deserialize, Serialize};

use crate::config::{BlockConfig, NetworkConfig, Padding};
use crate::{ConfigError, ModelConfig};

/// What an autoencoder is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoencoderKind {
    /// Dense layers.
    #[default]
    Dense,
    /// Convolution blocks, and a last convolution that covers all that is left of the image (none where the code has 0 values).
    Convolutional,
}

/// Images to codes and back: the encoder; the decoder mirrors it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoencoderConfig {
    /// What it is made of: `dense` or `convolutional`.
    pub kind: AutoencoderKind,
    /// Units of the hidden layers of a dense one.
    pub hidden: Vec<usize>,
    /// The blocks of a convolutional one.
    pub blocks: Vec<BlockConfig>,
    /// Padding of its convolutions.
    pub padding: Padding,
    /// Values of a code; 0 for what the last block of a convolutional one leaves, as it is.
    pub code: usize,
}

impl Default for AutoencoderConfig {
    /// The one of DEC, IDEC, DCN and SpectralNet.
    fn default() -> Self {
        Self {
            kind: AutoencoderKind::Dense,
            hidden: vec![500, 500, 2000],
            blocks: NetworkConfig::default().blocks,
            padding: Padding::Valid,
            code: 10,
        }
    }
}

/// Bounds that only a mistake exceeds.
const MOST_LAYERS: usize = 16;
const MOST_UNITS: usize = 16384;

impl AutoencoderConfig {
    /// Refuses what cannot work with these images, before any work.
    pub fn check(&self, input: ImageShape) -> Result<(), ConfigError> {
        let bounded = |name: String, value: usize, most: usize| match value {
            0 => Err(ConfigError::Zero { name }),
            value if value > most => Err(ConfigError::TooLarge { name, value, most }),
            _ => Ok(()),
        };
        if self.code > 0 || self.kind == AutoencoderKind::Dense {
            bounded("network.code".into(), self.code, MOST_UNITS)?;
        }
        bounded("the values of an image".into(), input.len(), 1 << 24)?;
        match self.kind {
            AutoencoderKind::Dense => {
                if self.hidden.len() > MOST_LAYERS {
                    let (name, value) = ("the number of network.hidden".into(), self.hidden.len());
                    return Err(ConfigError::TooLarge { name, value, most: MOST_LAYERS });
                }
                let mut units = self.hidden.iter().enumerate();
                units.try_for_each(|(i, &units)| bounded(format!("network.hidden[{i}]"), units, MOST_UNITS))
            }
            AutoencoderKind::Convolutional => self.shapes(input).map(drop),
        }
    }

    /// Values of a code for these images.
    pub fn code_width(&self, input: ImageShape) -> Result<usize, ConfigError> {
        match self.code {
            0 => Ok(self.shapes(input)?.last().map_or(input.len(), |last| last.len())),
            code => Ok(code),
        }
    }

    /// Output size of every block.
    pub(super) fn shapes(&self, input: ImageShape) -> Result<Vec<ImageShape>, ConfigError> {
        let network = NetworkConfig { blocks: self.blocks.clone(), padding: self.padding, ..NetworkConfig::default() };
        Ok(ModelConfig::new(input, 2).with_network(network).check()?.block_shapes().to_vec())
    }
}
