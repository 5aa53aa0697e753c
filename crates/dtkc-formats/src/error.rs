//! Why a file cannot be read, in one sentence each.

use std::fmt::Display;
use std::io;
use std::path::Path;

use thiserror::Error;

/// Why a file, a folder or an archive cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system said no; the text names the file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A source that is damaged, incomplete or of a kind that we do not read.
    #[error("{what}: {reason}")]
    Source {
        /// The file, folder or archive entry.
        what: String,
        /// Cause and remedy.
        reason: String,
    },
    /// The flags do not fit each other or the data.
    #[error("{0}")]
    Usage(String),
    /// A folder, an archive, a list or a pattern that cannot be used.
    #[error(transparent)]
    Input(#[from] dtkc_source::SourceError),
    /// Whatever a reader from elsewhere says, such as that of HDF5.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl ReadError {
    /// What a reader from elsewhere says.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    /// A source that cannot be used, and why.
    pub fn source(what: impl Display, reason: impl Display) -> Self {
        Self::Source { what: what.to_string(), reason: reason.to_string() }
    }

    /// Like [`ReadError::source`] for a file.
    pub fn file(path: &Path, reason: impl Display) -> Self {
        Self::source(path.display(), reason)
    }

    /// A file that ends too early.
    pub fn cut_off(path: &Path) -> Self {
        Self::file(path, "the file is cut off; copy or download it again")
    }

    /// A read error of a stream that hides which file it reads. An early end is called that.
    pub fn read(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::cut_off(path),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
                Self::file(path, format!("the file is damaged ({error}); copy or download it again"))
            }
            _ => Self::file(path, error),
        }
    }
}
