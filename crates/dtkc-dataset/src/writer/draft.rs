//! What image and sequence files have in common: attributes, labels, names, paths, and a good end.

use std::path::{Path, PathBuf};

use dtkc_files::Pending;
use hdf5::File;
use hdf5::types::VarLenUnicode;

use super::column::{Column, ColumnSpec};
use super::{Origin, WriterOptions};
use crate::{DataError, h5, schema};

/// The file under construction. The fields are dropped in order: HDF5 lets go of the partial file before
/// it is removed.
#[derive(Debug)]
pub struct Draft {
    labels: Labels,
    paths: Option<Column<VarLenUnicode>>,
    label_names: Option<Vec<String>>,
    file: File,
    /// `None` where somebody else gives the file its name.
    pending: Option<Pending>,
    target: PathBuf,
    count: usize,
}

#[derive(Debug)]
enum Labels {
    Unknown,
    Absent,
    Present { column: Column<i64>, greatest: i64 },
}

impl Draft {
    pub fn create(target: &Path, options: WriterOptions) -> Result<Self, DataError> {
        let pending = Pending::beside(target)?;
        let place = pending.path().to_owned();
        Self::start(&place, target, Some(pending), options)
    }

    /// A file that is written at `place` and stays there; errors name `target`.
    pub fn at(place: &Path, target: &Path, options: WriterOptions) -> Result<Self, DataError> {
        Self::start(place, target, None, options)
    }

    fn start(place: &Path, target: &Path, pending: Option<Pending>, options: WriterOptions) -> Result<Self, DataError> {
        let failed = |e: hdf5::Error| h5::write_failed(target, &e);
        let file = h5::create(place).map_err(failed)?;
        write_attributes(&file, &options).map_err(failed)?;
        let paths = match options.paths {
            true => Some(Column::create(ColumnSpec::list(&file, schema::PATHS)).map_err(failed)?),
            false => None,
        };
        let target = target.to_owned();
        Ok(Self { labels: Labels::Unknown, paths, label_names: options.label_names, file, pending, target, count: 0 })
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn set_label_names(&mut self, names: Vec<String>) {
        self.label_names = Some(names);
    }

    /// An HDF5 failure as an error about the file that was to be.
    pub fn failed(&self, error: &hdf5::Error) -> DataError {
        h5::write_failed(&self.target, error)
    }

    /// Adds an item's label and path; the caller has added its values.
    pub fn push(&mut self, label: Option<i64>, path: Option<&str>) -> Result<(), DataError> {
        self.push_label(label)?;
        if let Some(column) = &mut self.paths {
            let Some(path) = path else {
                return Err(DataError::Invalid(format!("item {} has no path, but the set has paths", self.count)));
            };
            column.push_text(path).map_err(|e| h5::write_failed(&self.target, &e))?;
        }
        self.count += 1;
        Ok(())
    }

    fn push_label(&mut self, label: Option<i64>) -> Result<(), DataError> {
        if let Labels::Unknown = self.labels {
            self.labels = match label {
                None => Labels::Absent,
                Some(first) => {
                    let spec = ColumnSpec::list(&self.file, schema::LABELS);
                    let column = Column::create(spec).map_err(|e| self.failed(&e))?;
                    Labels::Present { column, greatest: first }
                }
            };
        }
        match (&mut self.labels, label) {
            (Labels::Present { column, greatest }, Some(label)) => {
                *greatest = (*greatest).max(label);
                column.extend(&[label]).map_err(|e| h5::write_failed(&self.target, &e))
            }
            (Labels::Present { .. }, None) => {
                Err(DataError::Invalid(format!("item {} has no label, but the items before it have one", self.count)))
            }
            (_, Some(_)) => {
                Err(DataError::Invalid(format!("item {} has a label, but the items before it have none", self.count)))
            }
            (_, None) => Ok(()),
        }
    }

    /// Completes the file and gives it its name. The caller has flushed its values.
    pub fn finish(mut self) -> Result<usize, DataError> {
        if self.count == 0 {
            let reason = "there is nothing to write into it".into();
            return Err(DataError::Write { path: self.target, reason });
        }
        self.check_label_names()?;
        self.complete().map_err(|e| self.failed(&e))?;
        let Self { labels, paths, file, pending, target, count, .. } = self;
        drop((labels, paths));
        // A failure that HDF5 has put off until now must not be lost: closing says so, dropping would not.
        file.close().map_err(|e| h5::write_failed(&target, &e))?;
        pending.map_or(Ok(()), Pending::commit)?;
        Ok(count)
    }

    fn check_label_names(&self) -> Result<(), DataError> {
        let Some(names) = &self.label_names else { return Ok(()) };
        let Labels::Present { greatest, .. } = self.labels else {
            return Err(DataError::Invalid("label names were given, but the items have no labels".into()));
        };
        if greatest >= names.len() as i64 {
            let known = names.len();
            return Err(DataError::Invalid(format!("label {greatest} has no name: there are {known} label names")));
        }
        Ok(())
    }

    fn complete(&mut self) -> hdf5::Result<()> {
        if let Labels::Present { column, .. } = &mut self.labels {
            column.flush()?;
        }
        if let Some(column) = &mut self.paths {
            column.flush()?;
        }
        if let Some(names) = &self.label_names {
            let names = names.iter().map(|name| h5::text(name)).collect::<hdf5::Result<Vec<_>>>()?;
            self.file.new_dataset_builder().with_data(&names).create(schema::LABEL_NAMES)?;
        }
        self.file.flush()
    }
}

fn write_attributes(file: &File, options: &WriterOptions) -> hdf5::Result<()> {
    file.new_attr::<i64>().create(schema::SCHEMA)?.write_scalar(&schema::VERSION)?;
    let kind = options.shape.kind().name();
    let resize = options.resize.map(|rule| rule.to_string());
    let texts = [(schema::KIND, kind), (schema::NAME, &options.name), (schema::SOURCE, &options.source)];
    for (key, value) in texts.into_iter().chain(resize.as_deref().map(|rule| (schema::RESIZE, rule))) {
        file.new_attr::<VarLenUnicode>().create(key)?.write_scalar(&h5::text(value)?)?;
    }
    if let Some(Origin { about, network }) = &options.origin {
        file.new_attr::<VarLenUnicode>().create(schema::ORIGIN)?.write_scalar(&h5::text(about)?)?;
        file.new_dataset_builder().with_data(network).create(schema::NETWORK)?;
    }
    Ok(())
}
