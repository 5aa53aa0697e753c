//! The layers of a model file, read back into the [`Network`] that it was written from.
//!
//! Nodes are read leniently, and then the network is written again: only where that gives the same graph, byte for byte, is
//! it what the file says. So nothing that another program changed about a node can go unnoticed, and no node has to be
//! checked by itself.

use std::collections::HashMap;

use dtkc_item::{ImageShape, ItemShape};
use prost::Message;

use crate::backbone::PREFIX;
use crate::edit::is_edited;
use crate::outlier::{bare_graph, change_graph};
use crate::proto::{Attribute, DataType, Graph, Model, Node, Tensor};
use crate::read::{GRAPH_TAG, fields, parse, read};
use crate::sizes::{Size, next_size};
use crate::write::graph as graph_of;
use crate::{Layer, Metadata, Network, OnnxError, Weights};

/// Nodes of Student's t behind its first.
const STUDENT_T_NODES: usize = 6;

/// Reads the network of a model file for images, and its metadata. The file is checked as by [`crate::read_metadata`].
///
/// Refused in one sentence: models for sequences, and graphs that [`crate::write()`] would not write just so. Memory stays
/// below five times the size of the file.
pub fn read_network(bytes: &[u8]) -> Result<(Network, Metadata), OnnxError> {
    let (_, metadata) = read(bytes)?;
    // What tells outliers stands behind the layers and is none.
    let bytes = &change_graph(bytes, bare_graph)?;
    let graph = parse(bytes)?.graph.unwrap_or_default();
    let input = metadata.input.shape();
    let ItemShape::Image(image) = input else {
        let text = "it takes sequences, for which this is not made; use a model for images";
        return Err(OnnxError::Layers(text.into()));
    };
    if graph.node.iter().any(|node| node.name.starts_with(PREFIX)) {
        let text =
            "it holds a network of somebody else, which is only run; use a model that was trained without --backbone";
        return Err(OnnxError::Layers(text.into()));
    }
    if is_edited(&graph) {
        let text = "its clusters were edited, and the network knows those from before; take the edits back with `dtkc-train clusters --undo`";
        return Err(OnnxError::Layers(text.into()));
    }
    let layers = Reader::new(&graph, image).layers()?;
    let network = Network { input, layers };
    let checked = network.check().map_err(|error| foreign(&error.to_string()))?;
    let again = Model { graph: Some(graph_of(&network, &checked)), ..Model::default() }.encode_to_vec();
    let mut graphs = fields(bytes)?.into_iter().filter(|field| field.tag == GRAPH_TAG);
    match (graphs.next(), graphs.next()) {
        (Some(field), None) if bytes[field.range.clone()] == again => Ok((network, metadata)),
        _ => Err(foreign("its graph is not as this version of the program writes it")),
    }
}

fn foreign(reason: &str) -> OnnxError {
    OnnxError::Layers(format!("{reason}; use a model that `dtkc-train export` wrote and nobody changed"))
}

/// Goes through the nodes, layer by layer.
struct Reader<'a> {
    nodes: std::slice::Iter<'a, Node>,
    constants: HashMap<&'a str, &'a Tensor>,
    size: Size,
    /// The image before the layer before, where that was a flatten.
    flattened: Option<ImageShape>,
}

impl<'a> Reader<'a> {
    fn new(graph: &'a Graph, image: ImageShape) -> Self {
        let constants = graph.initializer.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        Self { nodes: graph.node.iter(), constants, size: Size::Image(image), flattened: None }
    }

    fn layers(mut self) -> Result<Vec<Layer>, OnnxError> {
        // The scaling of pixels ends with putting channels first.
        self.nodes.by_ref().find(|node| node.op_type == "Transpose");
        let mut layers = Vec::new();
        while let Some(node) = self.nodes.next() {
            // A transpose belongs to the flatten behind it, the last node only chooses the largest probability.
            if matches!(node.op_type.as_str(), "Transpose" | "ArgMax") {
                continue;
            }
            let layer = self.layer(node)?;
            let before = self.size;
            self.size = next_size(&layer, before).map_err(|reason| wrong(node, &reason))?;
            self.flattened = match (&layer, before) {
                (Layer::Flatten, Size::Image(image)) => Some(image),
                _ => None,
            };
            layers.push(layer);
        }
        Ok(layers)
    }

    fn layer(&mut self, node: &Node) -> Result<Layer, OnnxError> {
        Ok(match node.op_type.as_str() {
            "Conv" => Layer::Conv {
                weight: self.weights(node, 1)?,
                bias: self.weights(node, 2)?.data,
                padding: sizes::<4>(node, "pads")?,
            },
            "Relu" => Layer::Relu,
            "Tanh" => Layer::Tanh,
            "BatchNormalization" => Layer::BatchNorm {
                gamma: self.weights(node, 1)?.data,
                beta: self.weights(node, 2)?.data,
                mean: self.weights(node, 3)?.data,
                variance: self.weights(node, 4)?.data,
                epsilon: attribute(node, "epsilon")?.f.unwrap_or_default(),
            },
            "MaxPool" => Layer::MaxPool { size: sizes::<2>(node, "kernel_shape")?[0] },
            "AveragePool" => Layer::AveragePool { size: sizes::<2>(node, "kernel_shape")?[0] },
            "Flatten" => Layer::Flatten,
            "Gemm" => {
                let Weights { shape, data } = self.weights(node, 1)?;
                let data = match self.flattened {
                    Some(image) if shape.len() == 2 && shape[0] == image.len() => channels_last_rows(&data, image),
                    _ => data,
                };
                Layer::Dense { weight: Weights { shape, data }, bias: self.weights(node, 2)?.data }
            }
            "Identity" => Layer::Embedding,
            "Softmax" => Layer::Softmax,
            "Unsqueeze" => self.student_t(node)?,
            _ => return Err(wrong(node, "no layer of ours becomes that")),
        })
    }

    /// Seven nodes, of which the second has the centres.
    fn student_t(&mut self, first: &Node) -> Result<Layer, OnnxError> {
        let mut rest = self.nodes.by_ref().take(STUDENT_T_NODES);
        let apart = rest.next().ok_or_else(|| wrong(first, "nothing follows it"))?;
        rest.for_each(drop);
        let Weights { shape, data } = self.weights(apart, 1)?;
        match shape[..] {
            [1, clusters, width] => Ok(Layer::StudentT { centres: Weights::new([clusters, width], data) }),
            _ => Err(wrong(apart, "it has no centres")),
        }
    }

    /// The constant that is an input of a node.
    fn weights(&self, node: &Node, input: usize) -> Result<Weights, OnnxError> {
        let name = node.input.get(input).map_or("", String::as_str);
        let tensor = self.constants.get(name).ok_or_else(|| wrong(node, "a weight of it is computed"))?;
        let shape: Option<Vec<usize>> = tensor.dims.iter().map(|&size| usize::try_from(size).ok()).collect();
        let shape = shape.ok_or_else(|| wrong(node, "a weight of it has a negative size"))?;
        let values = shape.iter().try_fold(4usize, |product, &size| product.checked_mul(size));
        if tensor.data_type != DataType::Float as i32 || values != Some(tensor.raw_data.len()) {
            return Err(wrong(node, "a weight of it is no block of 32-bit numbers"));
        }
        let number = |bytes: &[u8]| bytes.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
        Ok(Weights { shape, data: tensor.raw_data.chunks_exact(4).map(number).collect() })
    }
}

fn wrong(node: &Node, reason: &str) -> OnnxError {
    foreign(&format!("node {:?} ({:?}) does not fit, {reason}", node.name, node.op_type))
}

fn attribute<'a>(node: &'a Node, name: &str) -> Result<&'a Attribute, OnnxError> {
    let found = node.attribute.iter().find(|attribute| attribute.name == name);
    found.ok_or_else(|| wrong(node, &format!("it does not say its {name}")))
}

/// An attribute of `N` sizes.
fn sizes<const N: usize>(node: &Node, name: &str) -> Result<[usize; N], OnnxError> {
    let sizes = attribute(node, name)?.ints.iter().map(|&size| usize::try_from(size).ok().filter(|&s| s < 1 << 16));
    let sizes: Option<Vec<usize>> = sizes.collect();
    let wrong = || wrong(node, &format!("its {name} cannot be"));
    sizes.and_then(|sizes| sizes.try_into().ok()).ok_or_else(wrong)
}

/// The rows of a dense layer behind a flatten as they were trained: the writer puts them in the order of channels-first.
fn channels_last_rows(data: &[f32], image: ImageShape) -> Vec<f32> {
    let (pixels, out) = (image.height * image.width, data.len() / image.len());
    let row = |pixel: usize, channel: usize| &data[(channel * pixels + pixel) * out..][..out];
    let places = (0..pixels).flat_map(|pixel| (0..image.channels).map(move |channel| (pixel, channel)));
    places.flat_map(|(pixel, channel)| row(pixel, channel)).copied().collect()
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
