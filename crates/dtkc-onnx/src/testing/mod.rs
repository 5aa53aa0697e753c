//! Networks to test with, and a slow, plain evaluation to compare with.
//!
//! [`forward`] follows the definition of each layer in f64, channels-last, and shares nothing with the writer.

mod foreign;
mod golden;
mod outlier;
mod sequences;

use dtkc_item::{Color, ImageShape, ImageSpec, ItemShape, Resize};

pub use self::foreign::{COPIES, End, Foreign, WIDTH};
pub use self::golden::{Golden, GoldenNetwork, golden};
pub use self::sequences::{SequenceSample, forward_sequence};
use crate::{Cluster, ImageInput, InputSpec, Layer, Metadata, Network, Provenance, Weights};

/// Size of a test network: the paper's layers with fewer or more filters.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// 1 or 3.
    pub channels: usize,
    /// Filters of every convolution.
    pub filters: usize,
    /// Width of the embedding.
    pub hidden: usize,
    /// Clusters.
    pub clusters: usize,
    /// Rows and columns of zeros around each convolution's input.
    pub padding: usize,
    /// Seed of the weights.
    pub seed: u64,
}

impl Sample {
    /// Small enough for a test, with three channels and different sides so that no transposition goes unnoticed.
    pub fn small() -> Self {
        Self { height: 22, width: 27, channels: 3, filters: 5, hidden: 7, clusters: 4, padding: 0, seed: 1 }
    }

    /// The paper's network for MNIST.
    pub fn mnist() -> Self {
        Self { height: 28, width: 28, channels: 1, filters: 32, hidden: 100, clusters: 10, padding: 0, seed: 1 }
    }

    /// The images that the network takes.
    pub fn shape(&self) -> ImageShape {
        ImageShape { height: self.height, width: self.width, channels: self.channels }
    }

    /// The network, with random weights that keep values near 1.
    pub fn network(&self) -> Network {
        let mut random = Random(self.seed);
        let mut size = self.shape();
        let mut layers = Vec::new();
        for kernel in [5, 3] {
            layers.push(self.conv(&mut random, &mut size, kernel));
            layers.push(Layer::Relu);
            layers.push(self.conv(&mut random, &mut size, kernel));
            layers.push(random.batch_norm(self.filters));
            layers.push(Layer::Relu);
            layers.push(Layer::MaxPool { size: 2 });
            size = ImageShape { height: size.height / 2, width: size.width / 2, ..size };
        }
        layers.push(Layer::Flatten);
        layers.push(random.dense(size.len(), self.hidden, 1.0));
        layers.push(Layer::Relu);
        layers.push(random.batch_norm(self.hidden));
        layers.push(Layer::Embedding);
        layers.push(random.dense(self.hidden, self.clusters, 2.0));
        layers.push(Layer::Softmax);
        Network { input: ItemShape::Image(self.shape()), layers }
    }

    /// The same network with a tangent before the embedding and Student's t as its end.
    pub fn student_t(&self) -> Network {
        let Network { input, mut layers } = self.network();
        layers.truncate(layers.len() - 3);
        let centres = Random(self.seed ^ 0x7ea).weights(&[self.clusters, self.hidden], 1.0);
        layers.extend([Layer::Tanh, Layer::Embedding, Layer::StudentT { centres }]);
        Network { input, layers }
    }

    /// The same network for images that are larger by a factor, and a bit more that is dropped: it averages them down first.
    pub fn reduced(&self, factor: usize) -> (Self, Network) {
        let mut network = self.network();
        let more = factor - 1;
        let larger = Self { height: self.height * factor + more, width: self.width * factor + more, ..*self };
        network.layers.insert(0, Layer::AveragePool { size: factor });
        (larger, Network { input: ItemShape::Image(larger.shape()), ..network })
    }

    /// Metadata that fits the network.
    pub fn metadata(&self) -> Metadata {
        let color = if self.channels == 1 { Color::Gray } else { Color::Rgb };
        let image = ImageSpec { height: self.height, width: self.width, color, resize: Resize::Fit };
        metadata(ImageInput { image, filter: "triangle".into() }.into(), self.hidden, self.clusters, self.seed)
    }

    /// `count` images: noise, with every seventh one constant.
    pub fn images(&self, count: usize) -> Vec<u8> {
        let mut random = Random(self.seed ^ 0x5eed);
        let each = self.shape().len();
        let pixel = |index: usize| if (index / each) % 7 == 6 { 77 } else { (random.next() * 255.0) as u8 };
        (0..count * each).map(pixel).collect()
    }

    fn conv(&self, random: &mut Random, size: &mut ImageShape, kernel: usize) -> Layer {
        let shape = [self.filters, size.channels, kernel, kernel];
        let reach = (6.0 / (size.channels * kernel * kernel) as f32).sqrt();
        let side = |length: usize| length + 2 * self.padding + 1 - kernel;
        *size = ImageShape { height: side(size.height), width: side(size.width), channels: self.filters };
        let bias = random.values(self.filters, -0.1, 0.1);
        Layer::Conv { weight: random.weights(&shape, reach), bias, padding: [self.padding; 4] }
    }
}

/// What a model file says about a test network.
fn metadata(input: InputSpec, hidden: usize, clusters: usize, seed: u64) -> Metadata {
    let cluster = |id: usize| Cluster { name: (id == 1).then(|| "ones".into()), size: (100 - id) as u64 };
    Metadata {
        embedding_size: hidden,
        provenance: Provenance {
            method: "dtkc".into(),
            preset: "plus".into(),
            config_hash: "0123abcd".into(),
            seed,
            dataset: "sample".into(),
            dataset_fingerprint: "89ef".into(),
            tool_version: "0.1.0".into(),
        },
        ..Metadata::new(input, (0..clusters).map(cluster).collect())
    }
}

/// SplitMix64: enough for test weights.
struct Random(u64);

impl Random {
    /// Uniform in 0..1.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }

    fn values(&mut self, count: usize, low: f32, high: f32) -> Vec<f32> {
        (0..count).map(|_| low + (high - low) * self.next()).collect()
    }

    fn weights(&mut self, shape: &[usize], reach: f32) -> Weights {
        Weights::new(shape, self.values(shape.iter().product(), -reach, reach))
    }

    fn dense(&mut self, input: usize, output: usize, gain: f32) -> Layer {
        let weight = self.weights(&[input, output], gain * (6.0 / input as f32).sqrt());
        Layer::Dense { weight, bias: self.values(output, -0.1, 0.1) }
    }

    fn batch_norm(&mut self, width: usize) -> Layer {
        Layer::BatchNorm {
            gamma: self.values(width, 0.5, 1.5),
            beta: self.values(width, -0.5, 0.5),
            mean: self.values(width, -0.2, 0.6),
            variance: self.values(width, 0.2, 2.0),
            epsilon: 1e-3,
        }
    }
}

/// What a network should answer for one item.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Probability of each cluster.
    pub probabilities: Vec<f64>,
    /// The embedding.
    pub embedding: Vec<f64>,
}

impl Expected {
    /// The most probable cluster, the first on a tie.
    pub fn cluster(&self) -> usize {
        (0..self.probabilities.len())
            .rev()
            .max_by(|&a, &b| self.probabilities[a].total_cmp(&self.probabilities[b]))
            .unwrap_or(0)
    }
}

/// A value between two layers: `[height, width, channels]`, a vector being 1 x 1, a sequence having a row for each step.
struct Value {
    shape: ImageShape,
    data: Vec<f64>,
}

impl Value {
    fn vector(data: Vec<f64>) -> Self {
        Self { shape: ImageShape { height: 1, width: 1, channels: data.len() }, data }
    }

    fn at(&self, row: usize, column: usize, channel: usize) -> f64 {
        self.data[(row * self.shape.width + column) * self.shape.channels + channel]
    }
}

/// Evaluates one image by definition, in f64.
pub fn forward(network: &Network, image: &[u8]) -> Expected {
    let low = f64::from(image.iter().copied().min().unwrap_or(0));
    let high = f64::from(image.iter().copied().max().unwrap_or(0));
    let scale = |&pixel: &u8| if high > low { (f64::from(pixel) - low) / (high - low) } else { 0.0 };
    let shape = network.input.image().expect("a network for images");
    run(network, Value { shape, data: image.iter().map(scale).collect() })
}

fn run(network: &Network, mut value: Value) -> Expected {
    let mut embedding = Vec::new();
    for layer in &network.layers {
        value = match layer {
            Layer::Embedding => {
                embedding.clone_from(&value.data);
                value
            }
            other => apply(other, value),
        };
    }
    Expected { probabilities: value.data, embedding }
}

fn apply(layer: &Layer, mut value: Value) -> Value {
    match layer {
        Layer::Conv { weight, bias, padding } => conv(&value, weight, bias, *padding),
        Layer::Relu => {
            value.data.iter_mut().for_each(|v| *v = v.max(0.0));
            value
        }
        Layer::Tanh => {
            value.data.iter_mut().for_each(|v| *v = v.tanh());
            value
        }
        Layer::BatchNorm { gamma, beta, mean, variance, epsilon } => {
            let channels = value.shape.channels;
            for (index, v) in value.data.iter_mut().enumerate() {
                let c = index % channels;
                let deviation = (f64::from(variance[c]) + f64::from(*epsilon)).sqrt();
                *v = f64::from(gamma[c]) * (*v - f64::from(mean[c])) / deviation + f64::from(beta[c]);
            }
            value
        }
        Layer::MaxPool { size } => pool(&value, *size, |square| square.fold(f64::MIN, f64::max)),
        Layer::AveragePool { size } => pool(&value, *size, |square| square.sum::<f64>() / (size * size) as f64),
        Layer::Standardize { mean, deviation } => sequences::standardize(value, mean, deviation),
        Layer::Gru { forward, backward, keep } => sequences::gru(&value, [forward, backward], *keep),
        Layer::Resample { steps } => sequences::resample(&value, *steps),
        Layer::Flatten => Value::vector(value.data),
        Layer::Dense { weight, bias } => dense(&value, weight, bias),
        Layer::Embedding => value,
        Layer::Softmax => {
            let highest = value.data.iter().copied().fold(f64::MIN, f64::max);
            value.data.iter_mut().for_each(|v| *v = (*v - highest).exp());
            let sum: f64 = value.data.iter().sum();
            value.data.iter_mut().for_each(|v| *v /= sum);
            value
        }
        Layer::StudentT { centres } => {
            let square = |(a, b): (&f64, &f32)| (a - f64::from(*b)).powi(2);
            let near = |centre: &[f32]| 1.0 / (1.0 + value.data.iter().zip(centre).map(square).sum::<f64>());
            let near: Vec<f64> = centres.data.chunks_exact(value.data.len()).map(near).collect();
            let sum: f64 = near.iter().sum();
            Value::vector(near.into_iter().map(|t| t / sum).collect())
        }
    }
}

fn conv(value: &Value, weight: &Weights, bias: &[f32], padding: [usize; 4]) -> Value {
    let (out, rows, columns) = (weight.shape[0], weight.shape[2], weight.shape[3]);
    let input = value.shape;
    let height = input.height + padding[0] + padding[2] + 1 - rows;
    let width = input.width + padding[1] + padding[3] + 1 - columns;
    let mut data = Vec::with_capacity(height * width * out);
    for row in 0..height {
        for column in 0..width {
            for (filter, &shift) in bias.iter().enumerate() {
                let mut sum = f64::from(shift);
                for channel in 0..input.channels {
                    for (dy, dx) in (0..rows).flat_map(|dy| (0..columns).map(move |dx| (dy, dx))) {
                        let (y, x) = ((row + dy).wrapping_sub(padding[0]), (column + dx).wrapping_sub(padding[1]));
                        if y < input.height && x < input.width {
                            let place = ((filter * input.channels + channel) * rows + dy) * columns + dx;
                            sum += value.at(y, x, channel) * f64::from(weight.data[place]);
                        }
                    }
                }
                data.push(sum);
            }
        }
    }
    Value { shape: ImageShape { height, width, channels: out }, data }
}

fn pool(value: &Value, size: usize, join: impl Fn(&mut dyn Iterator<Item = f64>) -> f64) -> Value {
    let ImageShape { height, width, channels } = value.shape;
    let (height, width) = (height / size, width / size);
    let mut data = Vec::with_capacity(height * width * channels);
    for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
        for channel in 0..channels {
            let mut square =
                (0..size * size).map(|i| value.at(row * size + i / size, column * size + i % size, channel));
            data.push(join(&mut square));
        }
    }
    Value { shape: ImageShape { height, width, channels }, data }
}

fn dense(value: &Value, weight: &Weights, bias: &[f32]) -> Value {
    let out = weight.shape[1];
    let column = |c: usize| {
        let products = value.data.iter().enumerate().map(|(row, v)| v * f64::from(weight.data[row * out + c]));
        products.sum::<f64>() + f64::from(bias[c])
    };
    Value::vector((0..out).map(column).collect())
}
