//! Why a labelling run cannot go on, in one sentence each. A single bad image is no error: it is a row.

use std::io;
use std::path::{Path, PathBuf};

/// Why a labelling run cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// The system refused something; the text names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An `--input` that cannot be used.
    #[error("the input {input} {reason}")]
    Input {
        /// As given.
        input: String,
        /// What is wrong, as a predicate, and the remedy.
        reason: String,
    },
    /// A file that names or describes something is wrong.
    #[error("{path}: {reason}", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        reason: String,
    },
    /// Flags that do not go together.
    #[error("{0}")]
    Usage(String),
    /// Something that is not as the run needs it.
    #[error("{0}")]
    Settings(String),
    /// There is nothing to label.
    #[error("{0}")]
    NoImages(String),
    /// The model or the runtime.
    #[error(transparent)]
    Infer(#[from] dtkc_infer::InferError),
    /// A dataset file.
    #[error(transparent)]
    Data(#[from] dtkc_data::DataError),
    /// The scores against the truth.
    #[error(transparent)]
    Metric(#[from] dtkc_metrics::MetricError),
    /// Part of the program broke down; a bug.
    #[error("internal failure: {0}; please report it")]
    Internal(&'static str),
}

impl LabelError {
    /// An error about one file.
    pub fn file(path: &Path, reason: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), reason: reason.into() }
    }

    /// An error about a file that a library could not write or read.
    pub fn wrap(path: &Path, error: impl std::fmt::Display) -> Self {
        Self::file(path, error.to_string())
    }

    /// An error about one `--input`.
    pub fn input(input: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Input { input: input.into(), reason: reason.into() }
    }
}

/// The result of the parts of a run.
pub type Result<T, E = LabelError> = std::result::Result<T, E>;
