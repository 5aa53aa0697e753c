//! Why a dataset cannot be read or written, in one sentence each.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a dataset cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system said no; the text names the file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// There is no such file.
    #[error("there is no file {path}; check the path, or make a dataset from images with 'dtkc-data import'")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// An address, where a file is wanted.
    #[error(
        "{path} is in a store, and datasets are read on this machine; bring it with 'dtkc-data import {path} --out set.h5'"
    )]
    InStore {
        /// The address.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{path} is not an HDF5 file; make a dataset from images with 'dtkc-data import'")]
    NotHdf5 {
        /// The file.
        path: PathBuf,
    },
    /// An HDF5 file that cannot be read to the end.
    #[error("{path} is damaged or incomplete ({reason}); copy it again or make it anew")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// An HDF5 file of another origin.
    #[error("{path} is an HDF5 file but not a DTKC dataset ({reason}); convert it with 'dtkc-data import'")]
    NotADataset {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A newer layout.
    #[error("{path} has dataset schema {found}, this program reads schema 1; use a newer dtkc-data")]
    Schema {
        /// The file.
        path: PathBuf,
        /// The schema it says.
        found: i64,
    },
    /// Says schema 1 but does not follow it.
    #[error("{path} does not follow schema 1: {reason}; make it anew with 'dtkc-data import'")]
    Layout {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Sequences where images are needed, or the reverse.
    #[error("{path} holds {found}, but {wanted} are needed here")]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: &'static str,
        /// What is needed.
        wanted: &'static str,
    },
    /// An index beyond the end.
    #[error("{path} has {len} items, so there is no item {index}")]
    OutOfRange {
        /// The file.
        path: PathBuf,
        /// The index asked for.
        index: usize,
        /// Items in the file.
        len: usize,
    },
    /// The output could not be written; nothing is left of it.
    #[error("cannot write {path}: {reason}")]
    Write {
        /// The file that was to be.
        path: PathBuf,
        /// Cause and remedy.
        reason: String,
    },
    /// The calling program gave something that does not fit together.
    #[error("{0}")]
    Invalid(String),
}
