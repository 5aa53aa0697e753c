//! The nodes of an edit, and the bytes of a graph with and without them.

use prost::Message;

use super::Split;
use crate::OnnxError;
use crate::proto::{DataType, Graph, Node, Tensor, ValueInfo};
use crate::read::{Field, fields};
use crate::write::builder::{Builder, Dim, int, value_info};

/// The tags of nodes, constants, outputs and values in a graph.
const NODE: u64 = 1;
const CONSTANT: u64 = 5;
const OUTPUT: u64 = 12;
const VALUE: u64 = 13;

/// How many edits the graph has.
pub(super) fn edits(graph: &Graph) -> usize {
    let is_there = |number: &usize| graph.node.iter().any(|node| node.output.contains(&before(*number)));
    (1..).take_while(is_there).count()
}

/// What the probabilities and clusters from before an edit are called behind it.
fn before(number: usize) -> String {
    format!("edit{number}_before")
}

fn cluster_before(number: usize) -> String {
    format!("edit{number}_cluster")
}

/// The probabilities of merged clusters are added up.
pub(super) fn merge(number: usize, k: usize, merged: &[usize]) -> Graph {
    let lowest = merged.iter().copied().min().unwrap_or(0);
    let gone = |id: usize| id != lowest && merged.contains(&id);
    let place = |id: usize| match gone(id) {
        true => lowest,
        false => (0..id).filter(|&other| !gone(other)).count(),
    };
    let left = (0..k).filter(|&id| !gone(id)).count();
    let mut matrix = vec![0.0; k * left];
    (0..k).for_each(|id| matrix[id * left + place(id)] = 1.0);
    let mut builder = Builder::with_opset(crate::OPSET);
    let name = format!("edit{number}_matrix");
    builder.floats(&name, &[k, left], &matrix);
    builder.push("MatMul", &[&before(number), &name], &["probabilities"], vec![]);
    finish(builder, number, k)
}

/// The probability of a cluster is shared between it and a new one, by the side of a plane that an item lies on.
pub(super) fn split(number: usize, k: usize, split: &Split) -> Graph {
    let part = |part: &str| format!("edit{number}_{part}");
    let [direction, offset, matrix, slope, base] = ["direction", "offset", "matrix", "slope", "base"].map(part);
    let mut builder = Builder::with_opset(crate::OPSET);
    builder.floats(&direction, &[split.direction.len(), 1], &split.direction);
    builder.floats(&offset, &[1], &[split.offset]);
    // Every cluster to its place, the one that is cut to the new place, too.
    let mut copies = vec![0.0; k * (k + 1)];
    (0..k).for_each(|id| copies[id * (k + 1) + id] = 1.0);
    copies[split.cluster * (k + 1) + k] = 1.0;
    builder.floats(&matrix, &[k, k + 1], &copies);
    // What each is multiplied with: 1, and for the two parts 1 - s and s.
    let (mut slopes, mut bases) = (vec![0.0; k + 1], vec![1.0; k + 1]);
    (slopes[split.cluster], slopes[k], bases[k]) = (-1.0, 1.0, 0.0);
    builder.floats(&slope, &[k + 1], &slopes);
    builder.floats(&base, &[k + 1], &bases);
    let side = builder.node("Gemm", &part("side"), &["embedding", &direction, &offset], vec![], &[1]);
    let share = builder.node("Sigmoid", &part("share"), &[&side], vec![], &[1]);
    let sloped = builder.node("Mul", &part("sloped"), &[&share, &slope], vec![], &[k + 1]);
    let factors = builder.node("Add", &part("factors"), &[&sloped, &base], vec![], &[k + 1]);
    let copied = builder.node("MatMul", &part("copied"), &[&before(number), &matrix], vec![], &[k + 1]);
    builder.push("Mul", &[&copied, &factors], &["probabilities"], vec![]);
    finish(builder, number, k)
}

/// The largest probability, and what the values from before look like, which were outputs until now.
fn finish(mut builder: Builder, number: usize, k: usize) -> Graph {
    builder.push("ArgMax", &["probabilities"], &["cluster"], vec![int("axis", 1), int("keepdims", 0)]);
    builder.value(&before(number), DataType::Float, &[Dim::Batch, Dim::Size(k)]);
    builder.value(&cluster_before(number), DataType::Int64, &[Dim::Batch]);
    let mut graph = builder.into_graph();
    // The names of values stay free for the next edit, those of nodes must differ now.
    for node in graph.node.iter_mut().filter(|node| !node.name.starts_with("edit")) {
        node.name = format!("edit{number}_{}", node.name);
    }
    graph
}

/// A serialised graph with an edit that leaves `left` clusters.
pub(super) fn add(graph: &[u8], number: usize, left: usize, part: &Graph) -> Result<Vec<u8>, OnnxError> {
    let names = [("probabilities".to_owned(), before(number)), ("cluster".to_owned(), cluster_before(number))];
    let mut out = Vec::with_capacity(graph.len());
    for Field { tag, range, value } in fields(graph)? {
        match tag {
            NODE => renamed(&graph[value], &graph[range], &names, &mut out)?,
            OUTPUT => output(&graph[value], &graph[range], left, &mut out)?,
            _ => out.extend_from_slice(&graph[range]),
        }
    }
    out.extend(part.encode_to_vec());
    Ok(out)
}

/// A serialised graph without its last edit, before which there were `k` clusters.
pub(super) fn take_away(graph: &[u8], number: usize, k: usize) -> Result<Vec<u8>, OnnxError> {
    let (probabilities, cluster) = (before(number), cluster_before(number));
    let names = [(probabilities.clone(), "probabilities".to_owned()), (cluster.clone(), "cluster".to_owned())];
    let prefix = format!("edit{number}_");
    let is_old = |name: &String| *name == probabilities || *name == cluster;
    let is_ours = |name: &str| name.starts_with(&prefix) || name == "probabilities" || name == "cluster";
    let mut out = Vec::with_capacity(graph.len());
    for Field { tag, range, value } in fields(graph)? {
        let (field, whole) = (&graph[value], &graph[range]);
        match tag {
            NODE => {
                let node = Node::decode(field).map_err(damaged)?;
                if node.output.iter().any(is_old) || !node.output.iter().any(|name| is_ours(name)) {
                    renamed(field, whole, &names, &mut out)?;
                }
            }
            CONSTANT if is_ours(&Tensor::decode(field).map_err(damaged)?.name) => {}
            VALUE if is_ours(&ValueInfo::decode(field).map_err(damaged)?.name) => {}
            OUTPUT => output(field, whole, k, &mut out)?,
            _ => out.extend_from_slice(whole),
        }
    }
    Ok(out)
}

/// A node with other names for some values. Only nodes of ours have them, and those are written again to the same bytes.
fn renamed(field: &[u8], whole: &[u8], names: &[(String, String)], out: &mut Vec<u8>) -> Result<(), OnnxError> {
    let mut node = Node::decode(field).map_err(damaged)?;
    let mut changed = false;
    for value in node.input.iter_mut().chain(&mut node.output) {
        if let Some((_, name)) = names.iter().find(|(old, _)| old == value) {
            value.clone_from(name);
            changed = true;
        }
    }
    match changed {
        true => prost::encoding::message::encode(NODE as u32, &node, out),
        false => out.extend_from_slice(whole),
    }
    Ok(())
}

/// An output, where it is the probabilities with another number of clusters.
fn output(field: &[u8], whole: &[u8], clusters: usize, out: &mut Vec<u8>) -> Result<(), OnnxError> {
    match ValueInfo::decode(field).map_err(damaged)?.name == "probabilities" {
        true => {
            let value = value_info("probabilities", DataType::Float, &[Dim::Batch, Dim::Size(clusters)]);
            prost::encoding::message::encode(OUTPUT as u32, &value, out);
        }
        false => out.extend_from_slice(whole),
    }
    Ok(())
}

fn damaged(error: prost::DecodeError) -> OnnxError {
    OnnxError::Damaged(error.to_string())
}
