//! What a dataset holds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a dataset holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Images of one size.
    Images,
    /// Sequences of one dimension and any length.
    Sequences,
}

impl Kind {
    /// The word in the file's `kind` attribute.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::Sequences => "sequences",
        }
    }

    /// The kind that a file's `kind` attribute names.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Images, Self::Sequences].into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
