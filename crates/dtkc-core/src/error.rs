//! What can be wrong with a configuration or a stored state.

use dtkc_views::OutOfRange;
use thiserror::Error;

/// A configuration that cannot work, found before any work was done.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The image shrinks to nothing inside the network.
    #[error(
        "images of {height}x{width} px are too small for this network: block {block} would reduce them to nothing; \
         enlarge them with `dtkc-data import --size {remedy}x{remedy}`, or use padding = \"same\" or smaller kernels"
    )]
    TooSmall {
        /// Rows of the image.
        height: usize,
        /// Columns of the image.
        width: usize,
        /// The block that fails, counted from 1.
        block: usize,
        /// A side that works.
        remedy: usize,
    },
    /// Images were averaged down so far that nothing is left inside the network.
    #[error(
        "network.reduce = {reduce} leaves {}x{} of images of {height}x{width} px, too little for this network: set it to \
         at most {most}",
        height / reduce,
        width / reduce
    )]
    Reduced {
        /// Rows of the image.
        height: usize,
        /// Columns of the image.
        width: usize,
        /// The factor given.
        reduce: usize,
        /// The largest one that works.
        most: usize,
    },
    /// Fewer than two clusters.
    #[error("{0} is no number of clusters: ask for at least 2 (--clusters)")]
    Clusters(usize),
    /// A count that must be positive is zero.
    #[error("{name} is 0, it must be at least 1")]
    Zero {
        /// The setting's name.
        name: String,
    },
    /// A count beyond what can be meant.
    #[error("{name} = {value} is too large, the most is {most}")]
    TooLarge {
        /// The setting's name.
        name: String,
        /// The value given.
        value: usize,
        /// The largest value allowed.
        most: usize,
    },
    /// A number outside of its range.
    #[error("{name} = {value} is out of range, it must be {range}")]
    Range {
        /// The setting's name.
        name: String,
        /// The value given.
        value: f64,
        /// What is allowed, in words.
        range: &'static str,
    },
    /// Settings that contradict each other.
    #[error("{0}")]
    Conflict(String),
}

impl From<OutOfRange> for ConfigError {
    fn from(OutOfRange { name, value, range }: OutOfRange) -> Self {
        Self::Range { name, value, range }
    }
}

/// A stored state that does not fit the model.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum StateError {
    /// An array is missing.
    #[error("the stored state has no array `{0}`: it belongs to another network")]
    Missing(String),
    /// An array has another shape.
    #[error("array `{name}` of the stored state has shape {found:?}, this network needs {expected:?}")]
    Shape {
        /// The array's name.
        name: String,
        /// Its stored shape.
        found: Vec<usize>,
        /// The shape of this network.
        expected: Vec<usize>,
    },
    /// An array that the model does not have.
    #[error("the stored state has an array `{0}` that this network has not: it belongs to another network")]
    Unknown(String),
}
