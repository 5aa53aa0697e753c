//! How far an item is from everything that a model was trained on, as a part that is added to a finished model file.
//!
//! The part stands behind the output `embedding` and touches nothing else, so that it suits any network, any head, sequences
//! and backbones, can be given to a file that has none, and can be taken away again: what is left are the bytes from before.
//! [`with_outlier`] adds it, [`without_outlier`] takes it away.
//!
//! An item's distance `d` is that to the nearest of some points, in the embedding after [`Outlier::scaling`]. The points
//! stand for the items of the training set, not for clusters: an item between two clusters is like both, and a cluster is
//! rarely round. The output is then
//!
//! ```text
//! outlier = 0.99 share(d) + 0.01 (1 - t / max(d, t))
//! ```
//!
//! where `t` is the distance that 99 % of the training set stay below, and `share` rises from 0 to 1 by straight lines
//! between quantiles of their distances. So up to the threshold .99 the value is the share of the training set that is
//! nearer, which needs no explanation. Beyond it there are hardly training items to count, and a share would be 1 for all that
//! is far: there it goes on rising with the distance itself, by which far ones can still be ranked (.995 is twice as far as the
//! threshold, .999 ten times). 32-bit numbers tell apart what is up to some ten thousand times as far.

mod nodes;

use prost::Message;
use serde::{Deserialize, Serialize};

use crate::proto::{Graph, Model, Node, Tensor, ValueInfo};
use crate::read::{Field, GRAPH_TAG, append_metadata, fields, read, without_metadata};
use crate::{Metadata, OnnxError, Weights};

/// The output's name; all that belongs to it begins so.
pub(crate) const OUTLIER: &str = "outlier";
/// The value that 99 % of the training set stay below.
pub const THRESHOLD: f32 = 0.99;

/// What is known about the distances of a training set.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlier {
    /// What the embedding is multiplied with, from the right: `[width, width]`, or one factor for each value, `[width]`.
    pub scaling: Weights,
    /// What is added then: `width` values.
    pub shift: Vec<f32>,
    /// The points that distances are measured to, after scaling: `[points, width]`.
    pub points: Weights,
    /// Quantiles of the training set's distances at equal steps, from 0 to that of [`THRESHOLD`]; each is above the one before.
    pub knots: Vec<f32>,
    /// Items whose distances were measured.
    pub items: u64,
}

/// What the metadata says about the output.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OutlierInfo {
    /// What is above it is unlike anything in the training set: 99 % of that stay below.
    pub threshold: f32,
    /// Items of the training set whose distances were measured.
    pub items: u64,
}

impl OutlierInfo {
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.threshold {
            threshold if threshold > 0.0 && threshold <= 1.0 => Ok(()),
            other => Err(format!("has the threshold {other}, not one between 0 and 1")),
        }
    }
}

impl Outlier {
    fn check(&self, width: usize) -> Result<(), OnnxError> {
        let wrong = |text: String| Err(OnnxError::Mismatch(format!("the distances of the training set {text}")));
        let Self { scaling, shift, points, knots, .. } = self;
        let scales = scaling.shape == [width, width] || scaling.shape == [width];
        let has_points = matches!(points.shape[..], [count, w] if count > 0 && w == width);
        let whole = |weights: &Weights| weights.shape.iter().product::<usize>() == weights.data.len();
        if !scales || !has_points || shift.len() != width || !whole(scaling) || !whole(points) {
            return wrong(format!("are not those of an embedding of {width} values"));
        }
        if !scaling.data.iter().chain(shift).chain(&points.data).chain(knots).all(|value| value.is_finite()) {
            return wrong("hold something that is no number".into());
        }
        match knots.first() == Some(&0.0) && knots.len() >= 2 && knots.windows(2).all(|pair| pair[0] < pair[1]) {
            true => Ok(()),
            false => wrong("do not rise from 0".into()),
        }
    }
}

/// The same model file with the output `outlier`, in place of the one that it may have.
pub fn with_outlier(bytes: &[u8], outlier: &Outlier) -> Result<Vec<u8>, OnnxError> {
    let (_, metadata) = read(bytes)?;
    outlier.check(metadata.embedding_size)?;
    let part = nodes::part(outlier, metadata.embedding_size, opset(bytes)?);
    let info = OutlierInfo { threshold: THRESHOLD, items: outlier.items };
    let metadata = Metadata { outlier: Some(info), ..metadata };
    let mut out = change_graph(&without_metadata(bytes)?, |graph| {
        let mut graph = bare_graph(graph)?;
        // Fields of concatenated messages merge.
        graph.extend(part.encode_to_vec());
        Ok(graph)
    })?;
    append_metadata(&mut out, &metadata)?;
    Ok(out)
}

/// The same model file without the output `outlier`: as it was before it was given one.
pub fn without_outlier(bytes: &[u8]) -> Result<Vec<u8>, OnnxError> {
    let (_, metadata) = read(bytes)?;
    let mut out = change_graph(&without_metadata(bytes)?, bare_graph)?;
    append_metadata(&mut out, &Metadata { outlier: None, ..metadata })?;
    Ok(out)
}

fn opset(bytes: &[u8]) -> Result<i64, OnnxError> {
    let model = Model::decode(bytes).map_err(|error| OnnxError::Damaged(error.to_string()))?;
    Ok(crate::backbone::opset_of(&model.opset_import))
}

/// A serialised model with another graph; every other byte stays.
pub(crate) fn change_graph(
    bytes: &[u8],
    change: impl Fn(&[u8]) -> Result<Vec<u8>, OnnxError>,
) -> Result<Vec<u8>, OnnxError> {
    let mut out = Vec::with_capacity(bytes.len());
    for Field { tag, range, value } in fields(bytes)? {
        match tag {
            GRAPH_TAG => prost::encoding::bytes::encode(GRAPH_TAG as u32, &change(&bytes[value])?, &mut out),
            _ => out.extend_from_slice(&bytes[range]),
        }
    }
    Ok(out)
}

/// A serialised graph without what belongs to the output; every other byte stays.
pub(crate) fn bare_graph(graph: &[u8]) -> Result<Vec<u8>, OnnxError> {
    let mut out = Vec::with_capacity(graph.len());
    for Field { tag, range, value } in fields(graph)? {
        if !is_ours(tag, &graph[value])? {
            out.extend_from_slice(&graph[range]);
        }
    }
    Ok(out)
}

/// Whether a field of a graph belongs to the output: by the name of what it computes, holds or describes.
fn is_ours(tag: u64, field: &[u8]) -> Result<bool, OnnxError> {
    let damaged = |error: prost::DecodeError| OnnxError::Damaged(error.to_string());
    let is_ours = |name: &str| name == OUTLIER || name.starts_with("outlier_");
    // The tags of nodes, constants, outputs and values in a graph.
    Ok(match tag {
        1 => Node::decode(field).map_err(damaged)?.output.first().is_some_and(|name| is_ours(name)),
        5 => is_ours(&Tensor::decode(field).map_err(damaged)?.name),
        12 | 13 => is_ours(&ValueInfo::decode(field).map_err(damaged)?.name),
        _ => false,
    })
}

/// Whether a graph has the output.
pub(crate) fn has_output(graph: &Graph) -> bool {
    graph.output.iter().any(|output| output.name == OUTLIER)
}

#[cfg(test)]
#[path = "../outlier_tests.rs"]
mod tests;
