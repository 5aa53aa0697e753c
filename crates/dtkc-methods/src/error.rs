//! What can go wrong with settings and while learning, one sentence each.

use dtkc_core::{ConfigError, StateError};
use dtkc_settings::LayerError;
use thiserror::Error;

/// Settings that cannot be used.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum SettingError {
    /// A setting nobody knows, or a value of the wrong kind.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A value of the wrong kind.
    #[error("the settings cannot be used: {0}")]
    Value(String),
    /// A method nobody knows.
    #[error("`{given}` is no {what}; there are {known}")]
    Name {
        /// "method", ...
        what: &'static str,
        /// The text given.
        given: String,
        /// The names that exist.
        known: String,
    },
    /// A preset that this method has not.
    #[error("`{given}` is no preset of {method}; there are {known}")]
    Preset {
        /// The method's name.
        method: &'static str,
        /// The text given.
        given: String,
        /// The names that exist.
        known: String,
    },
    /// Settings that contradict each other.
    #[error("{0}")]
    Conflict(String),
    /// Numbers that cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Why a learner cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LearnError {
    /// The items could not be read.
    #[error(transparent)]
    Items(Box<dyn std::error::Error + Send + Sync>),
    /// A stored state does not fit.
    #[error(transparent)]
    State(#[from] StateError),
    /// Settings that cannot work with this data.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Whoever started the work wants it to stop.
    #[error("the work was stopped")]
    Stopped,
    /// Items of a kind that this method does not take.
    #[error("{0}")]
    Unsuitable(String),
}
