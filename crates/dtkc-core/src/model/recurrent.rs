//! Bidirectional gated recurrent units in a row: the backbone for sequences.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, TensorData};
use dtkc_onnx::{GruOutput, GruWeights, Layer, Weights};
use dtkc_ops::{GruOperands, GruStates, Lengths, gru};
use serde::{Deserialize, Serialize};

use super::init::{Maker, glorot};
use super::state::{Visit, values};
use crate::sequences::Sequences;
use crate::{ConfigError, StateError, config};

/// The recurrent layers, which take the place of the blocks where items are sequences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecurrentConfig {
    /// Bidirectional layers in a row.
    pub layers: usize,
    /// Units of each direction.
    pub units: usize,
}

impl Default for RecurrentConfig {
    /// The paper's.
    fn default() -> Self {
        Self { layers: 2, units: 32 }
    }
}

impl RecurrentConfig {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        config::bounded("network.recurrent.layers", self.layers, 16)?;
        config::bounded("network.recurrent.units", self.units, 1024)
    }
}

/// One bidirectional layer: both directions one after the other in every array, gates in the order z, r, n.
#[derive(Module, Debug)]
pub(crate) struct GruLayer {
    /// `[2, 3 units, inputs]`.
    input: Param<Tensor<3>>,
    /// `[2, 3 units, units]`.
    recurrent: Param<Tensor<3>>,
    /// `[2, 3 units]`.
    input_bias: Param<Tensor<2>>,
    /// `[2, 3 units]`.
    recurrent_bias: Param<Tensor<2>>,
}

impl GruLayer {
    /// Keras' own first weights for [`Init::Uniform`](crate::Init::Uniform): Glorot-uniform for the input, orthogonal for
    /// the state, zero biases. PyTorch's for [`Init::Normal`](crate::Init::Normal), which is tk-uco's: all uniform within
    /// 1 / sqrt(units).
    pub(crate) fn make(maker: &mut Maker<'_>, inputs: usize, units: usize) -> Self {
        let bound = (units as f64).sqrt().recip() as f32;
        match maker.init() {
            config::Init::Uniform => Self {
                input: maker.uniform([2, 3 * units, inputs], glorot(inputs, 3 * units)),
                recurrent: maker.orthogonal(units),
                input_bias: maker.constant([2, 3 * units], 0.0),
                recurrent_bias: maker.constant([2, 3 * units], 0.0),
            },
            config::Init::Normal => Self {
                input: maker.uniform([2, 3 * units, inputs], bound),
                recurrent: maker.uniform([2, 3 * units, units], bound),
                input_bias: maker.uniform([2, 3 * units], bound),
                recurrent_bias: maker.uniform([2, 3 * units], bound),
            },
        }
    }

    /// # Shapes
    /// - x: `[steps, inputs]`
    /// - output: `[steps, 2 units]`, or `[n, 2 units]` for the last states
    fn forward(&self, x: Tensor<2>, lengths: &Lengths, states: GruStates) -> Tensor<2> {
        let weights = GruOperands {
            input: self.input.val(),
            recurrent: self.recurrent.val(),
            input_bias: self.input_bias.val(),
            recurrent_bias: self.recurrent_bias.val(),
        };
        gru(x, weights, lengths, states)
    }

    pub(crate) fn each(&mut self, path: &str, f: &mut Visit<'_>) -> Result<(), StateError> {
        f(format!("{path}.input"), &mut self.input)?;
        f(format!("{path}.recurrent"), &mut self.recurrent)?;
        f(format!("{path}.input_bias"), &mut self.input_bias)?;
        f(format!("{path}.recurrent_bias"), &mut self.recurrent_bias)
    }

    pub(crate) fn frozen(&self, keep: GruOutput) -> Layer {
        let [_, gates, inputs] = self.input.dims();
        let units = gates / 3;
        let [input, recurrent] = [values(self.input.val()), values(self.recurrent.val())];
        let [input_bias, recurrent_bias] = [values(self.input_bias.val()), values(self.recurrent_bias.val())];
        let half = |all: &[f32], direction: usize| all[direction * all.len() / 2..][..all.len() / 2].to_vec();
        let direction = |d: usize| GruWeights {
            input: Weights::new([gates, inputs], half(&input, d)),
            recurrent: Weights::new([gates, units], half(&recurrent, d)),
            input_bias: half(&input_bias, d),
            recurrent_bias: half(&recurrent_bias, d),
        };
        Layer::Gru { forward: direction(0), backward: direction(1), keep }
    }
}

/// The last states of every layer, `[n, 2 units]` each: what companions see, and the last of them what the network goes on
/// with.
pub(crate) fn last_states(layers: &[GruLayer], sequences: Sequences) -> Vec<Tensor<2>> {
    let Sequences { mut values, lengths } = sequences;
    let mut all = Vec::with_capacity(layers.len());
    for (i, layer) in layers.iter().enumerate() {
        if i + 1 == layers.len() {
            all.push(layer.forward(values.clone(), &lengths, GruStates::Last));
        } else {
            values = layer.forward(values, &lengths, GruStates::All);
            all.push(ends(values.clone(), &lengths));
        }
    }
    all
}

/// The forward state at the last step beside the backward state at the first.
fn ends(states: Tensor<2>, lengths: &Lengths) -> Tensor<2> {
    let [_, width] = states.dims();
    let device = states.device();
    let rows = |row: fn(std::ops::Range<usize>) -> usize| {
        let rows: Vec<i32> = (0..lengths.len()).map(|sequence| row(lengths.range(sequence)) as i32).collect();
        Tensor::<1, Int>::from_data(TensorData::new(rows, [lengths.len()]), &device)
    };
    let forward = states.clone().narrow(1, 0, width / 2).select(0, rows(|range| range.end - 1));
    let backward = states.narrow(1, width / 2, width / 2).select(0, rows(|range| range.start));
    Tensor::cat(vec![forward, backward], 1)
}
