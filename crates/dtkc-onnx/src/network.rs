//! The plain description of a frozen network, and the check that its layers fit together.

use dtkc_item::ItemShape;

use crate::OnnxError;
use crate::sizes::{Size, next_size};

/// A tensor of weights: a shape and its values in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// Sizes of the dimensions, outermost first.
    pub shape: Vec<usize>,
    /// The values, last dimension fastest.
    pub data: Vec<f32>,
}

impl Weights {
    /// Weights of the given shape.
    pub fn new(shape: impl Into<Vec<usize>>, data: Vec<f32>) -> Self {
        Self { shape: shape.into(), data }
    }
}

/// One direction of a GRU with `h` units. The gates stand in ONNX's order: update `z`, reset `r`, candidate `h`. From the
/// input `x` and the state `s` of the step before (zeros at first), with `W` the input and `R` the recurrent weights:
///
/// ```text
/// z = sigmoid(W_z x + b_z + R_z s + c_z)
/// r = sigmoid(W_r x + b_r + R_r s + c_r)
/// n = tanh(W_h x + b_h + r * (R_h s + c_h))      linear_before_reset = 1, as PyTorch and cuDNN
/// s' = (1 - z) * n + z * s
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GruWeights {
    /// `[3 h, in]`.
    pub input: Weights,
    /// `[3 h, h]`.
    pub recurrent: Weights,
    /// `b`, `3 h` values.
    pub input_bias: Vec<f32>,
    /// `c`, `3 h` values.
    pub recurrent_bias: Vec<f32>,
}

/// What a [`Layer::Gru`] hands on, `2 h` values either way, the forward direction first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GruOutput {
    /// Both directions' states at every step.
    Steps,
    /// The forward state at the last step and the backward state at the first: what each has when it has seen everything.
    Last,
}

/// One step of a frozen network.
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    /// Convolution (cross-correlation) with stride 1.
    Conv {
        /// `[out, in, kernel height, kernel width]`.
        weight: Weights,
        /// One value per output channel.
        bias: Vec<f32>,
        /// Rows and columns of zeros: top, left, bottom, right.
        padding: [usize; 4],
    },
    /// `max(x, 0)`.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
    /// `gamma (x - mean) / sqrt(variance + epsilon) + beta` per channel (of an image) or per feature (of a vector).
    BatchNorm {
        /// Scale.
        gamma: Vec<f32>,
        /// Shift.
        beta: Vec<f32>,
        /// Running mean.
        mean: Vec<f32>,
        /// Running (biased) variance.
        variance: Vec<f32>,
        /// Added to the variance.
        epsilon: f32,
    },
    /// Largest value of each `size` x `size` square; squares do not overlap, an incomplete one at the border is dropped.
    MaxPool {
        /// Side of the square.
        size: usize,
    },
    /// Mean of each `size` x `size` square, dropped at the border as for [`Layer::MaxPool`].
    AveragePool {
        /// Side of the square.
        size: usize,
    },
    /// `(x - mean) / deviation` for each dimension of a sequence's steps, or of a vector.
    Standardize {
        /// One value per dimension.
        mean: Vec<f32>,
        /// One value per dimension, above 0.
        deviation: Vec<f32>,
    },
    /// A bidirectional GRU over a sequence. The backward direction begins at the last step that the sequence has.
    Gru {
        /// From the first step to the last.
        forward: GruWeights,
        /// From the last step to the first.
        backward: GruWeights,
        /// What it hands on.
        keep: GruOutput,
    },
    /// A sequence of any length becomes one of `steps` steps: step `i` lies at `i (length - 1) / (steps - 1)`, on the line
    /// between the two steps around that place. For [`Layer::Flatten`], so that methods for vectors can use sequences.
    Resample {
        /// At least 2.
        steps: usize,
    },
    /// An image becomes a vector, channels fastest (the network was trained channels-last); a resampled sequence becomes
    /// one, step after step.
    Flatten,
    /// `x W + b`.
    Dense {
        /// `[in, out]`.
        weight: Weights,
        /// One value per output.
        bias: Vec<f32>,
    },
    /// Marks the value at this place as the output `embedding`; computes nothing.
    Embedding,
    /// Softmax over the features, behind a dense layer; the last layer, its value is the output `probabilities`.
    Softmax,
    /// `q_j = t_j / sum_j t_j` with `t_j = 1 / (1 + ||z - c_j||^2)`: how close a vector is to each centre by Student's t
    /// with one degree of freedom. The last layer, its value is the output `probabilities`.
    StudentT {
        /// `[clusters, features]`.
        centres: Weights,
    },
}

impl Layer {
    /// The layer's kind, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Layer::Conv { .. } => "Conv",
            Layer::Relu => "Relu",
            Layer::Tanh => "Tanh",
            Layer::BatchNorm { .. } => "BatchNorm",
            Layer::MaxPool { .. } => "MaxPool",
            Layer::AveragePool { .. } => "AveragePool",
            Layer::Standardize { .. } => "Standardize",
            Layer::Gru { .. } => "Gru",
            Layer::Resample { .. } => "Resample",
            Layer::Flatten => "Flatten",
            Layer::Dense { .. } => "Dense",
            Layer::Embedding => "Embedding",
            Layer::Softmax => "Softmax",
            Layer::StudentT { .. } => "StudentT",
        }
    }

    /// Whether its value is the probabilities: such a layer is the last one.
    pub fn is_head(&self) -> bool {
        matches!(self, Layer::Softmax | Layer::StudentT { .. })
    }
}

/// A frozen clustering network. An image at its input has values that were scaled to 0..1; the writer adds that
/// scaling and the transpose to channels-first. A sequence comes as it is: its scaling is a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// What it takes.
    pub input: ItemShape,
    /// The layers, in order: [`Layer::Embedding`] exactly once; last a dense layer and [`Layer::Softmax`], or
    /// [`Layer::StudentT`].
    pub layers: Vec<Layer>,
}

/// What a checked network takes and produces.
pub(crate) struct Checked {
    /// What it takes.
    pub input: ItemShape,
    /// The size before each layer, and after the last.
    pub sizes: Vec<Size>,
    /// Width of the embedding.
    pub embedding: usize,
    /// Number of clusters.
    pub clusters: usize,
}

impl Network {
    /// The number of clusters: the width of the last dense layer.
    pub fn clusters(&self) -> Result<usize, OnnxError> {
        Ok(self.check()?.clusters)
    }

    /// The width of the embedding.
    pub fn embedding_size(&self) -> Result<usize, OnnxError> {
        Ok(self.check()?.embedding)
    }

    /// Numbers in all values between layers together, for one item: what memory of a pass that keeps them goes with.
    /// A sequence counts with one step. [`Layer::StudentT`] has a value for each feature of each centre.
    pub fn values(&self) -> Result<usize, OnnxError> {
        let between = self.check()?.sizes.into_iter().map(|size| size.dims().iter().product::<usize>());
        let within = self.layers.iter().map(|layer| match layer {
            Layer::StudentT { centres } => centres.data.len(),
            _ => 0,
        });
        Ok(between.chain(within).fold(0, usize::saturating_add))
    }

    /// Renumbers the clusters: new cluster `i` is the old cluster `order[i]`. The columns of the last dense layer, or the
    /// centres, are permuted, so the probabilities stay the same in another order.
    pub fn reorder_clusters(&mut self, order: &[usize]) -> Result<(), OnnxError> {
        let clusters = self.clusters()?;
        let mut seen = vec![false; clusters];
        for &old in order {
            match seen.get_mut(old) {
                Some(slot) if !*slot => *slot = true,
                _ => return Err(OnnxError::Network(format!("{order:?} is not an order of its {clusters} clusters"))),
            }
        }
        if order.len() != clusters {
            return Err(OnnxError::Network(format!("{order:?} is not an order of its {clusters} clusters")));
        }
        // `check` has made sure that a softmax stands behind a dense layer.
        match self.layers.iter_mut().rev().find(|layer| !matches!(layer, Layer::Softmax)) {
            Some(Layer::Dense { weight, bias }) => {
                let permute = |row: &[f32]| order.iter().map(|&old| row[old]).collect::<Vec<_>>();
                weight.data = weight.data.chunks_exact(clusters).flat_map(permute).collect();
                *bias = permute(bias);
            }
            Some(Layer::StudentT { centres }) => {
                let width = centres.shape[1];
                centres.data = order.iter().flat_map(|&old| &centres.data[old * width..][..width]).copied().collect();
            }
            _ => {}
        }
        Ok(())
    }

    /// Follows the shapes through the layers.
    pub(crate) fn check(&self) -> Result<Checked, OnnxError> {
        let mut size = self.check_input()?;
        let mut sizes = vec![size];
        let mut embedding = None;
        for (position, layer) in self.layers.iter().enumerate() {
            let fail = |reason: String| OnnxError::Layer { layer: position, kind: layer.kind(), reason };
            size = next_size(layer, size).map_err(fail)?;
            sizes.push(size);
            if let (Layer::Embedding, Size::Vector(features)) = (layer, size)
                && embedding.replace(features).is_some()
            {
                return Err(fail("there is a second embedding".into()));
            }
            if layer.is_head() && position + 1 != self.layers.len() {
                return Err(fail("it gives the probabilities and must be the last layer".into()));
            }
        }
        let Some(embedding) = embedding else {
            return Err(OnnxError::Network("no layer is marked as the embedding".into()));
        };
        self.check_head()?;
        match size {
            Size::Vector(clusters) if clusters >= 2 => Ok(Checked { input: self.input, sizes, embedding, clusters }),
            _ => Err(OnnxError::Network("it needs at least two clusters".into())),
        }
    }

    /// The size of what it takes, where that is something that can be.
    fn check_input(&self) -> Result<Size, OnnxError> {
        let wrong = |reason: String| Err(OnnxError::Network(reason));
        match self.input {
            ItemShape::Image(image) if image.color().is_none() => {
                wrong(format!("images have 1 or 3 channels, not {}", image.channels))
            }
            ItemShape::Image(image) if image.is_empty() => {
                wrong(format!("the input is {} x {} pixels", image.height, image.width))
            }
            ItemShape::Image(image) => Ok(Size::Image(image)),
            ItemShape::Sequence { dim: 0 } => wrong("its sequences have no values".into()),
            ItemShape::Sequence { dim } => Ok(Size::Sequence(dim)),
            ItemShape::Features(shape) if shape.is_empty() => wrong("its features have no values".into()),
            ItemShape::Features(shape) => Ok(Size::Vector(shape.dim)),
        }
    }

    /// What gives the probabilities must be something whose clusters can be renumbered by permuting weights.
    fn check_head(&self) -> Result<(), OnnxError> {
        let mut head = self.layers.iter().rev();
        match (head.next(), head.next()) {
            (Some(Layer::Softmax), Some(Layer::Dense { .. })) | (Some(Layer::StudentT { .. }), _) => Ok(()),
            _ => Err(OnnxError::Network("it must end with a dense layer and a softmax, or with Student's t".into())),
        }
    }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
