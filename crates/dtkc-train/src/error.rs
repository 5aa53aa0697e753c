//! What can go wrong, one sentence each: the thing, the cause, the remedy.

use std::io;
use std::path::PathBuf;

use dtkc_methods::{LearnError, SettingError};
use thiserror::Error;

/// An error of training, of a run directory or of an export.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// Reading or writing failed; the message names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The dataset cannot be read.
    #[error(transparent)]
    Data(#[from] dtkc_dataset::DataError),
    /// The settings cannot work.
    #[error(transparent)]
    Config(#[from] SettingError),
    /// The learner cannot go on.
    #[error(transparent)]
    Learn(LearnError),
    /// A metric was asked for data that has none.
    #[error(transparent)]
    Metric(#[from] dtkc_metrics::MetricError),
    /// The model file could not be written.
    #[error(transparent)]
    Onnx(#[from] dtkc_onnx::OnnxError),
    /// The model file could not be run.
    #[error(transparent)]
    Infer(#[from] dtkc_infer::InferError),
    /// Images cannot be found.
    #[error(transparent)]
    Source(#[from] dtkc_source::SourceError),
    /// A picture of a report could not be made.
    #[error(transparent)]
    Picture(#[from] dtkc_report::PictureError),
    /// The output is a file.
    #[error("{} is a file, not a folder; choose another --out", path.display())]
    NotAFolder {
        /// The path given.
        path: PathBuf,
    },
    /// A run is there already.
    #[error(
        "{} already holds a run; continue it with `dtkc-train resume {}`, or give --force to replace it",
        path.display(), path.display()
    )]
    RunExists {
        /// The run directory.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("{} holds other files and no run; choose a new or empty folder for --out", path.display())]
    ForeignFolder {
        /// The folder.
        path: PathBuf,
    },
    /// There is no run.
    #[error("{} holds no run (there is no config.toml in it); name the folder given to `dtkc-train fit --out`", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// Another process has the run.
    #[error("{} is in use by another process ({holder}); wait for it or stop it first", path.display())]
    Locked {
        /// The run directory.
        path: PathBuf,
        /// Who has it.
        holder: String,
    },
    /// The lock file cannot be locked.
    #[error("{} cannot be locked ({source}); put the run on a file system that has locks", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A checkpoint is not whole.
    #[error(
        "checkpoint {} is damaged: {reason}; delete it to train this restart again from its beginning",
        path.display()
    )]
    DamagedCheckpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A checkpoint of another version of the format.
    #[error("checkpoint {} has format version {found}, this program reads version {known}; use the release that wrote it", path.display())]
    CheckpointVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that can be read.
        known: u32,
    },
    /// A checkpoint of other settings or data.
    #[error("checkpoint {} belongs to {what}; restore the run's own config.toml and data, or start anew with --force", path.display())]
    ForeignCheckpoint {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: &'static str,
    },
    /// The dataset changed since the run began.
    #[error("{} is not the dataset that this run began with (its content differs); restore it or start a new run", path.display())]
    DataChanged {
        /// The dataset.
        path: PathBuf,
    },
    /// The dataset of a run is gone.
    #[error("there is no file {} any more, on which this run was trained; name its new place with `dtkc-train resume RUN --data FILE`", path.display())]
    DataMoved {
        /// Where it was.
        path: PathBuf,
    },
    /// The log is not whole.
    #[error("{} is damaged at line {line} ({reason}); delete that line", path.display())]
    DamagedLog {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A settings file is not whole.
    #[error("{} cannot be used: {reason}", path.display())]
    ConfigFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A setting is impossible.
    #[error("{0}")]
    Setting(String),
    /// The data does not fit.
    #[error("{0}")]
    Mismatch(String),
    /// The device is not there.
    #[error("device '{asked}' {cause}; this build can use: {known}")]
    Device {
        /// The name given.
        asked: String,
        /// Why it cannot be used.
        cause: String,
        /// What can be used.
        known: String,
    },
    /// Nothing was trained that could be used.
    #[error("{0}")]
    NothingTrained(String),
    /// The exported file answers differently.
    #[error("{0}")]
    Parity(String),
    /// The user stopped the work.
    #[error("{0}")]
    Interrupted(String),
    /// The same, noticed where nobody knows yet what is saved.
    #[error("the work was stopped")]
    Stopped,
}

impl From<LearnError> for TrainError {
    fn from(error: LearnError) -> Self {
        match error {
            LearnError::Stopped => Self::Stopped,
            LearnError::Setting(error) => Self::Config(error),
            LearnError::Items(error) => match error.downcast::<dtkc_dataset::DataError>() {
                Ok(error) => Self::Data(*error),
                Err(error) => Self::Learn(LearnError::Items(error)),
            },
            error => Self::Learn(error),
        }
    }
}

impl From<dtkc_settings::LayerError> for TrainError {
    fn from(error: dtkc_settings::LayerError) -> Self {
        Self::Config(error.into())
    }
}

impl From<dtkc_core::ConfigError> for TrainError {
    fn from(error: dtkc_core::ConfigError) -> Self {
        Self::Config(error.into())
    }
}
