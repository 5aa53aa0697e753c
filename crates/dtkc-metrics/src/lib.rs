//! Clustering metrics: ACC, NMI, ARI, silhouette, confusion, shares; and figures over several restarts: mean, spread, rank
//! correlation, intervals.
//!
//! Labels and clusters are any `i64`. One rule for negative values everywhere: a negative label means *unlabelled*
//! and a negative cluster *not assigned*; such rows are left out, and [`Scores::counted`] says how many were not.
//!
//! ```
//! let truth = [0, 0, 1, 1, 2, -1];
//! let clusters = [7, 7, 3, 3, 3, 5];
//! let scores = dtkc_metrics::scores(&truth, &clusters)?;
//! assert_eq!(scores.acc, 0.8);
//! assert_eq!(scores.counted, 5);
//! # Ok::<(), dtkc_metrics::MetricError>(())
//! ```

mod agreement;
mod confusion;
mod contingency;
mod error;
mod matching;
mod shares;
mod silhouette;
mod statistics;
mod student;

pub use agreement::{Normalisation, Scores, accuracy, ari, nmi, scores, scores_of_counts};
pub use confusion::{Confusion, confusion};
pub use error::MetricError;
pub use matching::matching;
pub use shares::shares;
pub use silhouette::silhouette;
pub use statistics::{Interval, mean, mean_interval, sd, spearman};
pub use student::t_quantile;
