//! Nodes, constants and the shapes of the values between them.

use dtkc_item::ItemShape;

use crate::backbone::FEATURES;
use crate::network::Checked;
use crate::proto::{
    Attribute, AttributeType, DataType, Dimension, DimensionValue, Graph, Node, Shape, Tensor, TensorType, Type,
    ValueInfo,
};
use crate::read::TIME;
use crate::sizes::Size;

/// Collects nodes, constants and the shapes of the values between them.
pub(crate) struct Builder {
    /// The version of ONNX's operators that nodes must be of.
    opset: i64,
    nodes: Vec<Node>,
    constants: Vec<Tensor>,
    values: Vec<ValueInfo>,
}

/// A dimension of a value.
#[derive(Clone, Copy)]
pub(crate) enum Dim {
    /// As many as there are items.
    Batch,
    /// As many as the longest sequence has steps.
    Time,
    /// A size that is known.
    Size(usize),
}

impl From<Size> for Vec<Dim> {
    fn from(size: Size) -> Self {
        let time = matches!(size, Size::Sequence(_)).then_some(Dim::Time);
        [Dim::Batch].into_iter().chain(time).chain(size.dims().into_iter().map(Dim::Size)).collect()
    }
}

impl Builder {
    /// Nothing yet.
    pub(crate) fn with_opset(opset: i64) -> Self {
        Self { opset, nodes: Vec::new(), constants: Vec::new(), values: Vec::new() }
    }

    /// The version of ONNX's operators that nodes must be of.
    pub(crate) fn opset(&self) -> i64 {
        self.opset
    }

    /// Adds a node with one output of the same name; `sizes` is that output's shape without the batch.
    pub(crate) fn node(
        &mut self,
        op: &str,
        name: &str,
        inputs: &[&str],
        attribute: Vec<Attribute>,
        sizes: &[usize],
    ) -> String {
        self.push(op, inputs, &[name], attribute);
        self.value(name, DataType::Float, &batch_of(sizes))
    }

    /// The same where the output may have a time dimension.
    pub(crate) fn sized(
        &mut self,
        op: &str,
        name: &str,
        inputs: &[&str],
        attribute: Vec<Attribute>,
        size: Size,
    ) -> String {
        self.push(op, inputs, &[name], attribute);
        self.value(name, DataType::Float, &Vec::from(size))
    }

    /// Adds a node; what its outputs look like is said by [`Builder::value`]. An output without a name is not computed.
    pub(crate) fn push(&mut self, op: &str, inputs: &[&str], outputs: &[&str], attribute: Vec<Attribute>) {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        self.nodes.push(Node {
            input: owned(inputs),
            output: owned(outputs),
            name: format!("{}_node", outputs.last().unwrap_or(&op)),
            op_type: op.to_owned(),
            attribute,
            domain: String::new(),
        });
    }

    /// Says what a value looks like, and gives its name back.
    pub(crate) fn value(&mut self, name: &str, kind: DataType, dims: &[Dim]) -> String {
        self.values.push(value_info(name, kind, dims));
        name.to_owned()
    }

    pub(crate) fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let raw_data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, DataType::Float, shape, raw_data);
    }

    pub(crate) fn integers(&mut self, name: &str, values: &[i64]) {
        let raw_data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, DataType::Int64, &[values.len()], raw_data);
    }

    /// One whole number without dimensions.
    pub(crate) fn scalar(&mut self, name: &str, value: i64) {
        self.constant(name, DataType::Int64, &[], value.to_le_bytes().into());
    }

    fn constant(&mut self, name: &str, kind: DataType, shape: &[usize], raw_data: Vec<u8>) {
        self.constants.push(Tensor {
            dims: shape.iter().map(|&size| size as i64).collect(),
            data_type: kind as i32,
            name: name.to_owned(),
            raw_data,
            ..Tensor::default()
        });
    }

    /// The mean over some axes, which are gone then.
    pub(crate) fn mean(&mut self, name: &str, value: &str, axes: &[i64]) -> String {
        self.reduce("ReduceMean", name, value, axes, false)
    }

    /// A value over some axes, which are 1 long or gone then; what it looks like is said by [`Builder::value`].
    pub(crate) fn reduce(&mut self, op: &str, name: &str, value: &str, axes: &[i64], keep: bool) -> String {
        let keep = int("keepdims", i64::from(keep));
        // Until version 18 axes were an attribute.
        if self.opset < 18 {
            self.push(op, &[value], &[name], vec![ints("axes", axes), keep]);
        } else {
            let constant = format!("{name}_axes");
            self.integers(&constant, axes);
            self.push(op, &[value, &constant], &[name], vec![keep]);
        }
        name.to_owned()
    }

    /// All of it, without inputs and outputs.
    pub(crate) fn into_graph(self) -> Graph {
        Graph { node: self.nodes, initializer: self.constants, value_info: self.values, ..Graph::default() }
    }

    /// All of it with the outputs of a clustering network, without inputs.
    pub(crate) fn into_head(mut self, checked: &Checked) -> Graph {
        let output = vec![
            value_info("cluster", DataType::Int64, &[Dim::Batch]),
            value_info("probabilities", DataType::Float, &batch_of(&[checked.clusters])),
            value_info("embedding", DataType::Float, &batch_of(&[checked.embedding])),
        ];
        self.values.retain(|value| output.iter().all(|output| output.name != value.name));
        Graph { output, ..self.into_graph() }
    }

    pub(super) fn finish(self, checked: &Checked) -> Graph {
        let input = match checked.input {
            ItemShape::Image(image) => {
                let sizes = [image.height, image.width, image.channels];
                vec![value_info("image", DataType::Uint8, &batch_of(&sizes))]
            }
            ItemShape::Sequence { dim } => vec![
                value_info("values", DataType::Float, &Vec::from(Size::Sequence(dim))),
                value_info("lengths", DataType::Int64, &[Dim::Batch]),
            ],
            ItemShape::Features(shape) => vec![value_info(FEATURES, DataType::Float, &batch_of(&[shape.dim]))],
        };
        Graph { name: "dtkc".into(), input, ..self.into_head(checked) }
    }
}

pub(crate) fn int(name: &str, value: i64) -> Attribute {
    Attribute { name: name.into(), i: Some(value), r#type: AttributeType::Int as i32, ..Attribute::default() }
}

pub(crate) fn float(name: &str, value: f32) -> Attribute {
    Attribute { name: name.into(), f: Some(value), r#type: AttributeType::Float as i32, ..Attribute::default() }
}

pub(crate) fn ints(name: &str, values: &[i64]) -> Attribute {
    Attribute { name: name.into(), ints: values.into(), r#type: AttributeType::Ints as i32, ..Attribute::default() }
}

pub(crate) fn text(name: &str, value: &str) -> Attribute {
    Attribute { name: name.into(), s: Some(value.into()), r#type: AttributeType::String as i32, ..Attribute::default() }
}

fn batch_of(sizes: &[usize]) -> Vec<Dim> {
    std::iter::once(Dim::Batch).chain(sizes.iter().copied().map(Dim::Size)).collect()
}

pub(crate) fn value_info(name: &str, kind: DataType, dims: &[Dim]) -> ValueInfo {
    let dimension = |dim: &Dim| {
        let value = match dim {
            Dim::Batch => DimensionValue::Name("batch".into()),
            Dim::Time => DimensionValue::Name(TIME.into()),
            Dim::Size(size) => DimensionValue::Size(*size as i64),
        };
        Dimension { value: Some(value) }
    };
    let shape = Shape { dim: dims.iter().map(dimension).collect() };
    let tensor_type = TensorType { elem_type: kind as i32, shape: Some(shape) };
    ValueInfo { name: name.into(), r#type: Some(Type { tensor_type: Some(tensor_type) }) }
}
