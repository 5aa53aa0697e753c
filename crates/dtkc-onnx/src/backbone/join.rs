//! A graph from pixels to features and a head that takes features, as one model file.

use dtkc_item::ItemShape;
use prost::Message as _;

use super::prefix::{FEATURES, opset_of};
use super::{GRAPH_TAG, wrong};
use crate::network::Checked;
use crate::proto::{DataType, Graph, Model};
use crate::read::{Field, append_metadata, fields};
use crate::write::builder::{Builder, Dim, value_info};
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
    if metadata.k() != checked.clusters {
        let (described, actual) = (metadata.k(), checked.clusters);
        return Err(OnnxError::Mismatch(format!("it describes {described} clusters and the network has {actual}")));
    }
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
    let outputs = [
        value_info("cluster", DataType::Int64, &[Dim::Batch]),
        value_info("probabilities", DataType::Float, &[Dim::Batch, Dim::Size(checked.clusters)]),
        value_info("embedding", DataType::Float, &[Dim::Batch, Dim::Size(checked.embedding)]),
    ];
    let mut graph = builder.into_graph();
    graph.value_info.retain(|value| outputs.iter().all(|output| output.name != value.name));
    Graph { output: outputs.into(), ..graph }
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
