//! What an import writes.

use dtkc_item::{ImageSpec, ItemShape, Resize};

use super::ImportError;
use super::record::{ContentForm, Description, Importer};
use super::run::ImportOptions;
use super::shape;

/// What the dataset holds.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// Images.
    Images {
        /// What they are like.
        spec: ImageSpec,
        /// Whether the rule for resizing has been, or may be, of any effect.
        resized: bool,
    },
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
                let spec = shape::choose(sources, options.wanted, notes)?;
                let resized = options.wanted.resize.is_some() || sources.iter().any(|s| is_resized(s.describe(), spec));
                Ok(Self::Images { spec, resized })
            }
        }
    }

    /// What every item of the dataset looks like.
    pub fn shape(&self) -> ItemShape {
        match *self {
            Self::Images { spec, .. } => spec.shape().into(),
            Self::Sequences(dim) => ItemShape::Sequence { dim },
        }
    }

    /// The rule for resizing, as the dataset records it: pixels that were taken as they are follow none.
    pub fn resize(&self) -> Option<Resize> {
        match *self {
            Self::Images { spec, resized: true } => Some(spec.resize),
            _ => None,
        }
    }
}

/// Whether the images of a source are brought to a size, or were before.
fn is_resized(source: &Description, spec: ImageSpec) -> bool {
    let here = match source.form {
        ContentForm::Encoded => true,
        ContentForm::Pixels(shape) => (shape.height, shape.width) != (spec.height, spec.width),
        ContentForm::Sequences { .. } => false,
    };
    here || source.resize.is_some()
}
