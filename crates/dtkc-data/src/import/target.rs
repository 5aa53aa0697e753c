//! What an import writes to.

use dtkc_item::ImageSpec;
use dtkc_dataset::{ImageWriter, SequenceOptions, SequenceWriter, WriterOptions};
use dtkc_item::ImageShape;

use super::ImportError;
use super::pipeline::Ready;
use super::record::{Kind, Source};
use super::run::ImportOptions;
use super::shape;

/// What the dataset holds.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// Images of this shape.
    Images(ImageSpec),
    /// Sequences of this dimension.
    Sequences(usize),
}

impl Target {
    /// Chooses by what the sources hold; what was not obvious is added to the notes.
    pub fn choose(
        sources: &mut [Box<dyn Source>],
        options: &ImportOptions,
        notes: &mut Vec<String>,
    ) -> Result<Self, ImportError> {
        let dims: Vec<Option<usize>> = sources
            .iter()
            .map(|s| match s.describe().kind {
                Kind::Sequences { dim } => Some(dim),
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
                let (shape, note) = shape::choose(sources, options.wanted)?;
                notes.extend(note);
                Ok(Self::Images(shape))
            }
        }
    }

    /// The kind as it is written in the file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Images(_) => "images",
            Self::Sequences(_) => "sequences",
        }
    }

    /// The size of every image.
    pub fn image_shape(&self) -> Option<ImageShape> {
        match *self {
            Self::Images(ImageSpec { height, width, color, .. }) => {
                Some(ImageShape { height, width, channels: color.channels() })
            }
            Self::Sequences(_) => None,
        }
    }

    /// Values per time step of every sequence.
    pub fn dim(&self) -> Option<usize> {
        match *self {
            Self::Images(_) => None,
            Self::Sequences(dim) => Some(dim),
        }
    }
}

/// What the file says about itself.
pub struct About {
    /// The dataset's name.
    pub name: String,
    /// Where it came from.
    pub origin: String,
    /// Whether items have paths.
    pub paths: bool,
    /// The class names.
    pub names: Option<Vec<String>>,
}

/// A writer of either kind.
pub enum Output {
    /// For images.
    Images(ImageWriter),
    /// For sequences.
    Sequences(SequenceWriter),
}

impl Output {
    /// Starts the file.
    pub fn create(options: &ImportOptions, target: &Target, about: &About) -> Result<Self, ImportError> {
        Ok(match *target {
            Target::Sequences(dim) => {
                let mut writer = SequenceOptions::new(dim, &about.name, &about.origin);
                writer.compression = options.compression;
                writer.paths = about.paths;
                writer.label_names.clone_from(&about.names);
                Self::Sequences(SequenceWriter::create(&options.out, writer)?)
            }
            Target::Images(ImageSpec { height, width, color, .. }) => {
                let shape = ImageShape { height, width, channels: color.channels() };
                let mut writer = WriterOptions::new(shape, &about.name, &about.origin);
                writer.compression = options.compression;
                writer.paths = about.paths;
                writer.label_names.clone_from(&about.names);
                Self::Images(ImageWriter::create(&options.out, writer)?)
            }
        })
    }

    /// Adds one item.
    pub fn push(&mut self, ready: &Ready, label: Option<i64>, path: Option<&str>) -> Result<(), ImportError> {
        match (self, ready) {
            (Self::Images(writer), Ready::Pixels(pixels)) => writer.push(pixels, label, path)?,
            (Self::Sequences(writer), Ready::Sequence(values)) => writer.push(values, label, path)?,
            _ => return Err(ImportError::Usage("images and sequences cannot be in one dataset".into())),
        }
        Ok(())
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<(), ImportError> {
        match self {
            Self::Images(writer) => writer.finish()?,
            Self::Sequences(writer) => writer.finish()?,
        };
        Ok(())
    }
}
