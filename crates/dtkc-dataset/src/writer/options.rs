//! What a writer must know before the first item.

use dtkc_item::ImageShape;
use crate::DataError;

/// How the values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// As they are: fastest to read.
    #[default]
    None,
    /// Byte shuffle and gzip with a level of 1 (fast) to 9 (small).
    Gzip(u8),
}

impl Compression {
    /// Refuses a level that gzip does not know.
    pub(crate) fn check(self) -> Result<(), DataError> {
        match self {
            Self::Gzip(level) if !(1..=9).contains(&level) => {
                Err(DataError::Invalid(format!("{level} is not a gzip level; use 1 (fast) to 9 (small)")))
            }
            _ => Ok(()),
        }
    }
}

/// What an [`ImageWriter`](crate::ImageWriter) must know before the first image.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The size of every image.
    pub shape: ImageShape,
    /// The set's name, for example "mnist".
    pub name: String,
    /// Where it came from, for people to read.
    pub source: String,
    /// How pixels are stored.
    pub compression: Compression,
    /// Whether every image comes with the path or name that it had.
    pub paths: bool,
    /// The class names by label; may also be given later with `set_label_names`.
    pub label_names: Option<Vec<String>>,
}

impl WriterOptions {
    /// Options for images of that shape: no compression, no paths, no label names.
    pub fn new(shape: ImageShape, name: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            shape,
            name: name.into(),
            source: source.into(),
            compression: Compression::None,
            paths: false,
            label_names: None,
        }
    }
}

/// What a [`SequenceWriter`](crate::SequenceWriter) must know before the first sequence.
#[derive(Debug, Clone)]
pub struct SequenceOptions {
    /// Values per time step.
    pub dim: usize,
    /// The set's name.
    pub name: String,
    /// Where it came from, for people to read.
    pub source: String,
    /// How values are stored.
    pub compression: Compression,
    /// Whether every sequence comes with the path or name that it had.
    pub paths: bool,
    /// The class names by label; may also be given later with `set_label_names`.
    pub label_names: Option<Vec<String>>,
}

impl SequenceOptions {
    /// Options for sequences of that dimension: no compression, no paths, no label names.
    pub fn new(dim: usize, name: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            dim,
            name: name.into(),
            source: source.into(),
            compression: Compression::None,
            paths: false,
            label_names: None,
        }
    }
}
