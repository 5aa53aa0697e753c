//! The network's configuration and its check.

use crate::ConfigError;
use crate::model::RecurrentConfig;
use dtkc_item::{ImageShape, ItemShape};
use dtkc_views::reduced;
use serde::{Deserialize, Serialize};

/// Whether convolutions shrink their input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Padding {
    /// No padding: a kernel of side k removes k - 1 rows and columns.
    #[default]
    Valid,
    /// Zeros around the image keep its size; of an odd number of them the extra one goes below and to the right.
    Same,
}

impl From<Padding> for dtkc_ops::Padding {
    fn from(padding: Padding) -> Self {
        match padding {
            Padding::Valid => dtkc_ops::Padding::Valid,
            Padding::Same => dtkc_ops::Padding::Same,
        }
    }
}

/// Where companion objectives look at a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tap {
    /// At its output, after pooling: the paper and its code.
    #[default]
    Pooled,
    /// Before pooling: tk-uco's first block.
    Unpooled,
}

/// How weights are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// He-uniform, Glorot-uniform for the output layer: the paper's code.
    #[default]
    Uniform,
    /// He-normal for every layer: tk-uco.
    Normal,
}

/// One block: `convs` convolutions, each followed by ReLU, batch norm before the last ReLU, then max-pooling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BlockConfig {
    /// Output channels of every convolution of the block.
    pub filters: usize,
    /// Side of the square kernels.
    pub kernel: usize,
    /// Number of convolutions.
    pub convs: usize,
    /// Batch norm after the last convolution.
    pub batch_norm: bool,
    /// Side of the pooling squares; 1 turns pooling off.
    pub pool: usize,
    /// Where companion objectives look at the block.
    pub tap: Tap,
}

impl Default for BlockConfig {
    fn default() -> Self {
        Self { filters: 32, kernel: 3, convs: 2, batch_norm: true, pool: 2, tap: Tap::Pooled }
    }
}

/// The network without what the data decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Images are averaged down by this factor before anything else, so that the network sees less detail and a step of
    /// large images takes less time and memory; 1 leaves them, 0 takes what brings them to about 32 x 32 pixels.
    pub reduce: usize,
    /// The convolution blocks, in order.
    pub blocks: Vec<BlockConfig>,
    /// What takes the place of the blocks where items are sequences.
    pub recurrent: RecurrentConfig,
    /// Padding of every convolution.
    pub padding: Padding,
    /// Units of the hidden layer, the size of the embedding.
    pub hidden: usize,
    /// Batch norm on the hidden layer (after its ReLU).
    pub hidden_batch_norm: bool,
    /// Fine clusters per cluster of a second output layer, which only training uses; 0 for none. There are at most 500
    /// in all, so many clusters get fewer.
    pub fine: usize,
    /// How weights are drawn.
    pub init: Init,
    /// Weight of the old value when the running statistics are updated.
    pub batch_norm_momentum: f64,
    /// Added to the variance.
    pub batch_norm_epsilon: f64,
}

impl Default for NetworkConfig {
    /// The paper's network.
    fn default() -> Self {
        Self {
            reduce: 1,
            blocks: vec![BlockConfig { kernel: 5, ..BlockConfig::default() }, BlockConfig::default()],
            recurrent: RecurrentConfig::default(),
            padding: Padding::Valid,
            hidden: 100,
            hidden_batch_norm: true,
            fine: 0,
            init: Init::Uniform,
            batch_norm_momentum: 0.99,
            batch_norm_epsilon: 1e-3,
        }
    }
}

/// Everything needed to build a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The items.
    pub input: ItemShape,
    /// Number of clusters k.
    pub clusters: usize,
    /// The network between image and clusters.
    #[serde(default)]
    pub network: NetworkConfig,
}

/// Bounds that only a mistake exceeds; they keep a wrong digit from asking for all memory.
const MOST_SIDE: usize = 4096;
const MOST_UNITS: usize = 16384;
const MOST_BLOCKS: usize = 32;
const MOST_DIM: usize = 1 << 16;
/// Joining fine clusters costs the cube of their number.
const MOST_FINE: usize = 500;

impl ModelConfig {
    /// The paper's network for images of this size, or sequences of this dimension.
    pub fn new(input: impl Into<ItemShape>, clusters: usize) -> Self {
        Self { input: input.into(), clusters, network: NetworkConfig::default() }
    }

    /// The same with another network.
    pub fn with_network(self, network: NetworkConfig) -> Self {
        Self { network, ..self }
    }

    /// Refuses what cannot work, before any work.
    pub fn check(mut self) -> Result<ValidModel, ConfigError> {
        if self.clusters < 2 {
            return Err(ConfigError::Clusters(self.clusters));
        }
        bounded("clusters", self.clusters, MOST_UNITS)?;
        self.network.check_numbers()?;
        let shapes = match self.input {
            ItemShape::Image(image) => self.check_image(image)?,
            ItemShape::Sequence { dim } => {
                bounded("values of a step", dim, MOST_DIM)?;
                self.network.recurrent.check()?;
                self.network.reduce = 1;
                Vec::new()
            }
            ItemShape::Features(shape) => {
                bounded("values of a vector", shape.dim, MOST_DIM)?;
                self.network.reduce = 1;
                Vec::new()
            }
        };
        Ok(ValidModel { config: self, shapes })
    }

    /// Output size of every block; sets the reduction.
    fn check_image(&mut self, image: ImageShape) -> Result<Vec<ImageShape>, ConfigError> {
        bounded("height", image.height, MOST_SIDE)?;
        bounded("width", image.width, MOST_SIDE)?;
        bounded("channels", image.channels, 64)?;
        self.network.reduce = self.network.reduce_for(image);
        let seen = reduced(image, self.network.reduce);
        self.network.shapes(seen).map_err(|block| self.too_small(image, block))
    }

    /// Says why nothing is left at `block`: the images are small, or were reduced too much.
    fn too_small(&self, image: ImageShape, block: usize) -> ConfigError {
        let ImageShape { height, width, .. } = image;
        let reduce = self.network.reduce;
        match self.network.most_reduction(image, reduce) {
            Some(most) => ConfigError::Reduced { height, width, reduce, most },
            None => ConfigError::TooSmall { height, width, block: block + 1, remedy: self.network.comfortable_side() },
        }
    }
}

impl NetworkConfig {
    fn check_numbers(&self) -> Result<(), ConfigError> {
        if self.blocks.is_empty() {
            return Err(ConfigError::Zero { name: "the number of network.blocks".into() });
        }
        bounded("the number of network.blocks", self.blocks.len(), MOST_BLOCKS)?;
        for (i, block) in self.blocks.iter().enumerate() {
            for (name, value, most) in [
                ("filters", block.filters, MOST_UNITS),
                ("kernel", block.kernel, 64),
                ("convs", block.convs, 16),
                ("pool", block.pool, 64),
            ] {
                bounded(&format!("network.blocks[{i}].{name}"), value, most)?;
            }
        }
        bounded("network.hidden", self.hidden, MOST_UNITS)?;
        // 0 is no mistake here: it stands for what suits the images.
        bounded("network.reduce", self.reduce.max(1), MOST_SIDE)?;
        let within = |name: &str, value: f64, low: f64, high: f64, range| match value >= low && value <= high {
            true => Ok(()),
            false => Err(ConfigError::Range { name: name.into(), value, range }),
        };
        within("network.batch_norm_momentum", self.batch_norm_momentum, 0.0, 1.0, "between 0 and 1")?;
        within("network.batch_norm_epsilon", self.batch_norm_epsilon, 1e-8, 1.0, "between 1e-8 and 1")
    }

    /// Output size of every block, or the index of the block that leaves nothing.
    pub(crate) fn shapes(&self, input: ImageShape) -> Result<Vec<ImageShape>, usize> {
        let mut size = input;
        let mut shapes = Vec::with_capacity(self.blocks.len());
        for (i, block) in self.blocks.iter().enumerate() {
            let side = |side: usize| block.output_side(side, self.padding).filter(|&s| s > 0).ok_or(i);
            size = ImageShape { height: side(size.height)?, width: side(size.width)?, channels: block.filters };
            shapes.push(size);
        }
        Ok(shapes)
    }

    /// The smallest multiple of 8 px, 32 at least, whose square passes through every block.
    fn comfortable_side(&self) -> usize {
        let fits = |side| self.shapes(ImageShape { height: side, width: side, channels: 1 }).is_ok();
        (32..=MOST_SIDE).step_by(8).find(|&side| fits(side)).unwrap_or(MOST_SIDE)
    }
}

impl BlockConfig {
    fn output_side(&self, side: usize, padding: Padding) -> Option<usize> {
        let side = match padding {
            Padding::Valid => side.checked_sub(self.convs * (self.kernel - 1))?,
            Padding::Same => side,
        };
        Some(side / self.pool)
    }
}

pub(crate) fn bounded(name: &str, value: usize, most: usize) -> Result<(), ConfigError> {
    match value {
        0 => Err(ConfigError::Zero { name: name.into() }),
        v if v > most => Err(ConfigError::TooLarge { name: name.into(), value, most }),
        _ => Ok(()),
    }
}

/// A configuration that was checked: the only way to build a [`Model`](crate::Model).
#[derive(Debug, Clone, PartialEq)]
pub struct ValidModel {
    config: ModelConfig,
    shapes: Vec<ImageShape>,
}

impl ValidModel {
    /// The configuration as it was checked.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Output size of every block; none where items are no images.
    pub fn block_shapes(&self) -> &[ImageShape] {
        &self.shapes
    }

    /// Number of fine clusters in all; 0 when there is no second output layer.
    pub fn fine_clusters(&self) -> usize {
        let ModelConfig { clusters, network, .. } = &self.config;
        match network.fine.min(MOST_FINE / clusters) {
            0 | 1 => 0,
            fine => fine * clusters,
        }
    }

    /// Number of values that reach the hidden layer.
    pub fn features(&self) -> usize {
        match self.config.input {
            ItemShape::Image(_) => self.shapes.last().map_or(0, ImageShape::len),
            ItemShape::Sequence { .. } => 2 * self.config.network.recurrent.units,
            ItemShape::Features(shape) => shape.dim,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn gray(side: usize) -> ImageShape {
        ImageShape { height: side, width: side, channels: 1 }
    }

    #[test]
    fn the_papers_shapes() {
        let valid = ModelConfig::new(gray(28), 10).check().unwrap();
        let sizes: Vec<_> = valid.block_shapes().iter().map(|s| (s.height, s.width, s.channels)).collect();
        assert_eq!(sizes, [(10, 10, 32), (3, 3, 32)]);
        assert_eq!(valid.features(), 288);
    }

    #[test]
    fn twenty_pixels_is_the_smallest_input() {
        let valid = ModelConfig::new(gray(20), 10).check().unwrap();
        assert_eq!(valid.block_shapes()[1], ImageShape { height: 1, width: 1, channels: 32 });
        assert!(ModelConfig::new(gray(19), 10).check().is_err());
    }

    #[test]
    fn fine_clusters_are_few_enough_to_be_joined() {
        let fine = |clusters, fine| {
            let network = NetworkConfig { fine, ..NetworkConfig::default() };
            ModelConfig::new(gray(28), clusters).with_network(network).check().unwrap().fine_clusters()
        };
        assert_eq!([fine(10, 0), fine(10, 5), fine(200, 5), fine(300, 5), fine(2, 1_000_000)], [0, 50, 400, 0, 500]);
    }

    #[test]
    fn a_small_image_is_refused_with_the_remedy() {
        let error = ModelConfig::new(gray(16), 10).check().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("16x16") && text.contains("dtkc-data import --size 32x32"), "{text}");
        assert!(text.contains("block 2"), "{text}");
    }

    #[test]
    fn reduced_images_are_smaller_and_too_much_of_it_is_refused_with_the_remedy() {
        let check = |side, reduce| {
            let network = NetworkConfig { reduce, ..NetworkConfig::default() };
            ModelConfig::new(gray(side), 10).with_network(network).check()
        };
        let valid = check(57, 2).unwrap();
        assert_eq!((valid.seen(), valid.features()), (gray(28), 288));
        let error = check(128, 8).unwrap_err().to_string();
        assert!(error.contains("network.reduce = 8 leaves 16x16") && error.contains("at most 6"), "{error}");
        let small = check(16, 2).unwrap_err().to_string();
        assert!(small.contains("16x16") && small.contains("dtkc-data import"), "{small}");
        assert!(check(128, 1_000_000).unwrap_err().to_string().contains("network.reduce"));
    }

    #[test]
    fn same_padding_accepts_small_images() {
        let network = NetworkConfig { padding: Padding::Same, ..NetworkConfig::default() };
        let valid = ModelConfig::new(gray(8), 2).with_network(network).check().unwrap();
        assert_eq!(valid.block_shapes()[1], ImageShape { height: 2, width: 2, channels: 32 });
    }

    #[test]
    fn impossible_numbers_are_refused() {
        assert_eq!(ModelConfig::new(gray(28), 1).check().unwrap_err(), ConfigError::Clusters(1));
        assert!(ModelConfig::new(gray(0), 10).check().is_err());
        let broken = |change: fn(&mut NetworkConfig)| {
            let mut network = NetworkConfig::default();
            change(&mut network);
            ModelConfig::new(gray(28), 10).with_network(network).check().unwrap_err().to_string()
        };
        assert!(broken(|n| n.blocks.clear()).contains("network.blocks"));
        assert!(broken(|n| n.blocks[1].pool = 0).contains("network.blocks[1].pool"));
        assert!(broken(|n| n.blocks[0].kernel = 1000).contains("too large"));
        assert!(broken(|n| n.hidden = 0).contains("network.hidden"));
        assert!(broken(|n| n.batch_norm_momentum = 1.5).contains("between 0 and 1"));
        assert!(broken(|n| n.batch_norm_epsilon = f64::NAN).contains("batch_norm_epsilon"));
    }

    #[test]
    fn a_block_in_a_file_may_name_only_what_differs() {
        let network: NetworkConfig = serde_json::from_str(r#"{"blocks": [{"filters": 8, "kernel": 5}]}"#).unwrap();
        assert_eq!(network.blocks, [BlockConfig { filters: 8, kernel: 5, ..BlockConfig::default() }]);
        assert!(serde_json::from_str::<NetworkConfig>(r#"{"bloks": []}"#).is_err());
    }
}
