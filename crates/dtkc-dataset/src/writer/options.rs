//! What a writer must know before the first item.

use dtkc_item::{ItemKind, ItemShape, Resize};

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

/// What a [`Writer`](crate::Writer) must know before the first item.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// What every item looks like.
    pub shape: ItemShape,
    /// The set's name, for example "mnist".
    pub name: String,
    /// Where it came from, for people to read.
    pub source: String,
    /// How values are stored.
    pub compression: Compression,
    /// Whether every item comes with the path or name that it had.
    pub paths: bool,
    /// The class names by label; may also be given later with `set_label_names`.
    pub label_names: Option<Vec<String>>,
    /// How images were brought to their size, so that later ones can be, too; `None` where they never were.
    pub resize: Option<Resize>,
    /// Where features come from.
    pub origin: Option<Origin>,
}

/// Where features come from: whatever is needed to make more of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// What they were made of and how, in words of the program that made them.
    pub about: String,
    /// The network that made them, as an ONNX file.
    pub network: Vec<u8>,
}

impl WriterOptions {
    /// Options for items of that shape: no compression, no paths, no label names, no rule for resizing, no origin.
    pub fn new(shape: impl Into<ItemShape>, name: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            shape: shape.into(),
            name: name.into(),
            source: source.into(),
            compression: Compression::None,
            paths: false,
            label_names: None,
            resize: None,
            origin: None,
        }
    }

    /// Refuses what no file can hold.
    pub(super) fn check(&self) -> Result<(), DataError> {
        match self.shape {
            ItemShape::Image(shape) => shape.check().map_err(DataError::Invalid)?,
            ItemShape::Sequence { dim: 0 } => {
                return Err(DataError::Invalid("a sequence needs at least one value per time step".into()));
            }
            ItemShape::Sequence { .. } if self.resize.is_some() => {
                return Err(DataError::Invalid("only images have a rule for resizing".into()));
            }
            ItemShape::Features(shape) if shape.is_empty() => {
                return Err(DataError::Invalid("features need at least one value".into()));
            }
            ItemShape::Sequence { .. } | ItemShape::Features(_) => {}
        }
        if self.origin.is_some() && self.shape.kind() != ItemKind::Features {
            return Err(DataError::Invalid("only features come from a network".into()));
        }
        match self.compression {
            Compression::Gzip(level) if !(1..=9).contains(&level) => {
                Err(DataError::Invalid(format!("{level} is not a gzip level; use 1 (fast) to 9 (small)")))
            }
            _ => Ok(()),
        }
    }
}
