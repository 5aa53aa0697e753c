//! Why an input cannot be used at all. A single bad item is no error here: it is a [`crate::Body::Broken`].

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why an input cannot be used at all, in one sentence.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The system refused something; the text names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An input, as given, that means nothing.
    #[error("the input {input} {reason}")]
    Input {
        /// As given.
        input: String,
        /// What is wrong, as a predicate, and the remedy.
        reason: String,
    },
    /// A store that cannot be read, with the address.
    #[error("{0}")]
    Store(String),
    /// A file that is not what it should be.
    #[error("{path}: {reason}", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        reason: String,
    },
}

impl SourceError {
    /// An input, as given, and what is wrong with it.
    pub fn input(input: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Input { input: input.into(), reason: reason.into() }
    }

    pub(crate) fn file(path: &Path, reason: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), reason: reason.into() }
    }
}
