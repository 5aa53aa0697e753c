//! Dense layers in a row.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use dtkc_onnx::Layer;

use crate::StateError;
use crate::config::Init;
use crate::model::freeze;
use crate::model::init::{Maker, glorot};
use crate::model::layers::Dense;
use crate::model::state::{self, NamedArray, Parameters, Visit, each_of_dense};

/// What follows the last layer; all others are followed by ReLU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing.
    Linear,
    /// ReLU.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
}

/// Dense layers in a row, with ReLU between them.
#[derive(Module, Debug)]
pub struct Mlp {
    layers: Vec<Dense>,
    #[module(skip)]
    end: End,
}

/// What dense layers in a row give.
#[derive(Debug, Clone)]
pub struct MlpOutput {
    /// The output of every layer but the last: `[n, units]` each.
    pub hidden: Vec<Tensor<2>>,
    /// The output of the last: `[n, units]`.
    pub output: Tensor<2>,
}

impl Mlp {
    /// New layers between `sizes` values: Glorot-uniform weights, zero biases; the same bits for the same seed on every
    /// device.
    pub fn init(sizes: &[usize], end: End, device: &Device, seed: u64) -> Self {
        Self::make(&mut Maker::new(Init::Uniform, device, seed), sizes, end, glorot)
    }

    /// The same with weights uniform within `limit` of the numbers of inputs and outputs.
    pub(crate) fn make(maker: &mut Maker<'_>, sizes: &[usize], end: End, limit: fn(usize, usize) -> f32) -> Self {
        let layer = |pair: &[usize]| maker.dense(pair[0], pair[1], limit(pair[0], pair[1]));
        Self { layers: sizes.windows(2).map(layer).collect(), end }
    }

    /// # Shapes
    /// - x: `[n, inputs]`
    pub fn forward(&self, x: Tensor<2>) -> MlpOutput {
        let (mut hidden, mut value) = (Vec::new(), x);
        for (i, layer) in self.layers.iter().enumerate() {
            let is_last = i + 1 == self.layers.len();
            value = layer.forward(value);
            value = match self.end {
                End::Tanh if is_last => value.tanh(),
                End::Linear if is_last => value,
                _ => activation::relu(value),
            };
            if !is_last {
                hidden.push(value.clone());
            }
        }
        MlpOutput { hidden, output: value }
    }

    /// The layers as they are now, as a plain list.
    pub fn frozen(&self) -> Vec<Layer> {
        let mut layers = Vec::new();
        for (i, layer) in self.layers.iter().enumerate() {
            layers.push(freeze::dense(layer));
            match self.end {
                End::Tanh if i + 1 == self.layers.len() => layers.push(Layer::Tanh),
                End::Linear if i + 1 == self.layers.len() => {}
                _ => layers.push(Layer::Relu),
            }
        }
        layers
    }

    /// All weights, always in the same order.
    pub fn state(&self) -> Vec<NamedArray> {
        state::state(self)
    }

    /// Replaces all weights by those of [`state`](Self::state). On an error nothing is changed.
    pub fn load_state(&mut self, state: &[NamedArray]) -> Result<(), StateError> {
        state::load_state(self, state)
    }
}

impl Parameters for Mlp {
    fn each(&mut self, f: &mut Visit<'_>) -> Result<(), StateError> {
        self.each_under("layers", f)
    }
}

impl Mlp {
    pub(crate) fn each_under(&mut self, path: &str, f: &mut Visit<'_>) -> Result<(), StateError> {
        let mut layers = self.layers.iter_mut().enumerate();
        layers.try_for_each(|(i, layer)| each_of_dense(&format!("{path}.{i}"), layer, f))
    }
}
