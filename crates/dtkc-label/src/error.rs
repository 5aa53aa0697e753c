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
    /// A folder, an archive, a list or a pattern that cannot be used.
    #[error(transparent)]
    Source(#[from] dtkc_source::SourceError),
    /// The model or the runtime.
    #[error(transparent)]
    Infer(#[from] dtkc_infer::InferError),
    /// A file of another program.
    #[error(transparent)]
    Read(dtkc_formats::ReadError),
    /// A dataset file.
    #[error(transparent)]
    Data(#[from] dtkc_dataset::DataError),
    /// The scores against the truth.
    #[error(transparent)]
    Metric(#[from] dtkc_metrics::MetricError),
    /// Rows that were computed are no longer there.
    #[error("{0}")]
    Lost(String),
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

    /// An error about a file, or standard output, that could not be written. `remedy` says what to do.
    pub fn unwritable(what: impl std::fmt::Display, error: &dyn std::fmt::Display, remedy: &str) -> Self {
        let (what, text) = (what.to_string(), error.to_string());
        // It may say already what it is about.
        let text = ["cannot write ", ""]
            .iter()
            .find_map(|before| text.strip_prefix(&format!("{before}{what}: ")))
            .unwrap_or(&text);
        // By the words: Parquet, HDF5 and dtkc-data hand the system's error on as text.
        let full = ["No space left on device", "not enough space on the disk", "the disk is full"]
            .iter()
            .any(|words| text.contains(words));
        let (reason, first) = if full { ("the disk is full", "free some space") } else { (text, "") };
        let remedy = [first, remedy].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", and ");
        let remedy = if remedy.is_empty() { remedy } else { format!("; {remedy}") };
        Self::Settings(format!("{what} cannot be written ({reason}){remedy}"))
    }
}

impl From<dtkc_formats::ReadError> for LabelError {
    fn from(error: dtkc_formats::ReadError) -> Self {
        match error {
            dtkc_formats::ReadError::Usage(text) => Self::Usage(text),
            other => Self::Read(other),
        }
    }
}

impl From<dtkc_files::Refused> for LabelError {
    fn from(refused: dtkc_files::Refused) -> Self {
        Self::Usage(refused.to_string())
    }
}

/// The result of the parts of a run.
pub type Result<T, E = LabelError> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_called_so() {
        let text = |error: io::Error, remedy: &str| LabelError::unwritable("a.csv", &error, remedy).to_string();
        let full = || io::Error::other("write: No space left on device (os error 28)");
        assert_eq!(text(full(), ""), "a.csv cannot be written (the disk is full); free some space");
        assert_eq!(text(full(), "run it"), "a.csv cannot be written (the disk is full); free some space, and run it");
        assert_eq!(text(io::Error::other("broken"), "run it"), "a.csv cannot be written (broken); run it");
        assert_eq!(text(io::Error::other("broken"), ""), "a.csv cannot be written (broken)");
        for named in ["cannot write a.csv: broken", "a.csv: broken"] {
            assert_eq!(text(io::Error::other(named), ""), "a.csv cannot be written (broken)");
        }
    }
}
