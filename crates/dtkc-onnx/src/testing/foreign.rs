//! Networks as somebody else would export them: images in, classes, a vector or maps out.

use dtkc_item::ImageShape;
use prost::Message as _;

use super::Random;
use crate::proto::{
    DataType, Dimension, DimensionValue, Graph, Model, OperatorSet, Shape, TensorType, Type, ValueInfo,
};
use crate::write::builder::{Builder, int, ints};

/// Values of a vector.
pub const WIDTH: usize = 5;
/// How often its maps stand behind each other in the value `many`, which `turned` has with channels last and `long` in a row.
pub const COPIES: usize = 8;
/// Classes of the last layer.
const CLASSES: usize = 10;

/// What a network gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Probabilities of ten classes.
    Classes,
    /// One vector.
    Vector,
    /// A vector at every place of the image.
    Maps,
    /// The vector as one token among two.
    Tokens,
}

/// A small network of somebody else: a 1 x 1 convolution, ReLU, the mean over all places, and its [`End`].
#[derive(Debug, Clone, Copy)]
pub struct Foreign {
    /// The version of ONNX's operators.
    pub opset: i64,
    /// `[batch, height, width, channels]` and not `[batch, channels, height, width]`.
    pub channels_last: bool,
    /// Takes bytes.
    pub bytes: bool,
    /// A batch of this size only.
    pub batch: Option<usize>,
    /// Images of this side only.
    pub side: Option<usize>,
    /// 1 or 3.
    pub channels: usize,
    /// What it gives.
    pub end: End,
}

impl Default for Foreign {
    fn default() -> Self {
        Self { opset: 18, channels_last: false, bytes: false, batch: None, side: None, channels: 3, end: End::Classes }
    }
}

impl Foreign {
    /// The ONNX file.
    pub fn file(&self) -> Vec<u8> {
        self.model(|_| ()).encode_to_vec()
    }

    /// The same with a change to its graph.
    pub(crate) fn model(&self, change: impl FnOnce(&mut Graph)) -> Model {
        let (weight, bias) = self.weights();
        let mut builder = Builder::with_opset(self.opset);
        let mut value = "x".to_owned();
        let step = |builder: &mut Builder, op: &str, name: &str, inputs: &[&str], attributes| {
            builder.push(op, inputs, &[name], attributes);
            name.to_owned()
        };
        if self.bytes {
            builder.floats("white", &[], &[255.0]);
            let cast = step(&mut builder, "Cast", "numbers", &[&value], vec![int("to", DataType::Float as i64)]);
            value = step(&mut builder, "Div", "parts", &[&cast, "white"], vec![]);
        }
        if self.channels_last {
            value = step(&mut builder, "Transpose", "planes", &[&value], vec![ints("perm", &[0, 3, 1, 2])]);
        }
        builder.floats("w", &[WIDTH, self.channels, 1, 1], &weight);
        builder.floats("b", &[WIDTH], &bias);
        let mixed = step(&mut builder, "Conv", "mixed", &[&value, "w", "b"], vec![ints("kernel_shape", &[1, 1])]);
        let kept = step(&mut builder, "Relu", "kept", &[&mixed], vec![]);
        // Nothing leads from these to the output: they are there to be looked at.
        let many = step(&mut builder, "Concat", "many", &[kept.as_str(); COPIES], vec![int("axis", 1)]);
        step(&mut builder, "Transpose", "turned", &[&many], vec![ints("perm", &[0, 2, 3, 1])]);
        step(&mut builder, "Flatten", "long", &[&many], vec![int("axis", 1)]);
        let pooled = step(&mut builder, "GlobalAveragePool", "pooled", &[&kept], vec![]);
        let flat = step(&mut builder, "Flatten", "flat", &[&pooled], vec![int("axis", 1)]);
        let (output, dims) = match self.end {
            End::Maps => (kept, vec![Some(WIDTH), None, None]),
            End::Vector => (flat, vec![Some(WIDTH)]),
            End::Tokens => {
                builder.integers("second", &[1]);
                let row = step(&mut builder, "Unsqueeze", "row", &[&flat, "second"], vec![]);
                let twice = step(&mut builder, "Add", "twice", &[&row, &row], vec![]);
                (
                    step(&mut builder, "Concat", "tokens", &[&row, &twice], vec![int("axis", 1)]),
                    vec![Some(2), Some(WIDTH)],
                )
            }
            End::Classes => {
                let scores = Random(7).values(WIDTH * CLASSES, -1.0, 1.0);
                builder.floats("class_w", &[WIDTH, CLASSES], &scores);
                let product = step(&mut builder, "MatMul", "product", &[&flat, "class_w"], vec![]);
                (step(&mut builder, "Softmax", "classes", &[&product], vec![int("axis", 1)]), vec![Some(CLASSES)])
            }
        };
        let side = [self.side; 2];
        let input = match self.channels_last {
            true => vec![self.batch, side[0], side[1], Some(self.channels)],
            false => vec![self.batch, Some(self.channels), side[0], side[1]],
        };
        let kind = if self.bytes { DataType::Uint8 } else { DataType::Float };
        let mut graph = builder.into_graph();
        graph.input = vec![described("x", kind, &input)];
        graph.output = vec![described(&output, DataType::Float, &[vec![self.batch], dims].concat())];
        change(&mut graph);
        Model {
            ir_version: 8,
            producer_name: "somebody".into(),
            graph: Some(graph),
            opset_import: vec![OperatorSet { domain: String::new(), version: self.opset }],
            ..Model::default()
        }
    }

    /// What its vector is for an image, by the definition, of the length 1.
    pub fn vector(&self, pixels: &[u8], shape: ImageShape, mean: &[f32], deviation: &[f32]) -> Vec<f64> {
        let maps = self.maps(pixels, shape, mean, deviation);
        let sums = maps.map(|map| map.iter().sum::<f64>());
        let length = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
        sums.iter().map(|sum| sum / length).collect()
    }

    /// What its maps (`kept`) are for an image, by the definition, row by row.
    pub fn maps(&self, pixels: &[u8], shape: ImageShape, mean: &[f32], deviation: &[f32]) -> [Vec<f64>; WIDTH] {
        let (weight, bias) = self.weights();
        let mut maps = [const { Vec::new() }; WIDTH];
        for pixel in pixels.chunks_exact(shape.channels) {
            for (unit, map) in maps.iter_mut().enumerate() {
                let mut value = f64::from(bias[unit]);
                for channel in 0..self.channels {
                    // A gray image is the same in every channel.
                    let part = f64::from(pixel[channel.min(shape.channels - 1)]) / 255.0;
                    let scaled = match self.bytes {
                        true => part,
                        false => (part - f64::from(mean[channel])) / f64::from(deviation[channel]),
                    };
                    value += f64::from(weight[unit * self.channels + channel]) * scaled;
                }
                map.push(value.max(0.0));
            }
        }
        maps
    }

    fn weights(&self) -> (Vec<f32>, Vec<f32>) {
        let mut random = Random(3);
        (random.values(WIDTH * self.channels, -1.0, 1.0), random.values(WIDTH, 0.0, 1.0))
    }
}

/// A value with some sizes known.
fn described(name: &str, kind: DataType, dims: &[Option<usize>]) -> ValueInfo {
    let dimension = |(place, dim): (usize, &Option<usize>)| Dimension {
        value: Some(match dim {
            Some(size) => DimensionValue::Size(*size as i64),
            None => DimensionValue::Name(format!("d{place}")),
        }),
    };
    let shape = Shape { dim: dims.iter().enumerate().map(dimension).collect() };
    let tensor_type = TensorType { elem_type: kind as i32, shape: Some(shape) };
    ValueInfo { name: name.into(), r#type: Some(Type { tensor_type: Some(tensor_type) }) }
}
