//! Networks for sequences whose answers NumPy has computed: `scripts/golden/sequences_golden.py`.

use dtkc_item::ItemShape;
use serde::Deserialize;

use super::{Expected, metadata};
use crate::{GruOutput, GruWeights, InputSpec, Layer, Metadata, Network, Weights};

/// A network, and what it should answer.
#[derive(Debug, Clone)]
pub struct GoldenNetwork {
    /// The network.
    pub network: Network,
    /// What a model file says about it.
    pub metadata: Metadata,
    /// Its answer for each of [`Golden::sequences`].
    pub answers: Vec<Expected>,
}

/// Sequences, and what networks should answer for them.
#[derive(Debug, Clone)]
pub struct Golden {
    /// Sequences of several lengths, 1 among them.
    pub sequences: Vec<Vec<f32>>,
    /// Two bidirectional GRUs before the clustering module; and resampling before centres.
    pub networks: [GoldenNetwork; 2],
}

type Matrix = Vec<Vec<f32>>;

#[derive(Deserialize)]
struct File {
    gru: GruNetwork,
    gru_answers: Vec<Answer>,
    resampled: Resampled,
    resampled_answers: Vec<Answer>,
    sequences: Vec<Matrix>,
}

#[derive(Deserialize)]
struct Answer {
    probabilities: Vec<f64>,
    embedding: Vec<f64>,
}

#[derive(Deserialize)]
struct GruNetwork {
    mean: Vec<f32>,
    deviation: Vec<f32>,
    gru: Vec<Directions>,
    dense: Matrix,
    dense_bias: Vec<f32>,
    norm: Norm,
    output: Matrix,
    output_bias: Vec<f32>,
}

#[derive(Deserialize)]
struct Directions {
    forward: Direction,
    backward: Direction,
}

#[derive(Deserialize)]
struct Direction {
    input: Matrix,
    recurrent: Matrix,
    input_bias: Vec<f32>,
    recurrent_bias: Vec<f32>,
}

#[derive(Deserialize)]
struct Norm {
    gamma: Vec<f32>,
    beta: Vec<f32>,
    mean: Vec<f32>,
    variance: Vec<f32>,
    epsilon: f32,
}

#[derive(Deserialize)]
struct Resampled {
    mean: Vec<f32>,
    deviation: Vec<f32>,
    steps: usize,
    centres: Matrix,
}

/// The sequences, networks and answers of the file.
pub fn golden() -> Golden {
    let file: File = serde_json::from_str(include_str!("sequences.json")).expect("the golden file is whole");
    let networks = [(file.gru.layers(), file.gru_answers), (file.resampled.layers(), file.resampled_answers)];
    let networks = networks.map(|((dim, layers), answers)| {
        let answers: Vec<Expected> = answers
            .into_iter()
            .map(|Answer { probabilities, embedding }| Expected { probabilities, embedding })
            .collect();
        let (k, hidden) = (answers[0].probabilities.len(), answers[0].embedding.len());
        GoldenNetwork {
            network: Network { input: ItemShape::Sequence { dim }, layers },
            metadata: metadata(InputSpec::Sequence { dim }, hidden, k, 7),
            answers,
        }
    });
    Golden { sequences: file.sequences.into_iter().map(|steps| steps.concat()).collect(), networks }
}

fn weights(matrix: Matrix) -> Weights {
    Weights::new([matrix.len(), matrix[0].len()], matrix.concat())
}

impl GruNetwork {
    fn layers(self) -> (usize, Vec<Layer>) {
        let (dim, grus) = (self.mean.len(), self.gru.len());
        let mut layers = vec![Layer::Standardize { mean: self.mean, deviation: self.deviation }];
        for (number, Directions { forward, backward }) in self.gru.into_iter().enumerate() {
            let keep = if number + 1 == grus { GruOutput::Last } else { GruOutput::Steps };
            layers.push(Layer::Gru { forward: forward.weights(), backward: backward.weights(), keep });
        }
        let Norm { gamma, beta, mean, variance, epsilon } = self.norm;
        layers.extend([
            Layer::Dense { weight: weights(self.dense), bias: self.dense_bias },
            Layer::Relu,
            Layer::BatchNorm { gamma, beta, mean, variance, epsilon },
            Layer::Embedding,
            Layer::Dense { weight: weights(self.output), bias: self.output_bias },
            Layer::Softmax,
        ]);
        (dim, layers)
    }
}

impl Direction {
    fn weights(self) -> GruWeights {
        let Self { input, recurrent, input_bias, recurrent_bias } = self;
        GruWeights { input: weights(input), recurrent: weights(recurrent), input_bias, recurrent_bias }
    }
}

impl Resampled {
    fn layers(self) -> (usize, Vec<Layer>) {
        let Self { mean, deviation, steps, centres } = self;
        let dim = mean.len();
        let layers = vec![
            Layer::Standardize { mean, deviation },
            Layer::Resample { steps },
            Layer::Flatten,
            Layer::Embedding,
            Layer::StudentT { centres: weights(centres) },
        ];
        (dim, layers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::forward_sequence;

    #[test]
    fn the_plain_evaluation_says_what_numpy_says() {
        let Golden { sequences, networks } = golden();
        for GoldenNetwork { network, answers, .. } in networks {
            for (sequence, expected) in sequences.iter().zip(&answers) {
                let found = forward_sequence(&network, sequence);
                let pairs = found.probabilities.iter().zip(&expected.probabilities);
                let pairs = pairs.chain(found.embedding.iter().zip(&expected.embedding));
                assert!(pairs.clone().count() == expected.probabilities.len() + expected.embedding.len());
                assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-12));
            }
        }
    }
}
