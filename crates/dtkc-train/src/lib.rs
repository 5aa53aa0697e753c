//! Training: restarts, checkpoints, resume, run directories.
//!
//! | what | where |
//! |---|---|
//! | settings from preset, file and flags | [`config`] |
//! | the files of a run and their lock | [`run_dir`], [`log`], [`checkpoint`], [`summary`] |
//! | the items of a run; one restart; all restarts | [`data`], [`restart`], [`trainer`] |
//! | pruning, the restart that is kept, choice of k, another run's pretraining | [`prune`], [`choice`], [`auto_k`], [`pretrained`] |
//! | a whole run from start or resume to summary; parts of it that other processes work on | [`pipeline`], [`parts`] |
//! | signs that clusters are not what was hoped for | [`monitor`], [`warnings`] |
//! | many runs beside each other; one method with several settings; what serves the clusters | [`compare`], [`sweep`], [`mismatch`] |
//! | which pixels speak for a cluster | [`explain`] |
//! | what a run is used for, finished or not | [`saved`], [`partial`], [`mod@evaluate`], [`mod@export`], [`parity`], [`mod@report`] |
//! | clusters that people merge, split and name | [`clusters`] |
//! | what is unlike anything in the training set | [`outliers`] |
//! | how fast it is, what it takes and will take | [`mod@bench`], [`resources`], [`forecast`], [`mod@batch`] |

pub mod assign;
pub mod auto_k;
pub mod backbone;
pub mod batch;
pub mod bench;
mod chart;
pub mod checkpoint;
pub mod choice;
pub mod clusters;
pub mod compare;
pub mod config;
pub mod console;
pub mod data;
pub mod device;
pub mod error;
pub mod evaluate;
pub mod explain;
pub mod export;
pub mod forecast;
pub mod log;
pub mod mismatch;
pub mod monitor;
pub mod outliers;
pub mod parity;
pub mod partial;
pub mod parts;
pub mod pipeline;
pub mod pretrained;
pub mod prune;
pub mod report;
pub mod resources;
pub mod restart;
pub mod run_dir;
pub mod saved;
mod spread;
pub mod summary;
pub mod sweep;
pub mod trainer;
pub mod warnings;

pub use error::TrainError;
