//! What can be wrong with labels.

use thiserror::Error;

/// A metric that cannot be computed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricError {
    /// Two lists that must match do not.
    #[error("there are {truth} labels but {clusters} clusters: one of each is needed for every image")]
    Length {
        /// Number of labels (or embedding rows).
        truth: usize,
        /// Number of clusters.
        clusters: usize,
    },
    /// No row has both a label and a cluster.
    #[error("there is nothing to compare: no image has both a label and a cluster (negative values mean none)")]
    Empty,
    /// Too many distinct values for an assignment.
    #[error("{classes} classes and {clusters} clusters are too many to match, the most is {most} of each")]
    TooMany {
        /// Distinct labels.
        classes: usize,
        /// Distinct clusters.
        clusters: usize,
        /// The limit.
        most: usize,
    },
    /// The silhouette needs two clusters, and not every image alone in its own.
    #[error("the silhouette needs between 2 and {most} clusters for {images} images, there are {clusters}")]
    Clusters {
        /// Distinct clusters.
        clusters: usize,
        /// Images that were used.
        images: usize,
        /// Most clusters for so many images.
        most: usize,
    },
    /// The embedding holds NaN or infinity.
    #[error("the embedding of image {0} is not finite")]
    NotFinite(usize),
}
