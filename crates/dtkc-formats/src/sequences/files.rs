//! Files that are one sequence each, in folders and archives: tables and sounds. Which files count, in which order, and
//! which folder is a class, `dtkc-source` says.

use std::ops::ControlFlow;

use dtkc_item::ItemError;
use dtkc_source::{Reason, Sought};

use super::lines::Lines;
use super::long::TIMES;
use super::sound::Sound;
use super::table::{Columns, Table};
use super::{MAX_DIM, MAX_VALUES};
use crate::ReadError;
use crate::images::Listing;
use crate::labels::{self, Labels, LabelsFrom};
use crate::open::ReadOptions;
use crate::record::{Content, ContentForm, Description, Importer, Record, Sink};

/// How such a file becomes a sequence.
enum Reading {
    /// A table with a row for every step.
    Table(Columns),
    /// A sound.
    Sound(Box<Sound>),
}

/// Steps of one dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    /// Values of a step.
    pub dim: usize,
    /// The steps, one after the other.
    pub values: Vec<f32>,
}

/// Imports what was listed.
pub struct FileImporter {
    listing: Listing,
    labels: Vec<Option<i64>>,
    reading: Reading,
    dim: usize,
    description: Description,
}

impl FileImporter {
    /// Reads the first file that can be read, for the number of values of a step. `several` where other sources are beside it.
    pub fn new(mut listing: Listing, options: &ReadOptions, several: bool) -> Result<Self, ReadError> {
        let mut reading = match listing.sought() {
            Sought::Sounds => Reading::Sound(Box::new(Sound::new(options.sound))),
            _ => Reading::Table(options.columns.clone()),
        };
        let (format, what) = match &reading {
            Reading::Sound(_) => ("WAV files", options.sound.described()),
            Reading::Table(_) => ("CSV files, each one sequence", String::new()),
        };
        let dim = dim_of_first(&mut listing, &mut reading)?;
        let (origin, is_folder) = listing.origin();
        let own = origin.as_deref().filter(|_| several && is_folder);
        // What lies in folders of sequences is there to be told apart.
        let Labels { classes, labels, .. } = labels::label(&listing.names(), &[], LabelsFrom::Folders, own);
        let notes = Some(what).filter(|what| !what.is_empty()).into_iter().collect();
        let description = Description {
            count: Some(labels.len() as u64),
            classes,
            paths: true,
            origin,
            notes,
            ..Description::new(format, ContentForm::Sequences { dim })
        };
        Ok(Self { listing, labels, reading, dim, description })
    }
}

impl Importer for FileImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn passed_over(&self) -> &[(String, Reason)] {
        self.listing.passed()
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let Self { listing, labels, reading, dim, .. } = self;
        let mut labels = labels.iter();
        listing.each(&mut |name, bytes| {
            let label = labels.next().copied().flatten();
            let read = bytes.and_then(|bytes| reading.read(name, bytes)).and_then(|steps| steps.of_dim(*dim));
            let content = read.map_or_else(Content::Unreadable, Content::Sequence);
            sink(Record { content, label, path: Some(name.to_owned()) })
        })
    }
}

/// The values of a step of the first file that can be read.
fn dim_of_first(listing: &mut Listing, reading: &mut Reading) -> Result<usize, ReadError> {
    let (mut found, mut problem) = (None, None);
    listing.each(&mut |name, bytes| {
        match bytes.and_then(|bytes| reading.read(name, bytes)) {
            Ok(steps) => found = Some(steps.dim),
            Err(error) => {
                problem.get_or_insert_with(|| format!("no file can be read, the first because: {name}: {error}"));
            }
        }
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let origin = listing.origin().0.unwrap_or_else(|| "the files".to_owned());
    found.ok_or_else(|| ReadError::source(origin, problem.unwrap_or_else(|| "there are no files".to_owned())))
}

impl Steps {
    fn of_dim(self, dim: usize) -> Result<Vec<f32>, ItemError> {
        if self.dim == dim {
            return Ok(self.values);
        }
        let text = format!("it has {} values a step, the first file has {dim}", self.dim);
        Err(ItemError::new("other_dimension", text))
    }
}

impl Reading {
    fn read(&mut self, name: &str, bytes: Vec<u8>) -> Result<Steps, ItemError> {
        match self {
            Self::Table(columns) => table(Lines::of(name, bytes), columns),
            Self::Sound(sound) => sound.steps(&bytes).map(|(dim, values)| Steps { dim, values }),
        }
    }
}

/// A table whose rows are steps. A column of times is left out, so are columns without a name.
pub fn table(lines: Lines, columns: &Columns) -> Result<Steps, ItemError> {
    let bad = |error: ReadError| ItemError::new("bad_table", plain(error));
    let mut table = Table::open(lines).map_err(bad)?;
    let chosen: Vec<usize> = match columns.values.is_empty() {
        false => columns
            .values
            .iter()
            .map(|value| table.column(value, "--value-columns"))
            .collect::<Result<_, _>>()
            .map_err(bad)?,
        true => {
            let time = match &columns.time {
                Some(time) => Some(table.column(time, "--time-column").map_err(bad)?),
                None => table.guess(&TIMES),
            };
            let named = |column: &usize| table.names.as_ref().is_none_or(|names| !names[*column].is_empty());
            (0..table.width).filter(|column| Some(*column) != time).filter(named).collect()
        }
    };
    if !(1..=MAX_DIM).contains(&chosen.len()) {
        let text = format!("there are {} columns of values; a step has 1 to {MAX_DIM}", chosen.len());
        return Err(ItemError::new("bad_table", text));
    }
    let (dim, width) = (chosen.len(), table.width);
    let mut values = Vec::new();
    while let Some(row) = table.next_row().map_err(bad)? {
        let fields: Vec<_> = table.fields(&row).take(width + 1).collect();
        if fields.len() != width {
            let found = if fields.len() > width { "more".to_owned() } else { fields.len().to_string() };
            return Err(bad(table.fault(&format!("has {found} columns instead of {width}"))));
        }
        if values.len() + dim > MAX_VALUES {
            return Err(ItemError::new("too_large", format!("it has more than {MAX_VALUES} values")));
        }
        for &column in &chosen {
            values.push(table.number(&fields[column]).map_err(|e| bad(table.fault(&e)))?);
        }
    }
    Ok(Steps { dim, values })
}

/// The reason alone: whoever lists the file names it.
fn plain(error: ReadError) -> String {
    match error {
        ReadError::Source { reason, .. } => reason,
        other => other.to_string(),
    }
}
