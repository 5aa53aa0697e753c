//! What can go wrong with the runtime or the model as a whole. With one item alone: [`dtkc_item::ItemError`].

use std::path::PathBuf;

use dtkc_item::{ItemKind, ItemShape};
use dtkc_onnx::OnnxError;

/// Why a model cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InferError {
    /// The library is in none of the places where it is looked for.
    #[error(
        "ONNX Runtime was not found (looked at {looked}); run scripts/setup.sh, or `pip install onnxruntime` and \
         give its libonnxruntime with --onnxruntime PATH or ORT_DYLIB_PATH"
    )]
    RuntimeMissing {
        /// The places, for the message.
        looked: String,
    },
    /// A library was found and cannot be used.
    #[error("the ONNX Runtime library {} cannot be used: {reason}; give another with --onnxruntime PATH", path.display())]
    RuntimeUnusable {
        /// The library.
        path: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// Only one library can be loaded in a process.
    #[error("ONNX Runtime is already loaded from {}, and one program can only use one", path.display())]
    RuntimeLoaded {
        /// The library in use.
        path: PathBuf,
    },
    /// No model of that name, and no such file.
    #[error("there is no model {name:?}: {hint}")]
    ModelMissing {
        /// What was asked for.
        name: String,
        /// What there is, or where it was looked for.
        hint: String,
    },
    /// The file cannot be read; the text names it.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file is not a usable model.
    #[error("{name}: {error}")]
    Model {
        /// The model's name or path.
        name: String,
        /// What is wrong with it.
        error: OnnxError,
    },
    /// The requested device is not there. The CPU never takes its place silently.
    #[error("device {device} cannot be used: {reason}; use --device cpu, or an ONNX Runtime library built for it")]
    Device {
        /// The device that was asked for.
        device: String,
        /// What the runtime said.
        reason: String,
    },
    /// The runtime refused the model.
    #[error("{name}: {runtime} cannot load the model: {reason}")]
    Load {
        /// The model's name or path.
        name: String,
        /// Which runtime.
        runtime: &'static str,
        /// What the runtime said.
        reason: String,
    },
    /// A batch of the wrong size.
    #[error("{count} images of {each} bytes need {} bytes of pixels and there are {found}", count * each)]
    Pixels {
        /// Images.
        count: usize,
        /// Bytes of one.
        each: usize,
        /// Bytes given.
        found: usize,
    },
    /// Images for a model that takes sequences, or the other way round.
    #[error("{model}: the model takes {kind}, and these are not; give it {kind}")]
    OtherKind {
        /// The model's name.
        model: String,
        /// What it takes.
        kind: ItemKind,
    },
    /// Sequences that do not fit each other or the model.
    #[error("{model}: these are not {found}, each with a step at least, for a model of {wanted} values a step")]
    Sequences {
        /// The model's name.
        model: String,
        /// What they should be.
        found: ItemShape,
        /// Values of a step that the model takes.
        wanted: usize,
    },
    /// The runtime failed while computing.
    #[error("{model}: the model failed to run: {reason}")]
    Run {
        /// The model's name.
        model: String,
        /// What the runtime said.
        reason: String,
    },
    /// A file with cluster names cannot be understood.
    #[error("{}: {reason}", path.display())]
    Names {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// The words of a runtime as part of a sentence of ours: its messages can run over many lines of source positions and
/// end with a full stop.
pub(crate) fn clause(error: &dyn std::fmt::Display) -> String {
    let text = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_end_matches(['.', ';', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_words_fit_into_a_sentence() {
        assert_eq!(clause(&"not enabled\n  in this build. "), "not enabled in this build");
        let reason = clause(&"not enabled in this build.");
        let text = InferError::Device { device: "cuda".into(), reason }.to_string();
        assert!(text.contains("in this build; use --device cpu"), "{text}");
    }
}
