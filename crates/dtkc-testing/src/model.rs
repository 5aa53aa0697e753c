//! A small model file with random weights: the same seed gives the same bytes.

use dtkc_item::{Color, ImageSpec, ItemShape, Resize};
use dtkc_onnx::{Cluster, GruOutput, GruWeights, ImageInput, InputSpec, Layer, Metadata, Network, Weights};

use crate::Noise;

/// Rows and columns of the gray images that [`model`] takes.
pub const SIDE: usize = 12;
/// Its clusters.
pub const CLUSTERS: usize = 5;
/// The width of its embedding.
pub const EMBEDDING: usize = 16;

/// A model for gray images of [`SIDE`] with [`CLUSTERS`] clusters.
pub fn model(seed: u64) -> Vec<u8> {
    dtkc_onnx::write(&network(seed, SIDE, CLUSTERS), &metadata(SIDE, CLUSTERS)).unwrap()
}

/// A network with random weights, large enough in the last layer that every cluster gets images.
pub fn network(seed: u64, side: usize, clusters: usize) -> Network {
    let mut noise = Noise(seed);
    let filters = 4;
    let pooled = (side - 2) / 2;
    let layers = vec![
        noise.conv(1, filters, 0.6, 0),
        Layer::Relu,
        Layer::MaxPool { size: 2 },
        Layer::Flatten,
        noise.dense(pooled * pooled * filters, EMBEDDING, 0.4),
        Layer::Relu,
        Layer::Embedding,
        Layer::Dense {
            weight: Weights::new([EMBEDDING, clusters], noise.values(EMBEDDING * clusters, 1.5)),
            bias: vec![0.0; clusters],
        },
        Layer::Softmax,
    ];
    Network { input: ItemShape::Image(spec(side).shape()), layers }
}

/// What a model file says about such a network.
pub fn metadata(side: usize, clusters: usize) -> Metadata {
    let input = ImageInput { image: spec(side), filter: "triangle".into() }.into();
    let clusters = vec![Cluster { name: None, size: 10 }; clusters];
    Metadata { embedding_size: EMBEDDING, ..Metadata::new(input, clusters) }
}

/// A model for sequences of `dim` values a step with [`CLUSTERS`] clusters.
pub fn sequence_model(seed: u64, dim: usize) -> Vec<u8> {
    let clusters = vec![Cluster { name: None, size: 10 }; CLUSTERS];
    let metadata = Metadata::new(InputSpec::Sequence { dim }, clusters);
    dtkc_onnx::write(&sequence_network(seed, dim), &metadata).unwrap()
}

/// A bidirectional GRU with random weights before a clustering module, large enough that every cluster gets sequences.
pub fn sequence_network(seed: u64, dim: usize) -> Network {
    let (mut noise, units) = (Noise(seed), 8);
    let layers = vec![
        Layer::Standardize { mean: vec![0.0; dim], deviation: vec![1.0; dim] },
        Layer::Gru { forward: noise.gru(dim, units), backward: noise.gru(dim, units), keep: GruOutput::Last },
        noise.dense(2 * units, EMBEDDING, 1.0),
        Layer::Relu,
        Layer::Embedding,
        noise.dense(EMBEDDING, CLUSTERS, 1.5),
        Layer::Softmax,
    ];
    Network { input: ItemShape::Sequence { dim }, layers }
}

/// Gray images of that side; others are fitted in.
fn spec(side: usize) -> ImageSpec {
    ImageSpec { height: side, width: side, color: Color::Gray, resize: Resize::Fit }
}

impl Noise {
    /// A convolution of 3 x 3.
    pub fn conv(&mut self, from: usize, to: usize, scale: f32, padding: usize) -> Layer {
        let weight = Weights::new([to, from, 3, 3], self.values(to * from * 9, scale));
        Layer::Conv { weight, bias: self.values(to, 0.1), padding: [padding; 4] }
    }

    /// One direction of a GRU.
    pub fn gru(&mut self, from: usize, units: usize) -> GruWeights {
        GruWeights {
            input: Weights::new([3 * units, from], self.values(3 * units * from, 1.5)),
            recurrent: Weights::new([3 * units, units], self.values(3 * units * units, 0.8)),
            input_bias: self.values(3 * units, 0.2),
            recurrent_bias: self.values(3 * units, 0.2),
        }
    }

    /// A dense layer.
    pub fn dense(&mut self, from: usize, to: usize, scale: f32) -> Layer {
        let weight = Weights::new([from, to], self.values(from * to, scale));
        Layer::Dense { weight, bias: self.values(to, 0.1) }
    }
}
