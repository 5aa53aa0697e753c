//! The autoencoder of convolutions: our blocks, a convolution over all that is left, and the same backwards.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use dtkc_item::ImageShape;
use dtkc_onnx::Layer;

use super::{AutoencoderConfig, Encoded, Norms, Tapped};
use crate::config::{BlockConfig, Init, NetworkConfig, Padding};
use crate::model::freeze;
use crate::model::init::{Maker, he};
use crate::model::layers::{Block, BlockOutput, Conv, Dense, Norm};
use crate::model::state::{Visit, each_of_block, each_of_conv, each_of_dense};
use crate::{ConfigError, StateError};

/// Blocks, then a convolution whose kernel is as large as what the last block leaves (so a dense layer), and the way back:
/// that convolution transposed, nearest-neighbour up-sampling for pooling, transposed convolutions. Without the layers of the
/// code, what the last block leaves is the code.
#[derive(Module, Debug)]
pub(super) struct ConvAutoencoder {
    blocks: Vec<Block>,
    code: Option<Dense>,
    opened: Option<Dense>,
    mirrored: Vec<Mirrored>,
    #[module(skip)]
    padding: Padding,
    #[module(skip)]
    last: ImageShape,
}

/// A block backwards: up-sampling, then transposed convolutions.
#[derive(Module, Debug)]
struct Mirrored {
    convs: Vec<Conv>,
    #[module(skip)]
    pool: usize,
    /// Rows and columns before pooling, some of which pooling may have dropped.
    #[module(skip)]
    unpooled: [usize; 2],
}

impl ConvAutoencoder {
    pub(super) fn init(
        config: &AutoencoderConfig,
        input: ImageShape,
        device: &Device,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let shapes = config.shapes(input)?;
        let last = shapes.last().copied().unwrap_or(input);
        let mut maker = Maker::new(Init::Uniform, device, seed);
        let inputs: Vec<ImageShape> = std::iter::once(input).chain(shapes).take(config.blocks.len()).collect();
        let ends = config.blocks.iter().zip(&inputs);
        let blocks = ends.clone().map(|(block, input)| maker.block(block, input.channels)).collect();
        let mut between = |from: usize, to: usize| (config.code > 0).then(|| maker.dense(from, to, he(from)));
        let (code, opened) = (between(last.len(), config.code), between(config.code, last.len()));
        let mirrored = ends.rev().map(|(block, &input)| Mirrored::init(&mut maker, block, input, config.padding));
        Ok(Self { blocks, code, opened, mirrored: mirrored.collect(), padding: config.padding, last })
    }

    pub(super) fn encode(&self, x: Tensor<4>, norms: Norms) -> Encoded {
        let (mut taps, mut statistics, mut value) = (Vec::new(), Vec::new(), x);
        for block in &self.blocks {
            let counted = (norms == Norms::Batch).then_some(&mut statistics);
            let BlockOutput { output, tap } = block.forward(value, self.padding.into(), epsilon(), counted);
            taps.push(Tapped::Maps(tap));
            value = output;
        }
        let n = value.dims()[0];
        let features = value.reshape([n, self.last.len()]);
        let code = self.code.as_ref().map_or_else(|| features.clone(), |layer| layer.forward(features.clone()));
        Encoded { taps, features, code, statistics }
    }

    pub(super) fn decode(&self, code: Tensor<2>) -> Tensor<2> {
        let ImageShape { height, width, channels } = self.last;
        let n = code.dims()[0];
        // What blocks leave is never below zero, so that without a layer there is nothing to cut off.
        let opened =
            self.opened.as_ref().map_or_else(|| code.clone(), |layer| activation::relu(layer.forward(code.clone())));
        let mut value = opened.reshape([n, height, width, channels]);
        for (i, block) in self.mirrored.iter().enumerate() {
            value = block.forward(value, self.padding, i + 1 == self.mirrored.len());
        }
        let [n, height, width, channels] = value.dims();
        value.reshape([n, height * width * channels])
    }

    pub(super) fn frozen_encoder(&self) -> Vec<Layer> {
        let mut layers = Vec::new();
        for block in &self.blocks {
            freeze::push_block(&mut layers, block, self.padding, epsilon() as f32);
        }
        layers.push(Layer::Flatten);
        layers.extend(self.code.as_ref().map(freeze::dense));
        layers
    }

    pub(super) fn norms_mut(&mut self) -> Vec<&mut Norm> {
        self.blocks.iter_mut().filter_map(|block| block.norm.as_mut()).collect()
    }

    pub(super) fn has_norms(&self) -> bool {
        self.blocks.iter().any(|block| block.norm.is_some())
    }

    pub(super) fn each(&mut self, f: &mut Visit<'_>) -> Result<(), StateError> {
        for (b, block) in self.blocks.iter_mut().enumerate() {
            each_of_block(&format!("encoder.blocks.{b}"), block, f)?;
        }
        for (name, layer) in [("encoder.code", &mut self.code), ("decoder.code", &mut self.opened)] {
            layer.as_mut().map_or(Ok(()), |layer| each_of_dense(name, layer, f))?;
        }
        for (b, block) in self.mirrored.iter_mut().enumerate() {
            for (c, conv) in block.convs.iter_mut().enumerate() {
                each_of_conv(&format!("decoder.blocks.{b}.convs.{c}"), conv, f)?;
            }
        }
        Ok(())
    }
}

impl Mirrored {
    fn init(maker: &mut Maker<'_>, block: &BlockConfig, input: ImageShape, padding: Padding) -> Self {
        let lost = match padding {
            Padding::Valid => block.convs * (block.kernel - 1),
            Padding::Same => 0,
        };
        let conv = |i: usize| {
            let outputs = if i + 1 == block.convs { input.channels } else { block.filters };
            maker.conv(block.kernel, block.filters, outputs)
        };
        let convs = (0..block.convs).map(conv).collect();
        Self { convs, pool: block.pool, unpooled: [input.height - lost, input.width - lost] }
    }

    /// # Shapes
    /// - x: `[n, h, w, filters]`
    /// - result: what the block got, `[n, h', w', channels]`; below zero only where it `is_image`
    fn forward(&self, x: Tensor<4>, padding: Padding, is_image: bool) -> Tensor<4> {
        let mut value = padded(upsampled(x, self.pool), [0, 0], self.unpooled);
        for (i, Conv { weight, bias }) in self.convs.iter().enumerate() {
            let kernel = weight.dims()[0];
            if padding == Padding::Valid {
                // A transposed convolution is one over its input with zeros around it.
                let [_, height, width, _] = value.dims();
                let more = 2 * (kernel - 1);
                value = padded(value, [kernel - 1; 2], [height + more, width + more]);
            }
            let relu = !(is_image && i + 1 == self.convs.len());
            value = dtkc_ops::conv2d(value, weight.val(), bias.val(), padding.into(), relu);
        }
        value
    }
}

/// Every value as a square of `factor` x `factor`.
fn upsampled(x: Tensor<4>, factor: usize) -> Tensor<4> {
    if factor == 1 {
        return x;
    }
    let [n, height, width, channels] = x.dims();
    let cells = x.reshape([n, height, 1, width, 1, channels]).expand([n, height, factor, width, factor, channels]);
    cells.reshape([n, height * factor, width * factor, channels])
}

/// `x` with zeros around it: `before` rows and columns in front, `size` of them in all.
fn padded(x: Tensor<4>, before: [usize; 2], size: [usize; 2]) -> Tensor<4> {
    let [n, height, width, channels] = x.dims();
    if [height, width] == size {
        return x;
    }
    let [top, left] = before;
    let canvas = Tensor::zeros([n, size[0], size[1], channels], &x.device());
    canvas.slice_assign([0..n, top..top + height, left..left + width, 0..channels], x)
}

/// Added to the variance, as everywhere.
fn epsilon() -> f64 {
    NetworkConfig::default().batch_norm_epsilon
}
