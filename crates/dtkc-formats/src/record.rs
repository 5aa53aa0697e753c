//! What every importer yields: a stream of records, described beforehand.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;

use dtkc_item::{ImageShape, ItemError, Resize};
use dtkc_source::Reason;

use crate::ReadError;

/// One image or sequence on its way into a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The content, in the cheapest form that the source has.
    pub content: Content,
    /// The class: a number of its own, or an index into the names of [`Classes::Names`]. A negative one says that it is
    /// not known.
    pub label: Option<i64>,
    /// The path or name below the source, where there is one.
    pub path: Option<String>,
}

/// The content of a [`Record`].
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// An image file that a worker thread reads and decodes.
    File(PathBuf),
    /// An encoded image that a worker thread decodes.
    Encoded(Vec<u8>),
    /// Pixels in the layout of [`ContentForm::Pixels`], row by row.
    Pixels(Vec<u8>),
    /// Time steps in the layout of [`ContentForm::Sequences`], one after the other.
    Sequence(Vec<f32>),
    /// Something that should have been an image, and why it is none.
    Unreadable(ItemError),
}

/// The form of the content that an importer yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentForm {
    /// [`Content::File`] and [`Content::Encoded`]: the size differs from image to image.
    Encoded,
    /// [`Content::Pixels`] of one shape, gray or RGB.
    Pixels(ImageShape),
    /// [`Content::Sequence`] of one dimension.
    Sequences {
        /// Values per time step.
        dim: usize,
    },
}

/// The classes that a source has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Classes {
    /// No labels.
    None,
    /// Labels that are numbers, none of them negative, and mean nothing more.
    Numbers(BTreeSet<i64>),
    /// Labels that are indices into these names.
    Names(Vec<String>),
}

impl Classes {
    /// Classes that are named by text: numbers where every name is one that a class can have, names otherwise.
    /// Returns what to put into [`Record::label`] for each name too.
    pub fn from_names(names: Vec<String>) -> (Self, Vec<i64>) {
        let number = |name: &String| name.trim().parse().ok().filter(|&number: &i64| number >= 0);
        let numbers: Option<Vec<i64>> = names.iter().map(number).collect();
        match numbers {
            Some(numbers) => (Self::Numbers(numbers.iter().copied().collect()), numbers),
            None => {
                let labels = (0..names.len() as i64).collect();
                (Self::Names(names), labels)
            }
        }
    }
}

/// What is known about a source before its records are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The format's name, for people to read.
    pub format: &'static str,
    /// What the records hold.
    pub form: ContentForm,
    /// How many records, where that is known.
    pub count: Option<u64>,
    /// The classes.
    pub classes: Classes,
    /// Whether every record has a path.
    pub paths: bool,
    /// How the images were brought to their size already, where the source says so.
    pub resize: Option<Resize>,
    /// The name of the folder or archive that the paths lie below; of the file, where records are named by number.
    pub origin: Option<String>,
    /// Remarks for the user, such as how values were scaled.
    pub notes: Vec<String>,
}

impl Description {
    /// A source of which nothing more is known yet: any number of items without classes and paths.
    pub fn new(format: &'static str, form: ContentForm) -> Self {
        let (classes, notes) = (Classes::None, Vec::new());
        Self { format, form, count: None, classes, paths: false, resize: None, origin: None, notes }
    }
}

/// The size and colour of one encoded image, from its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sample {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// Whether it has colour channels.
    pub rgb: bool,
}

/// Where a source puts its records. `Break` means that no more are wanted; why is nothing that a source need know.
pub type Sink<'a> = dyn FnMut(Record) -> ControlFlow<()> + 'a;

/// An importer: one opened source of one format.
pub trait Importer: Send {
    /// What is known beforehand.
    fn describe(&self) -> &Description;

    /// Sizes of up to `wanted` images spread over the source; only for [`ContentForm::Encoded`]. Images whose
    /// header cannot be read are left out.
    fn samples(&mut self, _wanted: usize) -> Result<Vec<Sample>, ReadError> {
        Ok(Vec::new())
    }

    /// What was passed over on the way to the records, by its name below the source.
    fn passed_over(&self) -> &[(String, Reason)] {
        &[]
    }

    /// Yields every record in order, holding no more than a few of them at a time.
    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError>;
}

/// All records of an importer.
#[cfg(test)]
pub fn records(importer: &mut dyn Importer) -> Result<Vec<Record>, ReadError> {
    let mut records = Vec::new();
    importer.stream(&mut |record| {
        records.push(record);
        ControlFlow::Continue(())
    })?;
    Ok(records)
}
