//! The list of images that could not be labelled.

use std::fs::File;
use std::path::{Path, PathBuf};

use csv::Writer;
use dtkc_files::Pending;
use dtkc_human::cell;

use crate::error::{LabelError, Result};
use crate::journal::with_suffix;
use crate::row::Row;

/// Where the list of an output is, unless told otherwise.
pub fn path_for(output: &Path) -> PathBuf {
    with_suffix(output, ".failed.csv")
}

/// Where files that were passed over are listed.
pub fn passed_path_for(output: &Path) -> PathBuf {
    with_suffix(output, ".passed-over.csv")
}

/// Collects failed rows in a CSV file with index, path, code and reason. No failure, no file.
pub struct FailureList {
    target: PathBuf,
    open: Option<(Pending, Writer<File>)>,
}

impl FailureList {
    /// A list that will appear at `target`.
    pub fn new(target: &Path) -> Self {
        Self { target: target.to_owned(), open: None }
    }

    /// Adds a row if it failed.
    pub fn add(&mut self, row: &Row) -> Result<()> {
        let Err(error) = &row.outcome else { return Ok(()) };
        if self.open.is_none() {
            let pending = Pending::beside(&self.target)?;
            let mut writer = Writer::from_writer(pending.open()?);
            writer.write_record(["index", "path", "code", "reason"]).map_err(|e| LabelError::wrap(&self.target, e))?;
            self.open = Some((pending, writer));
        }
        if let Some((_, writer)) = &mut self.open {
            let index = row.index.to_string();
            let record = [index.as_str(), &cell(&row.path), &error.code, &cell(&error.message)];
            writer.write_record(record).map_err(|e| LabelError::wrap(&self.target, e))?;
        }
        Ok(())
    }

    /// Completes the list; where there is nothing to list, an old list is removed. Says where it is.
    pub fn finish(self) -> Result<Option<PathBuf>> {
        let Some((pending, mut writer)) = self.open else {
            return Ok(dtkc_files::remove(&self.target).map(|()| None)?);
        };
        writer.flush().map_err(|error| pending.failed(&error))?;
        drop(writer);
        pending.commit()?;
        Ok(Some(self.target))
    }
}
