//! A small model file with random weights: the same seed gives the same bytes.

use dtkc_item::{Color, ImageSpec, ItemShape, Resize};
use dtkc_onnx::{Cluster, ImageInput, Layer, Metadata, Network, Weights};

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

    /// A dense layer.
    pub fn dense(&mut self, from: usize, to: usize, scale: f32) -> Layer {
        let weight = Weights::new([from, to], self.values(from * to, scale));
        Layer::Dense { weight, bias: self.values(to, 0.1) }
    }
}
