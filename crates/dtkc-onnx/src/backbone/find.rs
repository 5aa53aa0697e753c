//! What a network takes, and which of its values describes an image.

use std::collections::{HashMap, HashSet};

use super::{BackboneInput, Channels, wrong};
use crate::OnnxError;
use crate::proto::{DataType, DimensionValue, Graph, Node, ValueInfo};

/// Numbers of classes that well-known networks were trained for: an output as wide as that is scores of classes.
const CLASSES: [usize; 8] = [10, 100, 365, 1000, 1001, 11_221, 21_841, 21_843];
/// Operations that change nothing about which value describes an image.
const PASSING: [&str; 7] = ["Softmax", "LogSoftmax", "Identity", "Dropout", "Cast", "Flatten", "Reshape"];

/// The one input, a batch of images.
pub(super) fn input(graph: &Graph) -> Result<BackboneInput, OnnxError> {
    let constants: HashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    let inputs: Vec<&ValueInfo> = graph.input.iter().filter(|input| !constants.contains(input.name.as_str())).collect();
    let &[input] = inputs.as_slice() else {
        let names: Vec<String> = inputs.iter().map(|input| format!("{:?}", input.name)).collect();
        let (count, names) = (names.len(), names.join(", "));
        return Err(wrong(format!("it has {count} inputs ({names}), and one that takes images is needed")));
    };
    let name = input.name.clone();
    let Some((kind, dims)) = tensor(input) else {
        return Err(wrong(format!("its input {name:?} has no shape; export it with one, as [batch, 3, 224, 224]")));
    };
    let &[_, second, third, fourth] = dims.as_slice() else {
        let count = dims.len();
        return Err(wrong(format!("its input {name:?} has {count} dimensions, and images in batches have 4")));
    };
    let is_channels = |dim: Option<usize>| matches!(dim, Some(1 | 3));
    let (order, channels, size) = match (is_channels(second), is_channels(fourth)) {
        (true, _) => (Channels::First, second, [third, fourth]),
        (false, true) => (Channels::Last, fourth, [second, third]),
        (false, false) => {
            let found = [second, third, fourth].map(|dim| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string()));
            let found = found.join(", ");
            return Err(wrong(format!(
                "its input {name:?} has the shape [batch, {found}], in which nothing is 1 or 3 channels"
            )));
        }
    };
    let takes_bytes = match DataType::try_from(kind) {
        Ok(DataType::Float) => false,
        Ok(DataType::Uint8) => true,
        _ => return Err(wrong(format!("its input {name:?} takes neither f32 nor u8; export it in f32"))),
    };
    Ok(BackboneInput { name, order, channels: channels.unwrap_or(3), size, takes_bytes })
}

/// The value before scores of classes where the network gives those; else its output.
pub(super) fn layer(graph: &Graph) -> Result<(String, &'static str), OnnxError> {
    let described = |value: &&ValueInfo| {
        let name = value.name.to_lowercase();
        ["embed", "pool", "feature"].iter().any(|word| name.contains(word))
    };
    let outputs: Vec<&ValueInfo> = graph.output.iter().collect();
    let Some(output) = outputs.iter().copied().find(described).or(outputs.first().copied()) else {
        return Err(wrong("it has no output"));
    };
    let makers: HashMap<&str, &Node> =
        graph.node.iter().flat_map(|node| node.output.iter().map(move |name| (name.as_str(), node))).collect();
    let width = tensor(output).and_then(|(_, dims)| dims.last().copied().flatten());
    match before_classes(&output.name, width, &makers) {
        Some(before) => Ok((before, "what its last layer, which gives scores of classes, is given")),
        None => Ok((output.name.clone(), "its output")),
    }
}

/// What the last dense layer is given, where that gives scores of classes.
fn before_classes(output: &str, width: Option<usize>, makers: &HashMap<&str, &Node>) -> Option<String> {
    let mut value = output;
    let mut is_classes = width.is_some_and(|width| CLASSES.contains(&width));
    loop {
        let node = makers.get(value)?;
        let first = node.input.first()?;
        match node.op_type.as_str() {
            kind if PASSING.contains(&kind) => {
                is_classes |= kind.ends_with("Softmax");
                value = first;
            }
            "Gemm" | "MatMul" => return is_classes.then(|| skip(first, makers)),
            // The bias of a product.
            "Add" => {
                let product = node.input.iter().find(|name| {
                    makers.get(name.as_str()).is_some_and(|node| ["MatMul", "Gemm"].contains(&node.op_type.as_str()))
                })?;
                value = product;
            }
            _ => return None,
        }
    }
}

/// Behind operations that only matter in training.
fn skip(value: &str, makers: &HashMap<&str, &Node>) -> String {
    match makers.get(value) {
        Some(node) if ["Dropout", "Identity"].contains(&node.op_type.as_str()) && !node.input.is_empty() => {
            skip(&node.input[0], makers)
        }
        _ => value.to_owned(),
    }
}

pub(super) fn check_layer(graph: &Graph, name: &str) -> Result<(), OnnxError> {
    if graph.node.iter().any(|node| node.output.iter().any(|output| output == name)) {
        return Ok(());
    }
    let outputs: Vec<String> = graph.output.iter().map(|output| format!("{:?}", output.name)).collect();
    let last = graph.node.iter().rev().take(5).flat_map(|node| node.output.first());
    let last: Vec<String> = last.map(|name| format!("{name:?}")).collect();
    Err(wrong(format!(
        "it has no value {name:?}; its outputs are {}, its last values {}",
        outputs.join(", "),
        last.join(", ")
    )))
}

/// Type and sizes of a value, where they are said; a size that is not known is `None`.
fn tensor(value: &ValueInfo) -> Option<(i32, Vec<Option<usize>>)> {
    let tensor = value.r#type.as_ref()?.tensor_type.as_ref()?;
    let dims = tensor.shape.as_ref()?.dim.iter().map(|dimension| match dimension.value {
        Some(DimensionValue::Size(size)) if size > 0 => usize::try_from(size).ok(),
        _ => None,
    });
    Some((tensor.elem_type, dims.collect()))
}
