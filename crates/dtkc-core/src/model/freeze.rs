//! The model as a plain description, for export.

use super::Model;
use super::layers::{Block, Conv, Dense, Norm};
use super::state::values;
use crate::config::Padding;
use dtkc_item::ItemShape;
use dtkc_onnx::{GruOutput, Layer, Network, Weights};

impl Model {
    /// The network as it is now, with its running statistics, as a plain list of layers.
    ///
    /// Every configuration freezes: a changed backbone needs no new code.
    pub fn to_network(&self) -> Network {
        let config = self.valid.config();
        let epsilon = config.network.batch_norm_epsilon as f32;
        let mut layers = Vec::new();
        match config.input {
            ItemShape::Image(_) => {
                if config.network.reduce > 1 {
                    layers.push(Layer::AveragePool { size: config.network.reduce });
                }
                for block in &self.blocks {
                    push_block(&mut layers, block, config.network.padding, epsilon);
                }
                layers.push(Layer::Flatten);
            }
            // Features have no recurrent layers.
            ItemShape::Sequence { .. } | ItemShape::Features(_) => self.push_recurrent(&mut layers),
        }
        layers.extend([dense(&self.hidden), Layer::Relu]);
        layers.extend(self.hidden_norm.as_ref().map(|norm| batch_norm(norm, epsilon)));
        layers.extend([Layer::Embedding, dense(&self.output), Layer::Softmax]);
        Network { input: config.input, layers }
    }

    /// Scaling and recurrent layers; the last gives its last states.
    fn push_recurrent(&self, layers: &mut Vec<Layer>) {
        if let Some(scaling) = &self.scaling {
            let (mean, deviation) = (values(scaling.mean.val()), values(scaling.deviation.val()));
            layers.push(Layer::Standardize { mean, deviation });
        }
        for (i, layer) in self.recurrent.iter().enumerate() {
            let is_last = i + 1 == self.recurrent.len();
            layers.push(layer.frozen(if is_last { GruOutput::Last } else { GruOutput::Steps }));
        }
    }
}

pub(crate) fn push_block(layers: &mut Vec<Layer>, block: &Block, padding: Padding, epsilon: f32) {
    for (i, conv) in block.convs.iter().enumerate() {
        layers.push(convolution(conv, padding));
        if i + 1 == block.convs.len() {
            layers.extend(block.norm.as_ref().map(|norm| batch_norm(norm, epsilon)));
        }
        layers.push(Layer::Relu);
    }
    if block.pool > 1 {
        layers.push(Layer::MaxPool { size: block.pool });
    }
}

/// Weights `[kh, kw, in, out]` become `[out, in, kh, kw]`.
fn convolution(conv: &Conv, padding: Padding) -> Layer {
    let weight = conv.weight.val().permute([3, 2, 0, 1]);
    let shape = weight.dims();
    let padding = match padding {
        Padding::Valid => [0; 4],
        Padding::Same => {
            let (rows, columns) = (shape[2] - 1, shape[3] - 1);
            [rows / 2, columns / 2, rows - rows / 2, columns - columns / 2]
        }
    };
    Layer::Conv { weight: Weights::new(shape, values(weight)), bias: values(conv.bias.val()), padding }
}

pub(crate) fn batch_norm(norm: &Norm, epsilon: f32) -> Layer {
    Layer::BatchNorm {
        gamma: values(norm.gamma.val()),
        beta: values(norm.beta.val()),
        mean: values(norm.mean.val()),
        variance: values(norm.variance.val()),
        epsilon,
    }
}

pub(crate) fn dense(dense: &Dense) -> Layer {
    let weight = dense.weight.val();
    Layer::Dense { weight: Weights::new(weight.dims(), values(weight)), bias: values(dense.bias.val()) }
}
