//! A frozen network in burn, so that what it says has a slope with respect to its input.

use burn::tensor::activation::{relu, softmax};
use burn::tensor::{Device, Tensor, TensorData};
use dtkc_item::ImageShape;
use dtkc_onnx::{Layer, Network, Weights};
use dtkc_ops::Padding;

use super::Output;
use crate::error::TrainError;

/// A frozen network for images whose weights are tensors of one device.
#[derive(Debug)]
pub(super) struct Runner {
    steps: Vec<Step>,
    shape: ImageShape,
    device: Device,
}

/// Layers that are computed together.
#[derive(Debug)]
enum Step {
    Conv {
        weight: Tensor<4>,
        bias: Tensor<1>,
        border: Border,
        relu: bool,
    },
    /// `max-pool(relu(x scale + shift))`, which a batch normalisation becomes.
    ScaleReluPool {
        scale: Tensor<1>,
        shift: Tensor<1>,
        pool: usize,
    },
    /// `x scale + shift` for every channel or feature.
    Scale {
        scale: Tensor<1>,
        shift: Tensor<1>,
    },
    Relu,
    Tanh,
    MaxPool(usize),
    AveragePool(usize),
    Flatten,
    Dense {
        weight: Tensor<2>,
        bias: Tensor<1>,
    },
    /// Minus the logarithm of one and the squared distance to each centre: its softmax is Student's t.
    Near {
        centres: Tensor<2>,
    },
}

/// Zeros around an image.
#[derive(Debug, Clone, Copy)]
enum Border {
    Usual(Padding),
    /// Top, left, bottom, right.
    Other([usize; 4]),
}

/// A value between two steps.
enum Value {
    Image(Tensor<4>),
    Vector(Tensor<2>),
}

impl Runner {
    /// The network on a device. Layers for sequences are refused.
    pub(super) fn new(network: &Network, device: &Device) -> Result<Self, TrainError> {
        // Whoever asks for the clusters has the layers checked.
        network.clusters()?;
        let Some(shape) = network.input.image() else {
            let text = "this model takes sequences, and maps of importance are made of images; use a model for images";
            return Err(TrainError::Mismatch(text.into()));
        };
        let (mut steps, mut is_image, mut rest) = (Vec::new(), true, network.layers.as_slice());
        while !rest.is_empty() {
            let (step, count) = step(rest, is_image, device)?;
            is_image &= !matches!(step, Some(Step::Flatten));
            steps.extend(step);
            rest = &rest[count..];
        }
        Ok(Self { steps, shape, device: device.clone() })
    }

    /// Scaled images as a tensor.
    pub(super) fn images(&self, values: Vec<f32>) -> Tensor<4> {
        let ImageShape { height, width, channels } = self.shape;
        let count = values.len() / self.shape.len();
        Tensor::from_data(TensorData::new(values, [count, height, width, channels]), &self.device)
    }

    /// What the network says of scaled images.
    ///
    /// # Shapes
    /// `images`: `[n, height, width, channels]`; the result is `[n, clusters]`.
    pub(super) fn forward(&self, images: Tensor<4>, output: Output) -> Tensor<2> {
        let scores = match self.steps.iter().fold(Value::Image(images), |value, step| step.apply(value)) {
            Value::Vector(scores) => scores,
            Value::Image(image) => image.flatten(1, 3),
        };
        match output {
            Output::Score => scores,
            Output::Probability => softmax(scores, 1),
        }
    }
}

/// The step that the first layers become, if they compute anything, and how many they are.
fn step(layers: &[Layer], is_image: bool, device: &Device) -> Result<(Option<Step>, usize), TrainError> {
    let vector = |values: Vec<f32>| Tensor::<1>::from_data(TensorData::from(values.as_slice()), device);
    let matrix = |weights: &Weights| {
        let shape = [weights.shape[0], weights.shape[1]];
        Tensor::<2>::from_data(TensorData::new(weights.data.clone(), shape), device)
    };
    Ok(match layers {
        [Layer::Conv { weight, bias, padding }, rest @ ..] => {
            let relu = matches!(rest, [Layer::Relu, ..]);
            let border = border(*padding, [weight.shape[2], weight.shape[3]]);
            let step = Step::Conv { weight: kernel(weight, device), bias: vector(bias.clone()), border, relu };
            (Some(step), 1 + usize::from(relu))
        }
        [Layer::BatchNorm { gamma, beta, mean, variance, epsilon }, rest @ ..] => {
            let scale: Vec<f32> = gamma.iter().zip(variance).map(|(g, v)| g / (v + epsilon).sqrt()).collect();
            let shift = beta.iter().zip(mean).zip(&scale).map(|((b, m), s)| b - m * s).collect();
            let (scale, shift) = (vector(scale), vector(shift));
            match rest {
                [Layer::Relu, Layer::MaxPool { size }, ..] if is_image => {
                    (Some(Step::ScaleReluPool { scale, shift, pool: *size }), 3)
                }
                [Layer::Relu, ..] if is_image => (Some(Step::ScaleReluPool { scale, shift, pool: 1 }), 2),
                _ => (Some(Step::Scale { scale, shift }), 1),
            }
        }
        [Layer::Relu, ..] => (Some(Step::Relu), 1),
        [Layer::Tanh, ..] => (Some(Step::Tanh), 1),
        [Layer::MaxPool { size }, ..] => (Some(Step::MaxPool(*size)), 1),
        [Layer::AveragePool { size }, ..] => (Some(Step::AveragePool(*size)), 1),
        [Layer::Flatten, ..] => (Some(Step::Flatten), 1),
        [Layer::Dense { weight, bias }, ..] => {
            (Some(Step::Dense { weight: matrix(weight), bias: vector(bias.clone()) }), 1)
        }
        [Layer::StudentT { centres }, ..] => (Some(Step::Near { centres: matrix(centres) }), 1),
        // The softmax is left to whoever wants probabilities.
        [Layer::Embedding | Layer::Softmax, ..] | [] => (None, 1),
        [other, ..] => {
            let text = format!("the layer {} takes sequences, and maps of importance are made of images", other.kind());
            return Err(TrainError::Mismatch(text));
        }
    })
}

/// Weights `[out, in, kh, kw]` become `[kh, kw, in, out]`, which the operation takes.
fn kernel(weight: &Weights, device: &Device) -> Tensor<4> {
    let shape = [weight.shape[0], weight.shape[1], weight.shape[2], weight.shape[3]];
    let tensor = Tensor::<4>::from_data(TensorData::new(weight.data.clone(), shape), device);
    // Through plain data, so that it lies in memory as it is used and is not put in order at every step.
    Tensor::from_data(tensor.permute([2, 3, 1, 0]).into_data(), device)
}

fn border(padding: [usize; 4], kernel: [usize; 2]) -> Border {
    let is = |usual: Padding| {
        let [(top, bottom), (left, right)] = kernel.map(|length| usual.amounts(length));
        padding == [top, left, bottom, right]
    };
    match [Padding::Valid, Padding::Same].into_iter().find(|&usual| is(usual)) {
        Some(usual) => Border::Usual(usual),
        None => Border::Other(padding),
    }
}

impl Step {
    fn apply(&self, value: Value) -> Value {
        match (self, value) {
            (Self::Conv { weight, bias, border, relu }, Value::Image(x)) => {
                let (x, padding) = match *border {
                    Border::Usual(padding) => (x, padding),
                    Border::Other(amounts) => (padded(x, amounts), Padding::Valid),
                };
                Value::Image(dtkc_ops::conv2d(x, weight.clone(), bias.clone(), padding, *relu))
            }
            (Self::ScaleReluPool { scale, shift, pool }, Value::Image(x)) => {
                Value::Image(dtkc_ops::scale_relu_pool(x, scale.clone(), shift.clone(), *pool))
            }
            (Self::Scale { scale, shift }, Value::Image(x)) => {
                let wide = |values: &Tensor<1>| values.clone().reshape([1, 1, 1, -1]);
                Value::Image(x * wide(scale) + wide(shift))
            }
            (Self::Scale { scale, shift }, Value::Vector(x)) => {
                Value::Vector(x * scale.clone().unsqueeze() + shift.clone().unsqueeze())
            }
            (Self::Relu, Value::Image(x)) => Value::Image(relu(x)),
            (Self::Relu, Value::Vector(x)) => Value::Vector(relu(x)),
            (Self::Tanh, Value::Image(x)) => Value::Image(x.tanh()),
            (Self::Tanh, Value::Vector(x)) => Value::Vector(x.tanh()),
            (Self::MaxPool(size), Value::Image(x)) => Value::Image(pooled(x, *size, |x| x.max_dim(4).max_dim(2))),
            (Self::AveragePool(size), Value::Image(x)) => Value::Image(pooled(x, *size, |x| x.mean_dim(4).mean_dim(2))),
            (Self::Flatten, Value::Image(x)) => Value::Vector(x.flatten(1, 3)),
            (Self::Dense { weight, bias }, Value::Vector(x)) => {
                Value::Vector(x.matmul(weight.clone()) + bias.clone().unsqueeze())
            }
            (Self::Near { centres }, Value::Vector(x)) => Value::Vector(near(x, centres)),
            // The network was checked: nothing else comes.
            (_, value) => value,
        }
    }
}

/// Differences to each centre are squared and added, not taken from a product: what lies on a centre is at the distance 0.
fn near(x: Tensor<2>, centres: &Tensor<2>) -> Tensor<2> {
    let apart = x.unsqueeze_dim::<3>(1) - centres.clone().unsqueeze_dim::<3>(0);
    let far: Tensor<2> = (apart.clone() * apart).sum_dim(2).squeeze_dim(2);
    far.log1p().neg()
}

fn padded(x: Tensor<4>, [top, left, bottom, right]: [usize; 4]) -> Tensor<4> {
    let [n, height, width, channels] = x.dims();
    let around = Tensor::zeros([n, height + top + bottom, width + left + right, channels], &x.device());
    around.slice_assign([0..n, top..top + height, left..left + width, 0..channels], x)
}

/// Squares of an image joined by `join`, which takes `[n, rows, size, columns, size, channels]`.
fn pooled(x: Tensor<4>, size: usize, join: impl Fn(Tensor<6>) -> Tensor<6>) -> Tensor<4> {
    let [n, height, width, channels] = x.dims();
    let (rows, columns) = (height / size, width / size);
    let whole = x.slice([0..n, 0..rows * size, 0..columns * size, 0..channels]);
    join(whole.reshape([n, rows, size, columns, size, channels])).reshape([n, rows, columns, channels])
}
