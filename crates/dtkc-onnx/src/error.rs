//! What can be wrong with a network or a model file.

/// Why a network cannot be written or a model file cannot be read.
#[derive(Debug, thiserror::Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum OnnxError {
    /// The network's layers do not fit together.
    #[error("layer {layer} ({kind}) of the network cannot be exported: {reason}")]
    Layer {
        /// Position in [`crate::Network::layers`], from 0.
        layer: usize,
        /// The layer's kind, as in `Conv`.
        kind: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// The network as a whole is not a clustering network.
    #[error("the network cannot be exported: {0}")]
    Network(String),
    /// The metadata does not describe the network it is written with.
    #[error("the metadata does not fit the network: {0}")]
    Mismatch(String),
    /// More bytes than a model file may have.
    #[error("the model file has {bytes} bytes, more than the {limit} that are accepted; it is not a DTKC model")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// Not an ONNX file, or one that was cut short or altered.
    #[error(
        "the file is not a readable ONNX model ({0}); it is damaged or of another kind, so export or copy it again"
    )]
    Damaged(String),
    /// An ONNX file that this project did not write.
    #[error("the file is an ONNX model without DTKC metadata ({0}); only models exported by `dtkc-train` can be used")]
    Foreign(String),
    /// One metadata entry is absent or cannot be understood.
    #[error("the model's metadata entry `{key}` {reason}; export the model again")]
    Entry {
        /// The entry.
        key: String,
        /// What is wrong with it, as a predicate ("is missing").
        reason: String,
    },
    /// The model asks for a kind or a preparation of items that this program does not know.
    #[error("{0}, which this program does not know; update the program")]
    Preparation(String),
    /// Written by a newer version of this project.
    #[error(
        "the model file has schema version {found}, and this program reads versions up to {known}; update the program"
    )]
    Schema {
        /// The version in the file.
        found: String,
        /// The newest version that this program reads.
        known: u32,
    },
    /// The graph is not the one that was exported.
    #[error(
        "the model's graph was altered since it was exported; it is damaged, so copy it again (or, if a tool changed \
         it on purpose, remove its metadata entry `dtkc.graph_sha256`)"
    )]
    Altered,
    /// A network of others that cannot be used as a backbone.
    #[error("the network cannot be used as a backbone: {0}")]
    Backbone(String),
    /// Clusters that cannot be changed so.
    #[error("the clusters cannot be edited: {0}")]
    Edit(String),
    /// A model whose layers cannot be read back.
    #[error("the model's layers cannot be read back: {0}")]
    Layers(String),
    /// Graph and metadata of the file contradict each other.
    #[error("the model's graph and its metadata disagree: {0}; export the model again")]
    Disagreement(String),
}
