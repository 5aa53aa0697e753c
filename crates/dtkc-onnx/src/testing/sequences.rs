//! Networks for sequences to test with, and what they should answer.

use dtkc_item::{ImageShape, ItemShape};

use super::{Expected, Random, Value, metadata, run};
use crate::{GruOutput, GruWeights, InputSpec, Layer, Metadata, Network};

/// Size of a test network: stacked bidirectional GRUs before the usual clustering module.
#[derive(Debug, Clone, Copy)]
pub struct SequenceSample {
    /// Values per time step.
    pub dim: usize,
    /// Bidirectional GRUs, one after the other.
    pub stacked: usize,
    /// Units per direction.
    pub units: usize,
    /// Width of the embedding.
    pub hidden: usize,
    /// Clusters.
    pub clusters: usize,
    /// Seed of the weights.
    pub seed: u64,
}

impl SequenceSample {
    /// Small enough for a test; no two sizes are the same, so that no transposition goes unnoticed.
    pub fn small() -> Self {
        Self { dim: 3, stacked: 2, units: 5, hidden: 7, clusters: 4, seed: 1 }
    }

    /// The paper's network for Character Trajectories.
    pub fn characters() -> Self {
        Self { dim: 3, stacked: 2, units: 32, hidden: 100, clusters: 10, seed: 1 }
    }

    /// The network, with random weights that keep values near 1.
    pub fn network(&self) -> Network {
        let mut random = Random(self.seed);
        let mut layers = vec![self.standardize(&mut random)];
        for position in 0..self.stacked {
            let from = if position == 0 { self.dim } else { 2 * self.units };
            let keep = if position + 1 == self.stacked { GruOutput::Last } else { GruOutput::Steps };
            let [forward, backward] = [(); 2].map(|()| random.gru(from, self.units));
            layers.push(Layer::Gru { forward, backward, keep });
        }
        layers.push(random.dense(2 * self.units, self.hidden, 1.0));
        layers.push(Layer::Relu);
        layers.push(random.batch_norm(self.hidden));
        layers.push(Layer::Embedding);
        layers.push(random.dense(self.hidden, self.clusters, 2.0));
        layers.push(Layer::Softmax);
        Network { input: ItemShape::Sequence { dim: self.dim }, layers }
    }

    /// A network that resamples and compares with centres, as k-means has it.
    pub fn resampled(&self, steps: usize) -> Network {
        let mut random = Random(self.seed ^ 0x7ea);
        let standardize = self.standardize(&mut random);
        let centres = random.weights(&[self.clusters, steps * self.dim], 2.0);
        let layers =
            vec![standardize, Layer::Resample { steps }, Layer::Flatten, Layer::Embedding, Layer::StudentT { centres }];
        Network { input: ItemShape::Sequence { dim: self.dim }, layers }
    }

    /// Metadata that fits a network whose embedding has that width.
    pub fn metadata(&self, embedding: usize) -> Metadata {
        metadata(InputSpec::Sequence { dim: self.dim }, embedding, self.clusters, self.seed)
    }

    /// A sequence of that length for each of `lengths`: waves with some noise.
    pub fn sequences(&self, lengths: &[usize]) -> Vec<Vec<f32>> {
        let mut random = Random(self.seed ^ 0x5eed);
        let one = |(number, &length): (usize, &usize)| {
            let pace = 0.1 + 0.05 * number as f32;
            let value = |place: usize| (pace * (place / self.dim) as f32 + (place % self.dim) as f32).sin();
            (0..length * self.dim).map(|place| 2.0 * value(place) + random.next()).collect()
        };
        lengths.iter().enumerate().map(one).collect()
    }

    fn standardize(&self, random: &mut Random) -> Layer {
        Layer::Standardize { mean: random.values(self.dim, -0.5, 0.5), deviation: random.values(self.dim, 0.5, 2.0) }
    }
}

impl Random {
    fn gru(&mut self, from: usize, units: usize) -> GruWeights {
        let reach = 2.0 / (units as f32).sqrt();
        GruWeights {
            input: self.weights(&[3 * units, from], reach),
            recurrent: self.weights(&[3 * units, units], reach),
            input_bias: self.values(3 * units, -0.3, 0.3),
            recurrent_bias: self.values(3 * units, -0.3, 0.3),
        }
    }
}

/// Evaluates one sequence, step after step, by definition, in f64.
pub fn forward_sequence(network: &Network, sequence: &[f32]) -> Expected {
    let dim = network.input.dim().expect("a network for sequences");
    let shape = ImageShape { height: sequence.len() / dim, width: 1, channels: dim };
    run(network, Value { shape, data: sequence.iter().copied().map(f64::from).collect() })
}

pub(super) fn standardize(mut value: Value, mean: &[f32], deviation: &[f32]) -> Value {
    for step in value.data.chunks_exact_mut(mean.len()) {
        for ((x, &mean), &deviation) in step.iter_mut().zip(mean).zip(deviation) {
            *x = (*x - f64::from(mean)) / f64::from(deviation);
        }
    }
    value
}

pub(super) fn gru(value: &Value, [forward, backward]: [&GruWeights; 2], keep: GruOutput) -> Value {
    let steps: Vec<&[f64]> = value.data.chunks_exact(value.shape.channels).collect();
    let ahead = states(forward, steps.iter().copied());
    let mut back = states(backward, steps.iter().rev().copied());
    back.reverse();
    match (keep, ahead.last(), back.first()) {
        (GruOutput::Last, Some(last), Some(first)) => Value::vector([last.as_slice(), first].concat()),
        _ => {
            let data: Vec<f64> = ahead.into_iter().zip(back).flat_map(|(a, b)| [a, b].concat()).collect();
            let channels = data.len() / value.shape.height;
            Value { shape: ImageShape { channels, ..value.shape }, data }
        }
    }
}

/// The state after each step.
fn states<'a>(weights: &GruWeights, steps: impl Iterator<Item = &'a [f64]>) -> Vec<Vec<f64>> {
    let units = weights.recurrent.shape[1];
    let sum = |row: &[f32], x: &[f64]| row.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum::<f64>();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let mut state = vec![0.0; units];
    steps
        .map(|x| {
            let from_input = |row: usize| {
                sum(&weights.input.data[row * x.len()..][..x.len()], x) + f64::from(weights.input_bias[row])
            };
            let from_state = |row: usize| {
                sum(&weights.recurrent.data[row * units..][..units], &state) + f64::from(weights.recurrent_bias[row])
            };
            let unit = |unit: usize| {
                let update = sigmoid(from_input(unit) + from_state(unit));
                let reset = sigmoid(from_input(units + unit) + from_state(units + unit));
                let candidate = (from_input(2 * units + unit) + reset * from_state(2 * units + unit)).tanh();
                (1.0 - update) * candidate + update * state[unit]
            };
            let next: Vec<f64> = (0..units).map(unit).collect();
            state.clone_from(&next);
            next
        })
        .collect()
}

pub(super) fn resample(value: &Value, steps: usize) -> Value {
    let last = value.shape.height - 1;
    let at = |step: usize, channel: usize| {
        let place = step as f64 * last as f64 / (steps - 1) as f64;
        let low = (place.floor() as usize).min(last);
        let (below, above) = (value.at(low, 0, channel), value.at((low + 1).min(last), 0, channel));
        below + (above - below) * (place - low as f64)
    };
    let channels = value.shape.channels;
    let data = (0..steps).flat_map(|step| (0..channels).map(move |channel| (step, channel)));
    let data = data.map(|(step, channel)| at(step, channel)).collect();
    Value { shape: ImageShape { height: steps, ..value.shape }, data }
}
