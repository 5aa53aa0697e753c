//! The output file, whole or not at all, and the list of failures beside it.

use std::path::{Path, PathBuf};

use dtkc_files::Pending;
use dtkc_item::Items;
use dtkc_observe::Observer;

use crate::error::{LabelError, Result};
use crate::failures::FailureList;
use crate::journal::{self, Reader};
use crate::keep::KeptColumns;
use crate::layout::Layout;
use crate::output::{self, Format, Held, RowWriter};
use crate::row::Row;
use crate::spool::SpoolReader;

/// Which file to make.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where.
    pub path: PathBuf,
    /// In which form.
    pub format: Format,
    /// With which columns.
    pub layout: Layout,
    /// The items in it, where the form holds items.
    pub held: Held,
    /// Where failures are listed.
    pub failed: PathBuf,
}

/// An output that is being made.
pub struct Writing {
    pending: Pending,
    writer: Box<dyn RowWriter>,
    failures: FailureList,
}

impl Writing {
    /// Starts beside the target.
    pub fn start(target: &Target, kept: Option<KeptColumns>) -> Result<Self> {
        let pending = Pending::beside(&target.path)?;
        let writer = output::create(&pending, target.format, &target.layout, target.held, kept);
        let writer = writer.map_err(|error| about(&pending, error))?;
        Ok(Self { pending, writer, failures: FailureList::new(&target.failed) })
    }

    /// Writes rows, and the items of the labelled ones where the form wants them.
    pub fn write(&mut self, rows: &[Row], items: &Items) -> Result<()> {
        self.writer.write(rows, items).map_err(|error| about(&self.pending, error))?;
        rows.iter().try_for_each(|row| self.failures.add(row))
    }

    /// Gives the file its name. Says where failures are listed, if there are any.
    pub fn finish(self) -> Result<Option<PathBuf>> {
        self.writer.finish().map_err(|error| about(&self.pending, error))?;
        let list = self.failures.finish()?;
        self.pending.commit()?;
        Ok(list)
    }
}

/// What the system says about a write names no file; people know this one by the name that it will have.
fn about(pending: &Pending, error: LabelError) -> LabelError {
    match error {
        LabelError::Io(error) => pending.failed(&error).into(),
        other => other,
    }
}

/// Makes the output from its journal, which holds `rows` rows.
pub fn from_journal(
    target: &Target,
    kept: Option<KeptColumns>,
    rows: u64,
    observer: &dyn Observer,
) -> Result<Option<PathBuf>> {
    let name = target.path.file_name().unwrap_or_default().to_string_lossy();
    observer.begin(&format!("write {name}"), "rows", Some(rows));
    let mut writing = Writing::start(target, kept)?;
    let mut reader = Reader::open(&target.path)?;
    let mut kept = match target.format.wants_items() {
        true => Some(SpoolReader::open(&journal::items_path(&target.path), target.held.shape)?),
        false => None,
    };
    let none = Items::empty(target.held.shape);
    let mut found = 0;
    while let Some(rows) = reader.next_block()? {
        let labelled = rows.iter().filter(|row| row.outcome.is_ok()).count();
        let items = kept.as_mut().map(|kept| kept.next(labelled)).transpose()?;
        writing.write(&rows, items.as_ref().unwrap_or(&none))?;
        observer.advance(rows.len() as u64);
        found += rows.len() as u64;
    }
    if found != rows {
        let journal = journal::path_for(&target.path);
        let text = format!(
            "{} holds {found} rows and {rows} were written to it; it was changed meanwhile: run the command again",
            journal.display()
        );
        return Err(LabelError::Lost(text));
    }
    let list = writing.finish();
    observer.end();
    list
}

/// The target's folder must be there before hours of work are done for it.
pub fn check_folder(path: &Path) -> Result<()> {
    // Dropped at once: this leaves nothing behind.
    Ok(Pending::beside(path).map(|_| ())?)
}
