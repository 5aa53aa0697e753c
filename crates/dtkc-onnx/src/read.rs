//! Reading a model file's metadata, with the checks that make the file safe to hand to a runtime.

use std::collections::{BTreeMap, HashSet};

use dtkc_item::{ImageShape, ItemShape};
use prost::Message;
use sha2::{Digest, Sha256};

use crate::backbone::PREFIX;
use crate::outlier::{OUTLIER, has_output};
use crate::proto::{DataType, Dimension, DimensionValue, Entry, Graph, Model, Tensor, ValueInfo};
use crate::{Metadata, OnnxError};

/// The most bytes that a model file may have, which is what ONNX itself can hold in one file. The networks here are a few
/// hundred kilobytes, a backbone of others can be large.
pub const MAX_BYTES: u64 = (2 << 30) - 1;

/// The most rows, columns or features that are believed.
const MAX_SIZE: usize = 1 << 16;

/// SHA-256 of everything but the metadata: a flipped bit in the weights would otherwise go unnoticed.
const CHECKSUM: &str = "dtkc.graph_sha256";

/// The name of the dimension that is as long as the longest sequence of a batch.
pub(crate) const TIME: &str = "time";

/// A backbone states no sizes but that of its input; inside, a value may hold so many times as many numbers (ResNet-50: 5,
/// EfficientNet: 8, VGG: 21).
const INSIDE_BACKBONE: usize = 12;

/// The tag of `ModelProto.graph`.
pub(crate) const GRAPH_TAG: u64 = 7;
/// The tag of `ModelProto.metadata_props`.
const METADATA_TAG: u64 = 14;

/// Reads the metadata of a model file and checks that its graph is whole and fits it.
///
/// Refused, each with one sentence: files that are too large, not ONNX or cut short; ONNX models of others; an
/// unknown schema version; graphs that were altered since the export, or do not have the inputs and outputs the
/// metadata speaks of; weights that are incomplete or kept in other files.
pub fn read_metadata(bytes: &[u8]) -> Result<Metadata, OnnxError> {
    Ok(read(bytes)?.1)
}

/// The graph and the metadata of a file that passed all checks.
pub(crate) fn read(bytes: &[u8]) -> Result<(Graph, Metadata), OnnxError> {
    let model = parse(bytes)?;
    let Some(graph) = model.graph else {
        return Err(OnnxError::Damaged("it has no graph".into()));
    };
    let mut entries: BTreeMap<String, String> =
        model.metadata_props.into_iter().map(|entry| (entry.key, entry.value)).collect();
    let checksum = entries.remove(CHECKSUM);
    let metadata = Metadata::from_entries(entries)?;
    if checksum.is_some_and(|checksum| checksum != fingerprint(&without_metadata(bytes).unwrap_or_default())) {
        return Err(OnnxError::Altered);
    }
    check_graph(&graph)?;
    check_interface(&graph, &metadata)?;
    Ok((graph, metadata))
}

/// Numbers in the largest values that a graph states between two of its nodes: what memory and time of a batch go with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Largest {
    /// For one item, whatever its length.
    pub item: usize,
    /// For one step of a sequence, of those that have a time; 0 where none has.
    pub step: usize,
}

/// The largest values of a model's graph.
pub fn largest_values(bytes: &[u8]) -> Result<Largest, OnnxError> {
    let graph = parse(bytes)?.graph.unwrap_or_default();
    let mut largest = Largest { item: 1, step: 0 };
    for value in graph.input.iter().chain(&graph.value_info) {
        let shape = value.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref()?.shape.as_ref());
        let dims = shape.map_or(&[][..], |shape| &shape.dim);
        let sizes = dims.iter().map(|dimension| match dimension.value {
            Some(DimensionValue::Size(size)) => usize::try_from(size).unwrap_or(1).max(1),
            _ => 1,
        });
        let inside = if value.name.starts_with(PREFIX) { INSIDE_BACKBONE } else { 1 };
        let count = sizes.fold(inside, usize::saturating_mul);
        let is_time =
            |dimension: &Dimension| matches!(&dimension.value, Some(DimensionValue::Name(name)) if name == TIME);
        match dims.iter().any(is_time) {
            true => largest.step = largest.step.max(count),
            false => largest.item = largest.item.max(count),
        }
    }
    Ok(largest)
}

/// The same model file with other metadata; the bytes of everything else are untouched. Input, number of clusters
/// and embedding belong to the graph, so metadata that changes them is refused.
pub fn with_metadata(bytes: &[u8], metadata: &Metadata) -> Result<Vec<u8>, OnnxError> {
    let (graph, _) = read(bytes)?;
    metadata.check()?;
    check_interface(&graph, metadata)?;
    let mut out = without_metadata(bytes)?;
    append_metadata(&mut out, metadata)?;
    Ok(out)
}

/// The SHA-256 of a model file in hexadecimal: two files with the same one give the same answers.
pub fn fingerprint(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Appends the metadata entries, in the order of their keys, to a serialised model without any.
pub(crate) fn append_metadata(out: &mut Vec<u8>, metadata: &Metadata) -> Result<(), OnnxError> {
    let mut entries = metadata.to_entries()?;
    entries.insert(CHECKSUM.into(), fingerprint(out));
    let metadata_props = entries.into_iter().map(|(key, value)| Entry { key, value }).collect();
    // Fields of concatenated messages merge, so that appending entries is adding them.
    let entries = Model { metadata_props, ..Model::default() };
    out.extend_from_slice(&entries.encode_to_vec());
    Ok(())
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Model, OnnxError> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(OnnxError::TooLarge { bytes: bytes.len() as u64, limit: MAX_BYTES });
    }
    if bytes.is_empty() {
        return Err(OnnxError::Damaged("it is empty".into()));
    }
    let model = Model::decode(bytes).map_err(|error| OnnxError::Damaged(error.to_string()))?;
    if model.ir_version <= 0 || model.opset_import.is_empty() {
        return Err(OnnxError::Damaged("it names no ONNX version".into()));
    }
    check_functions(&model)?;
    Ok(model)
}

/// What stands in functions is never looked at here, and a runtime would run it.
pub(crate) fn check_functions(model: &Model) -> Result<(), OnnxError> {
    match model.functions.is_empty() {
        true => Ok(()),
        false => Err(OnnxError::Damaged("it holds functions of its own".into())),
    }
}

/// Every value must be computed before it is used, and every constant must be complete and in the file itself.
pub(crate) fn check_graph(graph: &Graph) -> Result<(), OnnxError> {
    if !graph.sparse_initializer.is_empty() {
        return Err(OnnxError::Damaged("it holds sparse weights".into()));
    }
    let mut known: HashSet<&str> = graph.input.iter().map(|value| value.name.as_str()).collect();
    for tensor in &graph.initializer {
        check_tensor(tensor)?;
        known.insert(&tensor.name);
    }
    for node in &graph.node {
        if let Some(input) = node.input.iter().find(|input| !input.is_empty() && !known.contains(input.as_str())) {
            return Err(OnnxError::Damaged(format!("node {:?} uses {input:?}, which nothing computes", node.name)));
        }
        for attribute in &node.attribute {
            if attribute.g.is_some() || !attribute.graphs.is_empty() {
                return Err(OnnxError::Damaged(format!("node {:?} holds a graph of its own", node.name)));
            }
            attribute.t.iter().chain(&attribute.tensors).try_for_each(check_tensor)?;
        }
        known.extend(node.output.iter().map(String::as_str));
    }
    match graph.output.iter().find(|output| !known.contains(output.name.as_str())) {
        Some(output) => Err(OnnxError::Damaged(format!("nothing computes its output {:?}", output.name))),
        None => Ok(()),
    }
}

fn check_tensor(tensor: &Tensor) -> Result<(), OnnxError> {
    let name = &tensor.name;
    // A runtime would open any path that is named here.
    if tensor.data_location != 0 || !tensor.external_data.is_empty() {
        return Err(OnnxError::Damaged(format!("its weights {name:?} are in another file")));
    }
    let width = match DataType::try_from(tensor.data_type) {
        Ok(DataType::Float | DataType::Int32) => 4,
        Ok(DataType::Int64) => 8,
        Ok(DataType::Uint8 | DataType::Bool) => 1,
        _ => return Ok(()),
    };
    let values = tensor.dims.iter().try_fold(1i64, |product, &dim| product.checked_mul(dim.max(0)));
    let expected = values.and_then(|count| count.checked_mul(width));
    if !tensor.raw_data.is_empty() && expected != Some(tensor.raw_data.len() as i64) {
        return Err(OnnxError::Damaged(format!("its weights {name:?} are incomplete")));
    }
    Ok(())
}

/// The graph's input and outputs must be those that the metadata speaks of.
fn check_interface(graph: &Graph, metadata: &Metadata) -> Result<(), OnnxError> {
    let (input_sizes, inputs) = match metadata.input.shape() {
        ItemShape::Image(ImageShape { height, width, channels }) => (
            vec![("input.height", height), ("input.width", width)],
            vec![("image", DataType::Uint8, vec![Some(height), Some(width), Some(channels)])],
        ),
        ItemShape::Sequence { dim } => (
            vec![("input.dim", dim)],
            vec![("values", DataType::Float, vec![None, Some(dim)]), ("lengths", DataType::Int64, vec![])],
        ),
        // No model file takes features.
        ItemShape::Features(shape) => {
            return Err(OnnxError::Disagreement(format!(
                "a model takes images or sequences, not {}",
                ItemShape::Features(shape)
            )));
        }
    };
    let embedding = metadata.embedding_size;
    let sizes = input_sizes.into_iter().chain([("embedding_size", embedding)]);
    if let Some((key, size)) = sizes.into_iter().find(|(_, size)| !(1..=MAX_SIZE).contains(size)) {
        let reason = format!("is {size}, not between 1 and {MAX_SIZE}");
        return Err(OnnxError::Entry { key: format!("dtkc.{key}"), reason });
    }
    let mut outputs = vec![
        ("cluster", DataType::Int64, vec![]),
        ("probabilities", DataType::Float, vec![Some(metadata.k())]),
        ("embedding", DataType::Float, vec![Some(embedding)]),
    ];
    match (metadata.outlier, has_output(graph)) {
        (Some(_), _) => outputs.push((OUTLIER, DataType::Float, vec![])),
        (None, true) => {
            let text = "the graph has an output `outlier` and the metadata no threshold for it";
            return Err(OnnxError::Disagreement(text.into()));
        }
        (None, false) => {}
    }
    for (values, expected, role) in [(&graph.input, &inputs[..], "input"), (&graph.output, &outputs[..], "output")] {
        for (name, kind, dims) in expected {
            let Some(value) = values.iter().find(|value| value.name == *name) else {
                return Err(OnnxError::Disagreement(format!("the graph has no {role} `{name}`")));
            };
            check_value(value, *kind, dims)
                .map_err(|reason| OnnxError::Disagreement(format!("the graph's {role} `{name}` {reason}")))?;
        }
        if role == "input" && values.len() != expected.len() {
            let (found, wanted) = (values.len(), expected.len());
            return Err(OnnxError::Disagreement(format!("the graph has {found} inputs instead of {wanted}")));
        }
    }
    Ok(())
}

/// `dims` are those behind the batch; `None` is one that is known when the model runs.
fn check_value(value: &ValueInfo, kind: DataType, dims: &[Option<usize>]) -> Result<(), String> {
    let Some(tensor) = value.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref()) else {
        return Err("is not a tensor".into());
    };
    if tensor.elem_type != kind as i32 {
        return Err(format!("is not of type {kind:?}"));
    }
    let found: Vec<&Dimension> = tensor.shape.iter().flat_map(|shape| &shape.dim).collect();
    let fits = |(dimension, wanted): (&&Dimension, &Option<usize>)| match (&dimension.value, wanted) {
        (Some(DimensionValue::Size(size)), Some(wanted)) => usize::try_from(*size) == Ok(*wanted),
        (value, None) => !matches!(value, Some(DimensionValue::Size(_))),
        _ => false,
    };
    if found.len() != dims.len() + 1 || !found[1..].iter().zip(dims).all(fits) {
        let found: Vec<String> = found.into_iter().map(dimension_text).collect();
        let wanted = dims.iter().map(|size| size.map_or_else(|| TIME.to_owned(), |size| size.to_string()));
        let wanted: Vec<String> = std::iter::once("batch".to_owned()).chain(wanted).collect();
        return Err(format!("has shape [{}] and the metadata says [{}]", found.join(", "), wanted.join(", ")));
    }
    Ok(())
}

fn dimension_text(dimension: &Dimension) -> String {
    match &dimension.value {
        Some(DimensionValue::Size(size)) => size.to_string(),
        Some(DimensionValue::Name(name)) => name.clone(),
        None => "?".into(),
    }
}

/// A serialised model without its metadata entries, every other byte as it was.
pub(crate) fn without_metadata(bytes: &[u8]) -> Result<Vec<u8>, OnnxError> {
    let mut out = Vec::with_capacity(bytes.len());
    for field in fields(bytes)? {
        if field.tag != METADATA_TAG {
            out.extend_from_slice(&bytes[field.range]);
        }
    }
    Ok(out)
}

/// A top-level field of a serialised message: its tag, where it lies, key included, and where its value does.
pub(crate) struct Field {
    pub tag: u64,
    pub range: std::ops::Range<usize>,
    pub value: std::ops::Range<usize>,
}

/// Splits a serialised message into its fields without understanding them.
pub(crate) fn fields(bytes: &[u8]) -> Result<Vec<Field>, OnnxError> {
    let cut = || OnnxError::Damaged("a field is cut short".into());
    let mut fields = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let start = position;
        let key = varint(bytes, &mut position).ok_or_else(cut)?;
        let length = match key & 7 {
            0 => {
                varint(bytes, &mut position).ok_or_else(cut)?;
                0
            }
            1 => 8,
            2 => varint(bytes, &mut position).ok_or_else(cut)?,
            5 => 4,
            kind => return Err(OnnxError::Damaged(format!("a field has the unknown wire type {kind}"))),
        };
        let length = usize::try_from(length).map_err(|_| cut())?;
        let value = position;
        position = position.checked_add(length).filter(|&end| end <= bytes.len()).ok_or_else(cut)?;
        fields.push(Field { tag: key >> 3, range: start..position, value: value..position });
    }
    Ok(fields)
}

fn varint(bytes: &[u8], position: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*position)?;
        *position += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
