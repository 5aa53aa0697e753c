//! Why an import or a download failed, in one sentence each.

use std::fmt::Display;
use std::io;
use std::path::Path;

use dtkc_dataset::DataError;
use dtkc_formats::ReadError;
use thiserror::Error;

/// Why an import or a download failed. Nothing is left of the output.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A source cannot be read.
    #[error(transparent)]
    Read(ReadError),
    /// The flags do not fit each other or the data.
    #[error("{0}")]
    Usage(String),
    /// The dataset file could not be written.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The download failed, and what to do about it.
    #[error("{0}")]
    Fetch(String),
    /// The user asked to stop; what is left of the work.
    #[error("{0}")]
    Interrupted(String),
}

impl From<ReadError> for ImportError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Usage(text) => Self::Usage(text),
            other => Self::Read(other),
        }
    }
}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> Self {
        Self::Read(error.into())
    }
}

impl From<dtkc_source::SourceError> for ImportError {
    fn from(error: dtkc_source::SourceError) -> Self {
        Self::Read(error.into())
    }
}

impl ImportError {
    /// A source that cannot be used, and why.
    pub fn source(what: impl Display, reason: impl Display) -> Self {
        Self::Read(ReadError::source(what, reason))
    }

    /// Like [`ImportError::source`] for a file.
    pub fn file(path: &Path, reason: impl Display) -> Self {
        Self::Read(ReadError::file(path, reason))
    }

    /// A read error of a stream that hides which file it reads. An early end is called that.
    pub fn read(path: &Path, error: io::Error) -> Self {
        Self::Read(ReadError::read(path, error))
    }
}
