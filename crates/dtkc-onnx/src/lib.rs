//! A frozen network as one ONNX file with preprocessing and metadata, and both read back.
//!
//! A trainer describes its network as a [`Network`]: a plain list of layers with their weights. [`write()`] turns
//! it into the bytes of a self-contained ONNX file (opset 18):
//!
//! | name | type | shape |
//! |---|---|---|
//! | input `image` | u8 | `[batch, height, width, channels]` |
//! | or inputs `values`, `lengths` | f32, i64 | `[batch, time, dim]`, `[batch]` |
//! | output `cluster` | i64 | `[batch]` |
//! | output `probabilities` | f32 | `[batch, clusters]` |
//! | output `embedding` | f32 | `[batch, hidden]` |
//! | output `outlier`, where [`with_outlier`] added it | f32 | `[batch]` |
//!
//! Scaling each image to 0..1 by its own minimum and maximum happens inside the graph, and so does what scales
//! sequences, so that any ONNX runtime in any language can use the file. What stands behind a sequence's length never
//! changes an answer. What a reader needs to know beside the graph (how to resize, what the
//! clusters are called, where the model came from) is in the file's `metadata_props`, see [`Metadata`].
//! [`read_network`] gives the layers of a model for images back, to whoever wants to do more with them than to run the file.
//!
//! A [`Backbone`] is a network of somebody else: [`Backbone::prefix`] is the graph from pixels to its features, and [`join`]
//! puts a network of ours that takes features behind it, as one model file for images.
//!
//! [`edit()`] merges, splits and names clusters in a finished file, and [`undo`] takes that back.
//!
//! The crate knows nothing of training: a program that only reads model files does not link burn.

mod backbone;
mod edit;
mod error;
mod layers;
mod metadata;
mod network;
mod outlier;
mod proto;
mod read;
mod sizes;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod write;

pub use backbone::{
    Backbone, BackboneInput, Channels, FEATURES, Preparation, Reading, TAP_CHANNELS, TAP_SIDE, TAP_VALUES, TapReading,
    join, tap_sign,
};
pub use edit::{Edit, Past, Split, edit, undo};
pub use error::OnnxError;
pub use layers::read_network;
pub use metadata::{Cluster, ImageInput, InputSpec, Metadata, Parity, Provenance, SCHEMA};
pub use network::{GruOutput, GruWeights, Layer, Network, Weights};
pub use outlier::{Outlier, OutlierInfo, THRESHOLD, with_outlier, without_outlier};
pub use read::{Largest, MAX_BYTES, fingerprint, largest_values, read_metadata, with_metadata};
pub use write::{IR_VERSION, OPSET, write};
