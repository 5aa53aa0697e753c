//! `--keep-columns`: the columns that the input's tables have beside the images, in the output before those of the labels.
//!
//! Tables are looked at before a run begins ([`Kept::look`]). While images are found, [`Places`] remembers where each row
//! lies, and when the output is made the columns are read again, row by row ([`FromTables`]). The parts of a sharded run
//! have them already ([`FromParts`]).

mod arrow;
mod parts;
mod places;
mod tables;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ::parquet::schema::types::TypePtr;
use dtkc_observe::Observer;
use dtkc_source::parquet::{Choice, Chosen, Leaf, Mark, RowColumns};
use flate2::Crc;
pub use parts::FromParts;
pub use places::Places;
use serde::{Deserialize, Serialize};
pub use tables::FromTables;

use crate::error::{LabelError, Result};
use crate::layout::Layout;
use crate::output::label_fields;
use crate::source::Inputs;

/// Which columns are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Their names; all but the images where nobody names any.
    pub columns: Option<Vec<String>>,
    /// Whether the images are kept, too, where nobody names columns.
    pub images: bool,
}

/// What an output needs to know of kept columns, and who reads them.
pub struct KeptColumns {
    /// Names and types.
    pub fields: Vec<TypePtr>,
    /// What the file says about itself.
    pub about: Vec<(String, String)>,
    /// Where rows come from.
    pub source: Box<dyn KeptRows>,
}

/// Gives the kept columns of rows, in order.
pub trait KeptRows {
    /// Puts the columns of the item at `index` behind what `into` holds, and says what they take.
    fn read(&mut self, index: u64, into: &mut [Leaf]) -> Result<u64>;
}

/// The kept columns of the tables of a run.
#[derive(Debug, Clone)]
pub struct Kept {
    first: Chosen,
    about: Vec<(String, String)>,
    marks: HashMap<PathBuf, Mark>,
    choice: (Keep, RowColumns),
}

/// The flag, for errors.
const FLAG: &str = "--keep-columns";

impl Kept {
    /// Looks at all tables: they must have the same columns, and no column may have the name of one that is added.
    pub fn look(
        inputs: &Inputs,
        (keep, columns): (&Keep, &RowColumns),
        layout: &Layout,
        observer: &dyn Observer,
    ) -> Result<Self> {
        observer.begin("look at tables", "tables", None);
        let mut first: Option<(PathBuf, Chosen)> = None;
        let mut marks = HashMap::new();
        inputs.each_parquet(&mut |path| {
            observer.advance(1);
            // One that cannot be opened fails by itself, as without kept columns.
            let chosen = match choose(path, keep, columns) {
                Ok(chosen) => chosen,
                Err(error) if is_readable(path, columns) => return Err(error),
                Err(_) => return Ok(()),
            };
            marks.insert(path.to_owned(), chosen.mark);
            match &first {
                None => first = Some((path.to_owned(), chosen)),
                Some((known, expected)) => same_columns((known, expected), (path, &chosen))?,
            }
            Ok(())
        })?;
        observer.end();
        let Some((path, first)) = first else {
            return Err(LabelError::Usage(format!(
                "{FLAG} keeps columns of Parquet files, and none of the inputs is one that can be read; leave it out"
            )));
        };
        check_names(&path, &first, layout)?;
        let about = arrow::about(&first, &label_fields(layout, &first.fields));
        Ok(Self { first, about, marks, choice: (keep.clone(), columns.clone()) })
    }

    /// What the tables are known by, in one line.
    pub fn fingerprint(&self) -> String {
        let mut all: Vec<(&PathBuf, &Mark)> = self.marks.iter().collect();
        all.sort_by_key(|(path, _)| *path);
        let (mut sum, mut bytes) = (Crc::new(), 0u64);
        for (_, mark) in &all {
            sum.update(&mark.length.to_le_bytes());
            sum.update(&mark.sum.to_le_bytes());
            bytes = bytes.saturating_add(mark.length);
        }
        format!("{} of {bytes} bytes, {:08x}", all.len(), sum.sum())
    }

    /// For the output of a run.
    pub fn columns(&self, places: Places) -> KeptColumns {
        let source = Box::new(FromTables::new(self.clone(), places));
        KeptColumns { fields: self.first.fields.clone(), about: self.about.clone(), source }
    }

    /// The columns of one of the tables, which must be what it was.
    fn of(&self, path: &Path) -> Result<Chosen> {
        let chosen = choose(path, &self.choice.0, &self.choice.1)?;
        match self.marks.get(path) {
            Some(mark) if *mark == chosen.mark => Ok(chosen),
            _ => Err(LabelError::file(
                path,
                "it has changed since the run began, and its columns would stand beside the labels of other images; \
                 restore it, or start over with --force",
            )),
        }
    }
}

fn choose(path: &Path, keep: &Keep, columns: &RowColumns) -> Result<Chosen> {
    let choice = Choice { names: keep.columns.as_deref(), images: keep.images, columns, flag: FLAG };
    Ok(Chosen::of(path, &choice)?)
}

/// Whether labelling finds rows in a table.
fn is_readable(path: &Path, columns: &RowColumns) -> bool {
    matches!(dtkc_source::parquet::ImageRows::open(path, columns), Ok(Some(_)))
}

fn same_columns((known, expected): (&Path, &Chosen), (path, chosen): (&Path, &Chosen)) -> Result<()> {
    match expected.difference(chosen) {
        None => Ok(()),
        Some(column) => Err(LabelError::file(
            path,
            format!(
                "its column '{column}' is not as in {}, and {FLAG} needs the same columns in all tables; \
                 name those that they share, as in {FLAG} A,B",
                known.display()
            ),
        )),
    }
}

/// A column of the input keeps its name; one of the labels must not stand beside it under the same.
fn check_names(path: &Path, chosen: &Chosen, layout: &Layout) -> Result<()> {
    let added = label_fields(layout, &chosen.fields);
    match added.iter().find(|added| chosen.fields.iter().any(|field| field.name() == added.name)) {
        None => Ok(()),
        Some(taken) => Err(LabelError::file(
            path,
            format!(
                "it has a column '{}', which dtkc-label writes, too; name the columns to keep without it, as in \
                 {FLAG} A,B, or rename it",
                taken.name
            ),
        )),
    }
}
