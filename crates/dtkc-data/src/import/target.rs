//! What an import writes.

use dtkc_item::{ImageSpec, ItemShape};

use super::ImportError;
use super::record::{ContentForm, Importer};
use super::run::ImportOptions;
use super::shape;

/// What the dataset holds.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// Images like these.
    Images(ImageSpec),
    /// Sequences of this dimension.
    Sequences(usize),
}

impl Target {
    /// Chooses by what the sources hold; what was not obvious is added to the notes.
    pub fn choose(
        sources: &mut [Box<dyn Importer>],
        options: &ImportOptions,
        notes: &mut Vec<String>,
    ) -> Result<Self, ImportError> {
        let dims: Vec<Option<usize>> = sources
            .iter()
            .map(|s| match s.describe().form {
                ContentForm::Sequences { dim } => Some(dim),
                _ => None,
            })
            .collect();
        match dims[..] {
            [Some(dim), ..] if dims.iter().all(|d| *d == Some(dim)) => Ok(Self::Sequences(dim)),
            _ if dims.iter().any(Option::is_some) => {
                let text = "images and sequences, or sequences of different dimensions, cannot be in one dataset";
                Err(ImportError::Usage(text.into()))
            }
            _ => {
                let (spec, note) = shape::choose(sources, options.wanted)?;
                notes.extend(note);
                Ok(Self::Images(spec))
            }
        }
    }

    /// What every item of the dataset looks like.
    pub fn shape(&self) -> ItemShape {
        match *self {
            Self::Images(spec) => spec.shape().into(),
            Self::Sequences(dim) => ItemShape::Sequence { dim },
        }
    }
}
