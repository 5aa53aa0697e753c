//! Initial weights, drawn on the CPU from our own generator.

use super::Model;
use super::layers::{Block, Conv, Dense, Norm};
use super::recurrent::GruLayer;
use crate::config::{BlockConfig, Init, Tap, ValidModel};
use crate::random;
use crate::sequences::Scaling;
use burn::module::{Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use dtkc_item::ItemShape;
use rand_chacha::ChaCha8Rng;

impl ValidModel {
    /// A new model: weights by `network.init` (He-uniform for convolutions and the hidden layer, Glorot-uniform for the
    /// output layer, or He-normal for all), zero biases; the same bits for the same seed on every device.
    ///
    /// Parameter ids are numbered, not random, so that an optimiser's saved state fits the model of another process.
    pub fn init(&self, device: &Device, seed: u64) -> Model {
        let config = self.config();
        let mut maker = Maker::new(config.network.init, device, seed);
        let (mut blocks, mut recurrent, mut scaling) = (Vec::new(), Vec::new(), None);
        match config.input {
            ItemShape::Image(image) => {
                let mut channels = image.channels;
                for block in &config.network.blocks {
                    blocks.push(maker.block(block, channels));
                    channels = block.filters;
                }
            }
            ItemShape::Sequence { dim } => {
                let (layers, units) = (config.network.recurrent.layers, config.network.recurrent.units);
                let inputs = std::iter::once(dim).chain(std::iter::repeat(2 * units)).take(layers);
                recurrent.extend(inputs.map(|inputs| GruLayer::make(&mut maker, inputs, units)));
                scaling = Some(maker.scaling(dim));
            }
            ItemShape::Features(shape) => scaling = Some(maker.scaling(shape.dim)),
        }
        let (features, hidden) = (self.features(), config.network.hidden);
        let fine = self.fine_clusters();
        Model {
            blocks,
            recurrent,
            scaling,
            hidden: maker.dense(features, hidden, he(features)),
            hidden_norm: config.network.hidden_batch_norm.then(|| maker.norm(hidden)),
            output: maker.dense(hidden, config.clusters, glorot(hidden, config.clusters)),
            fine: (fine > 0).then(|| maker.dense(hidden, fine, glorot(hidden, fine))),
            valid: self.clone(),
        }
    }
}

/// He-uniform: the bound sqrt(6 / fan_in).
pub(crate) fn he(fan_in: usize) -> f32 {
    (6.0 / fan_in as f64).sqrt() as f32
}

/// Glorot-uniform: the bound sqrt(6 / (fan_in + fan_out)).
pub(crate) fn glorot(fan_in: usize, fan_out: usize) -> f32 {
    (6.0 / (fan_in + fan_out) as f64).sqrt() as f32
}

/// Draws the weights of one network, layer by layer.
pub(crate) struct Maker<'a> {
    rng: ChaCha8Rng,
    init: Init,
    device: &'a Device,
    next: u64,
}

impl<'a> Maker<'a> {
    pub(crate) fn new(init: Init, device: &'a Device, seed: u64) -> Self {
        Self { rng: random::generator(seed, b"weights.", 0, 0), init, device, next: 0 }
    }

    pub(crate) fn block(&mut self, config: &BlockConfig, channels: usize) -> Block {
        let mut convs = Vec::with_capacity(config.convs);
        let mut inputs = channels;
        for _ in 0..config.convs {
            convs.push(self.conv(config.kernel, inputs, config.filters));
            inputs = config.filters;
        }
        Block {
            convs,
            norm: config.batch_norm.then(|| self.norm(config.filters)),
            pool: config.pool,
            unpooled: config.tap == Tap::Unpooled,
        }
    }

    pub(crate) fn conv(&mut self, kernel: usize, inputs: usize, outputs: usize) -> Conv {
        let limit = he(kernel * kernel * inputs);
        Conv { weight: self.weight([kernel, kernel, inputs, outputs], limit), bias: self.filled(outputs, 0.0, true) }
    }

    pub(crate) fn dense(&mut self, inputs: usize, outputs: usize, limit: f32) -> Dense {
        Dense { weight: self.weight([inputs, outputs], limit), bias: self.filled(outputs, 0.0, true) }
    }

    fn scaling(&mut self, dim: usize) -> Scaling {
        Scaling { mean: self.filled(dim, 0.0, false), deviation: self.filled(dim, 1.0, false) }
    }

    fn norm(&mut self, features: usize) -> Norm {
        Norm {
            gamma: self.filled(features, 1.0, true),
            beta: self.filled(features, 0.0, true),
            mean: self.filled(features, 0.0, false),
            variance: self.filled(features, 1.0, false),
        }
    }

    pub(crate) fn init(&self) -> Init {
        self.init
    }

    /// Uniform within `limit`, whatever `network.init` says.
    pub(crate) fn uniform<const D: usize>(&mut self, shape: [usize; D], limit: f32) -> Param<Tensor<D>> {
        let values = random::uniform(&mut self.rng, shape.iter().product(), limit);
        self.param(values, shape, true)
    }

    /// The same number everywhere, to be trained.
    pub(crate) fn constant<const D: usize>(&mut self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        self.param(vec![value; shape.iter().product()], shape, true)
    }

    /// `[2, 3 units, units]`: for each direction a matrix whose columns are orthonormal, the columns of the state.
    pub(crate) fn orthogonal(&mut self, units: usize) -> Param<Tensor<3>> {
        let rows = 3 * units;
        let mut all = vec![0.0; 2 * rows * units];
        for matrix in all.chunks_exact_mut(rows * units) {
            let columns = random::orthonormal(&mut self.rng, units, rows);
            for (column, values) in columns.chunks_exact(rows).enumerate() {
                for (row, value) in values.iter().enumerate() {
                    matrix[row * units + column] = *value as f32;
                }
            }
        }
        self.param(all, [2, rows, units], true)
    }

    fn weight<const D: usize>(&mut self, shape: [usize; D], limit: f32) -> Param<Tensor<D>> {
        let len = shape.iter().product();
        let values = match self.init {
            Init::Uniform => random::uniform(&mut self.rng, len, limit),
            Init::Normal => {
                // The last dimension is the output's; what is left of the weights per output is the fan-in.
                let fan_in = len / shape.last().copied().unwrap_or(1).max(1);
                random::normal(&mut self.rng, len, (2.0 / fan_in as f64).sqrt() as f32)
            }
        };
        self.param(values, shape, true)
    }

    fn filled(&mut self, len: usize, value: f32, trained: bool) -> Param<Tensor<1>> {
        self.param(vec![value; len], [len], trained)
    }

    fn param<const D: usize>(&mut self, values: Vec<f32>, shape: [usize; D], trained: bool) -> Param<Tensor<D>> {
        self.next += 1;
        let tensor = Tensor::<D>::from_data(TensorData::new(values, shape), self.device);
        let tensor = match self.device.is_autodiff() {
            true => tensor.set_require_grad(trained),
            false => tensor,
        };
        Param::initialized(ParamId::from(self.next), tensor).set_require_grad(trained)
    }
}
