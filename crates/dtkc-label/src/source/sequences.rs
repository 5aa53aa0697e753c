//! Sequences in files of other programs: tables, .ts, NumPy, Parquet, sounds, one by one or in folders and archives.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use dtkc_formats::Format;
use dtkc_formats::detect::{self, Input};
use dtkc_formats::open;
use dtkc_formats::record::{Classes, Content, ContentForm, Description, Importer, Record};
use dtkc_item::ItemError;
use dtkc_source::Passed;
use dtkc_source::remote::{self, At};

use super::downloads::Downloads;
use super::{Origin, Visitor};
use crate::error::{LabelError, Result};
use crate::sequences::SequenceOptions;

/// Sources of sequences that one `--input` stands for.
pub struct SequenceFiles {
    /// As the user named it.
    text: String,
    places: Vec<Place>,
    /// They read from the start each time, but only one visitor at a time.
    importers: Mutex<Vec<Box<dyn Importer>>>,
    count: Option<u64>,
    has_classes: bool,
}

/// A file or a folder that sequences are read from.
struct Place {
    path: PathBuf,
    /// Whether it is a folder or an archive, whose files are a sequence each.
    holds_files: bool,
}

/// One sequence that was read.
pub struct Sequence {
    /// What the `path` column says.
    pub path: String,
    /// The file or folder that it was read from.
    pub file: PathBuf,
    /// Values per time step.
    pub dim: usize,
    /// The time steps, or why there are none. They are taken out when the sequence goes to a worker.
    pub values: Result<Vec<f32>, ItemError>,
    /// Its class, where that is known.
    pub truth: Option<String>,
}

impl SequenceFiles {
    /// Opens what `text` names, and refuses what holds no sequences of the model's dimension, with both numbers.
    pub(super) fn open(text: &str, options: &SequenceOptions, downloads: &mut Downloads<'_>) -> Result<Self> {
        let mut paths = dtkc_source::expand(Path::new(text))?;
        let mut brought = HashMap::new();
        for path in &mut paths {
            if remote::is(path) && is_file(path)? && !detect::reads_in_place(path, options.format)? {
                let local = downloads.bring(&path.to_string_lossy())?;
                brought.insert(local.clone(), std::mem::replace(path, local));
            }
        }
        let inputs = detect::detect(&paths, options.format, options.read.limits)?;
        let place = |input: &Input| Place {
            path: brought.get(input.path()).unwrap_or(input.path()).clone(),
            holds_files: matches!(input, Input::Folder(..) | Input::File(_, Format::Zip | Format::Tar)),
        };
        let places = inputs.iter().map(place).collect();
        let importers = open::open(inputs, &options.read)?;
        for importer in &importers {
            check(text, importer.describe(), options.dim)?;
        }
        let counts: Option<Vec<u64>> = importers.iter().map(|importer| importer.describe().count).collect();
        let has_classes = importers.iter().any(|importer| importer.describe().classes != Classes::None);
        let count = counts.map(|counts| counts.iter().sum());
        Ok(Self { text: text.to_owned(), places, importers: Mutex::new(importers), count, has_classes })
    }

    /// As the user named them.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many sequences, where that is known beforehand.
    pub fn count(&self) -> Option<u64> {
        self.count
    }

    /// Whether any of them has a class.
    pub fn has_classes(&self) -> bool {
        self.has_classes
    }

    /// Folders that are read.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.places().filter(|path| path.is_dir())
    }

    /// Files and folders that are read.
    pub fn places(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|place| place.path.as_path())
    }

    /// Shows every sequence, in order.
    pub fn visit(&self, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>> {
        // A visitor that panicked has left nothing half done: each visit reads from the start.
        let mut importers = self.importers.lock().unwrap_or_else(PoisonError::into_inner);
        for importer in importers.iter_mut() {
            let about = About::of(importer.describe(), self);
            for (name, reason) in importer.passed_over() {
                visitor.passed(Passed { root: &about.file, name, reason: *reason });
            }
            let (mut flow, mut number) = (ControlFlow::Continue(()), 0u64);
            importer.stream(&mut |record| {
                flow = visitor.found(Origin::Sequence(Box::new(about.sequence(record, number))));
                number += 1;
                flow
            })?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Whether an address leads to one object.
fn is_file(path: &Path) -> Result<bool> {
    let at = remote::at(path).map_err(|error| LabelError::wrap(path, error))?;
    Ok(matches!(at, At::File(_)))
}

/// Refuses what the model cannot take.
fn check(text: &str, description: &Description, dim: usize) -> Result<()> {
    let reason = match description.form {
        ContentForm::Sequences { dim: found } if found == dim => return Ok(()),
        ContentForm::Sequences { dim: found } => ItemError::other_dimension(found, dim).message,
        ContentForm::Encoded | ContentForm::Pixels(_) => "it holds images, and the model takes sequences".into(),
    };
    Err(LabelError::file(Path::new(text), reason))
}

/// What the sequences of one importer have in common.
struct About {
    classes: Classes,
    dim: usize,
    /// The file, folder or archive.
    file: PathBuf,
    /// Whether its files have names below it.
    holds_files: bool,
}

impl About {
    fn of(description: &Description, files: &SequenceFiles) -> Self {
        let dim = if let ContentForm::Sequences { dim } = description.form { dim } else { 0 };
        let is_origin = |place: &&Place| match (place.path.file_name(), &description.origin) {
            (Some(name), Some(origin)) => name.to_string_lossy() == origin.as_str(),
            _ => false,
        };
        let place = files.places.iter().find(is_origin).or(files.places.first());
        let (file, holds_files) = place.map_or_else(Default::default, |place| (place.path.clone(), place.holds_files));
        Self { classes: description.classes.clone(), dim, file, holds_files }
    }

    fn sequence(&self, record: Record, number: u64) -> Sequence {
        // Files that are a sequence each have names below their folder; rows of a table have names of their own.
        let path = match (record.path, self.holds_files) {
            (Some(name), true) => format!("{}/{name}", self.file.to_string_lossy().trim_end_matches('/')),
            (Some(name), false) => name,
            (None, _) => format!("{}#{number}", self.file.display()),
        };
        let values = match record.content {
            Content::Sequence(values) => Ok(values),
            Content::Unreadable(error) => Err(error),
            Content::File(_) | Content::Encoded(_) | Content::Pixels(_) => {
                Err(ItemError::new("not_a_sequence", "it is an image, and the model takes sequences"))
            }
        };
        Sequence { path, file: self.file.clone(), dim: self.dim, values, truth: self.class(record.label) }
    }

    /// A class by its name. A negative label means that it is not known.
    fn class(&self, label: Option<i64>) -> Option<String> {
        let label = label.filter(|label| *label >= 0)?;
        match &self.classes {
            Classes::None => None,
            Classes::Numbers(_) => Some(label.to_string()),
            Classes::Names(names) => names.get(usize::try_from(label).ok()?).cloned(),
        }
    }
}
