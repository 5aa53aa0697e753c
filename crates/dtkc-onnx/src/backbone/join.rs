//! A graph from pixels to features and a head that takes features, as one model file.

use dtkc_item::ItemShape;
use prost::Message as _;

use super::prefix::FEATURES;
use super::{opset_of, wrong};
use crate::network::Checked;
use crate::proto::{DataType, Graph, Model};
use crate::read::{Field, GRAPH_TAG, append_metadata, fields};
use crate::write::builder::{Builder, Dim};
use crate::write::fit_clusters;
use crate::{Metadata, Network, OnnxError};

/// The tag of `GraphProto.output`.
const OUTPUT_TAG: u64 = 12;

/// The bytes of a model file: `prefix`, which [`Backbone::prefix`](super::Backbone::prefix) made, and behind it a network that
/// takes its features. The metadata describes the images.
pub fn join(prefix: &[u8], network: &Network, metadata: &Metadata) -> Result<Vec<u8>, OnnxError> {
    let checked = network.check()?;
    let ItemShape::Features(shape) = checked.input else {
        return Err(OnnxError::Network(format!("it takes {} and a backbone gives features", checked.input)));
    };
    let metadata = Metadata { embedding_size: checked.embedding, ..metadata.clone() };
    metadata.check()?;
    fit_clusters(&checked, &metadata)?;
    let model = Model::decode(prefix).map_err(|error| wrong(format!("it is no ONNX file ({error})")))?;
    let head = head(network, &checked, opset_of(&model.opset_import), shape.dim);
    let mut out = Vec::with_capacity(prefix.len() + 1024);
    for Field { tag, range, value } in fields(prefix)? {
        match tag {
            GRAPH_TAG => {
                // Fields of concatenated messages merge.
                let mut graph = without_outputs(&prefix[value])?;
                graph.extend(head.encode_to_vec());
                prost::encoding::bytes::encode(GRAPH_TAG as u32, &graph, &mut out);
            }
            _ => out.extend_from_slice(&prefix[range]),
        }
    }
    append_metadata(&mut out, &metadata)?;
    Ok(out)
}

fn head(network: &Network, checked: &Checked, opset: i64, dim: usize) -> Graph {
    let mut builder = Builder::with_opset(opset);
    builder.value(FEATURES, DataType::Float, &[Dim::Batch, Dim::Size(dim)]);
    builder.layers(network, checked, FEATURES.to_owned());
    builder.into_head(checked)
}

fn without_outputs(graph: &[u8]) -> Result<Vec<u8>, OnnxError> {
    let mut out = Vec::with_capacity(graph.len());
    for Field { tag, range, .. } in fields(graph)? {
        if tag != OUTPUT_TAG {
            out.extend_from_slice(&graph[range]);
        }
    }
    Ok(out)
}
