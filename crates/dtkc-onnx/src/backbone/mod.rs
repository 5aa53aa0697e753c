//! Networks of others: a frozen backbone whose features are clustered.
//!
//! | what | where |
//! |---|---|
//! | what the file takes, and which of its values describes an image | `find.rs` |
//! | the graph from pixels to features: our preparation, its nodes | `prefix.rs` |
//! | what lies inside it, made small | `taps.rs` |
//! | such a graph and a head of ours as one model file | `join.rs` |
//!
//! Nodes and weights of the other file are copied as bytes and only renamed (every name gets a prefix), so that nothing in
//! them has to be understood and nothing of ours can be called the same.

mod find;
mod join;
mod prefix;
mod taps;

use std::fmt;

use prost::Message as _;

use crate::OnnxError;
use crate::proto::{Graph, Model, OperatorSet};
use crate::read::{GRAPH_TAG, MAX_BYTES, check_functions, check_graph, fields};

pub use join::join;
pub use prefix::{FEATURES, Preparation, Reading};
pub use taps::{TAP_CHANNELS, TAP_SIDE, TAP_VALUES, TapReading, sign as tap_sign};

/// The oldest version of ONNX's operators that our own nodes can stand beside.
const OLDEST: i64 = 13;

/// What stands before every name of a backbone.
pub(crate) const PREFIX: &str = "backbone/";

/// How the pixels of a backbone's input lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// `[batch, channels, height, width]`.
    First,
    /// `[batch, height, width, channels]`.
    Last,
}

/// What a backbone takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackboneInput {
    /// Its name in the file.
    pub name: String,
    /// Where channels stand.
    pub order: Channels,
    /// 1 or 3.
    pub channels: usize,
    /// Rows and columns, where the file fixes them.
    pub size: [Option<usize>; 2],
    /// Whether it takes bytes as they are, and not numbers.
    pub takes_bytes: bool,
}

impl fmt::Display for BackboneInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: Option<usize>| side.map_or_else(|| "any".to_owned(), |side| side.to_string());
        let [height, width] = self.size.map(side);
        let (order, kind) = (
            match self.order {
                Channels::First => "channels first",
                Channels::Last => "channels last",
            },
            if self.takes_bytes { "bytes" } else { "numbers" },
        );
        write!(f, "input {:?}: {} channels ({order}) of {height} x {width} pixels, {kind}", self.name, self.channels)
    }
}

/// An ONNX network of somebody else.
#[derive(Debug, Clone)]
pub struct Backbone {
    bytes: Vec<u8>,
    graph: Graph,
    opset: i64,
    input: BackboneInput,
}

impl Backbone {
    /// Reads an ONNX file and finds out what it takes.
    ///
    /// Refused, each with one sentence: what is no ONNX file, weights in other files, graphs within graphs, operators that are
    /// too old, and inputs that are not one batch of images.
    pub fn read(bytes: Vec<u8>) -> Result<Self, OnnxError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(wrong(format!(
                "it has {} bytes, and a model file may have {MAX_BYTES}; use a smaller network",
                bytes.len()
            )));
        }
        let model = Model::decode(&*bytes).map_err(|error| wrong(format!("it is no ONNX file ({error})")))?;
        let opset = opset_of(&model.opset_import);
        check_functions(&model).map_err(|error| wrong(plain(error)))?;
        let Some(graph) = model.graph.filter(|_| model.ir_version > 0) else {
            return Err(wrong("it is no ONNX file (it has no graph)"));
        };
        if opset < OLDEST {
            return Err(wrong(format!(
                "it uses version {opset} of ONNX's operators, and at least {OLDEST} is needed; convert it with \
                 onnx.version_converter.convert_version(model, 18) or export it again"
            )));
        }
        check_graph(&graph).map_err(|error| wrong(plain(error)))?;
        let input = find::input(&graph)?;
        Ok(Self { bytes, graph, opset, input })
    }

    /// What it takes.
    pub fn input(&self) -> &BackboneInput {
        &self.input
    }

    /// The value that describes an image best, and why it was taken.
    pub fn layer(&self) -> Result<(String, &'static str), OnnxError> {
        find::layer(&self.graph)
    }

    /// Fails where the network has no value of that name, with those that it has.
    pub fn check_layer(&self, name: &str) -> Result<(), OnnxError> {
        find::check_layer(&self.graph, name)
    }

    /// The serialised graph.
    fn graph_bytes(&self) -> Result<&[u8], OnnxError> {
        let graph = fields(&self.bytes)?.into_iter().find(|field| field.tag == GRAPH_TAG);
        Ok(graph.map_or(&[][..], |field| &self.bytes[field.value]))
    }
}

/// The version of ONNX's own operators that a file uses; 0 where it names none.
pub(crate) fn opset_of(sets: &[OperatorSet]) -> i64 {
    sets.iter().find(|set| set.domain.is_empty() || set.domain == "ai.onnx").map_or(0, |set| set.version)
}

fn wrong(reason: impl Into<String>) -> OnnxError {
    OnnxError::Backbone(reason.into())
}

/// What is wrong with a graph, without what is said about model files of ours.
fn plain(error: OnnxError) -> String {
    match error {
        OnnxError::Damaged(reason) if reason.ends_with("are in another file") => {
            format!("{reason}; save it as one file with onnx.save(onnx.load(\"net.onnx\"), \"one.onnx\")")
        }
        OnnxError::Damaged(reason) if reason.contains("functions") => {
            format!(
                "{reason}; save it with onnx.save(onnx.inliner.inline_local_functions(onnx.load(\"net.onnx\")), \"one.onnx\")"
            )
        }
        OnnxError::Damaged(reason) => format!("{reason}; export it again as one plain graph"),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../backbone_tests.rs"]
mod tests;
