//! Networks to test with, and a slow, plain evaluation to compare with.
//!
//! [`forward`] follows the definition of each layer in f64, channels-last, and shares nothing with the writer.

use crate::{Cluster, InputSpec, Layer, Metadata, Network, Provenance, Weights};

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

    /// The network, with random weights that keep values near 1.
    pub fn network(&self) -> Network {
        let mut random = Random(self.seed);
        let mut size = (self.channels, self.height, self.width);
        let mut layers = Vec::new();
        for kernel in [5, 3] {
            layers.push(self.conv(&mut random, &mut size, kernel));
            layers.push(Layer::Relu);
            layers.push(self.conv(&mut random, &mut size, kernel));
            layers.push(random.batch_norm(self.filters));
            layers.push(Layer::Relu);
            layers.push(Layer::MaxPool { size: 2 });
            size = (size.0, size.1 / 2, size.2 / 2);
        }
        layers.push(Layer::Flatten);
        layers.push(random.dense(size.0 * size.1 * size.2, self.hidden, 1.0));
        layers.push(Layer::Relu);
        layers.push(random.batch_norm(self.hidden));
        layers.push(Layer::Embedding);
        layers.push(random.dense(self.hidden, self.clusters, 2.0));
        layers.push(Layer::Softmax);
        Network { height: self.height, width: self.width, channels: self.channels, layers }
    }

    /// Metadata that fits the network.
    pub fn metadata(&self) -> Metadata {
        let color = if self.channels == 1 { "gray" } else { "rgb" };
        let cluster = |id: usize| Cluster { name: (id == 1).then(|| "ones".into()), size: (100 - id) as u64 };
        Metadata {
            input: InputSpec {
                height: self.height,
                width: self.width,
                color: color.into(),
                resize: "fit".into(),
                filter: "triangle".into(),
            },
            embedding_size: self.hidden,
            clusters: (0..self.clusters).map(cluster).collect(),
            provenance: Provenance {
                method: "dtkc".into(),
                preset: "plus".into(),
                config_hash: "0123abcd".into(),
                seed: self.seed,
                dataset: "sample".into(),
                dataset_fingerprint: "89ef".into(),
                tool_version: "0.1.0".into(),
            },
            ..Metadata::default()
        }
    }

    /// `count` images: noise, with every seventh one constant.
    pub fn images(&self, count: usize) -> Vec<u8> {
        let mut random = Random(self.seed ^ 0x5eed);
        let each = self.height * self.width * self.channels;
        let pixel = |index: usize| if (index / each) % 7 == 6 { 77 } else { (random.next() * 255.0) as u8 };
        (0..count * each).map(pixel).collect()
    }

    fn conv(&self, random: &mut Random, size: &mut (usize, usize, usize), kernel: usize) -> Layer {
        let shape = [self.filters, size.0, kernel, kernel];
        let reach = (6.0 / (size.0 * kernel * kernel) as f32).sqrt();
        *size = (self.filters, size.1 + 2 * self.padding + 1 - kernel, size.2 + 2 * self.padding + 1 - kernel);
        let bias = random.values(self.filters, -0.1, 0.1);
        Layer::Conv { weight: random.weights(&shape, reach), bias, padding: [self.padding; 4] }
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

/// What a network should answer for one image.
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

/// A value between two layers: `[height, width, channels]`, a vector being 1 x 1.
struct Value {
    height: usize,
    width: usize,
    channels: usize,
    data: Vec<f64>,
}

impl Value {
    fn at(&self, row: usize, column: usize, channel: usize) -> f64 {
        self.data[(row * self.width + column) * self.channels + channel]
    }
}

/// Evaluates one image by definition, in f64.
pub fn forward(network: &Network, image: &[u8]) -> Expected {
    let low = f64::from(image.iter().copied().min().unwrap_or(0));
    let high = f64::from(image.iter().copied().max().unwrap_or(0));
    let scale = |&pixel: &u8| if high > low { (f64::from(pixel) - low) / (high - low) } else { 0.0 };
    let data = image.iter().map(scale).collect();
    let mut value = Value { height: network.height, width: network.width, channels: network.channels, data };
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
        Layer::BatchNorm { gamma, beta, mean, variance, epsilon } => {
            let channels = value.channels;
            for (index, v) in value.data.iter_mut().enumerate() {
                let c = index % channels;
                let deviation = (f64::from(variance[c]) + f64::from(*epsilon)).sqrt();
                *v = f64::from(gamma[c]) * (*v - f64::from(mean[c])) / deviation + f64::from(beta[c]);
            }
            value
        }
        Layer::MaxPool { size } => max_pool(&value, *size),
        Layer::Flatten => Value { height: 1, width: 1, channels: value.data.len(), data: value.data },
        Layer::Dense { weight, bias } => dense(&value, weight, bias),
        Layer::Embedding => value,
        Layer::Softmax => {
            let highest = value.data.iter().copied().fold(f64::MIN, f64::max);
            value.data.iter_mut().for_each(|v| *v = (*v - highest).exp());
            let sum: f64 = value.data.iter().sum();
            value.data.iter_mut().for_each(|v| *v /= sum);
            value
        }
    }
}

fn conv(value: &Value, weight: &Weights, bias: &[f32], padding: [usize; 4]) -> Value {
    let (out, rows, columns) = (weight.shape[0], weight.shape[2], weight.shape[3]);
    let height = value.height + padding[0] + padding[2] + 1 - rows;
    let width = value.width + padding[1] + padding[3] + 1 - columns;
    let mut data = Vec::with_capacity(height * width * out);
    for row in 0..height {
        for column in 0..width {
            for (filter, &shift) in bias.iter().enumerate() {
                let mut sum = f64::from(shift);
                for channel in 0..value.channels {
                    for (dy, dx) in (0..rows).flat_map(|dy| (0..columns).map(move |dx| (dy, dx))) {
                        let (y, x) = ((row + dy).wrapping_sub(padding[0]), (column + dx).wrapping_sub(padding[1]));
                        if y < value.height && x < value.width {
                            let place = ((filter * value.channels + channel) * rows + dy) * columns + dx;
                            sum += value.at(y, x, channel) * f64::from(weight.data[place]);
                        }
                    }
                }
                data.push(sum);
            }
        }
    }
    Value { height, width, channels: out, data }
}

fn max_pool(value: &Value, size: usize) -> Value {
    let (height, width, channels) = (value.height / size, value.width / size, value.channels);
    let mut data = Vec::with_capacity(height * width * channels);
    for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
        for channel in 0..channels {
            let square = (0..size * size).map(|i| value.at(row * size + i / size, column * size + i % size, channel));
            data.push(square.fold(f64::MIN, f64::max));
        }
    }
    Value { height, width, channels, data }
}

fn dense(value: &Value, weight: &Weights, bias: &[f32]) -> Value {
    let out = weight.shape[1];
    let column = |c: usize| {
        let products = value.data.iter().enumerate().map(|(row, v)| v * f64::from(weight.data[row * out + c]));
        products.sum::<f64>() + f64::from(bias[c])
    };
    Value { height: 1, width: 1, channels: out, data: (0..out).map(column).collect() }
}
