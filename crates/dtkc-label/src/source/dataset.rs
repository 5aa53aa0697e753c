//! Datasets in HDF5 (schema 1): the fast way in, because nothing has to be decoded.

use dtkc_dataset::Dataset;
use dtkc_item::ImageShape;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::{Origin, Visitor};
use crate::error::{LabelError, Result};

/// Whether a file is a dataset by its first bytes, or by its name where it is damaged.
pub(super) fn is_dataset(path: &Path) -> bool {
    let named = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("h5") || e.eq_ignore_ascii_case("hdf5"));
    named || dtkc_source::read_head(path, 8).is_ok_and(|head| head == b"\x89HDF\r\n\x1a\n")
}

/// An open dataset of images.
pub struct Table {
    path: String,
    dataset: Dataset,
    shape: ImageShape,
    truth: OnceLock<Option<Truth>>,
}

struct Truth {
    labels: Vec<i64>,
    names: Option<Vec<String>>,
}

impl Table {
    /// Opens a dataset and refuses what does not hold images.
    pub fn open(path: &Path) -> Result<Self> {
        let dataset = Dataset::open(path)?;
        let Some(shape) = dataset.image_shape() else {
            return Err(LabelError::file(path, "it holds sequences, and the model labels images"));
        };
        Ok(Self { path: path.to_string_lossy().into_owned(), dataset, shape, truth: OnceLock::new() })
    }

    /// The file, as given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.dataset.len()
    }

    /// True where there is no image.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of every image.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// The pixels of some rows.
    pub fn pixels(&self, rows: Range<usize>) -> Result<Vec<u8>> {
        Ok(self.dataset.read_range(rows)?)
    }

    /// What the `path` column says for some rows: the recorded paths, else the file and the row.
    pub fn paths(&self, rows: Range<usize>) -> Result<Vec<String>> {
        match self.dataset.paths(rows.clone())? {
            Some(paths) => Ok(paths),
            None => Ok(rows.map(|row| format!("{}#{row}", self.path)).collect()),
        }
    }

    /// Reads the labels, for [`Table::truth`]; says whether there are any.
    pub fn load_truth(&self) -> Result<bool> {
        if self.truth.get().is_none() {
            let names = self.dataset.label_names()?;
            let truth = self.dataset.labels()?.map(|labels| Truth { labels, names });
            // Somebody else may have been faster, with the same content.
            let _ = self.truth.set(truth);
        }
        Ok(matches!(self.truth.get(), Some(Some(_))))
    }

    /// The class of a row, by name where classes have names.
    pub fn truth(&self, row: usize) -> Option<String> {
        let truth = self.truth.get()?.as_ref()?;
        // A negative label means that the class is not known.
        let label = *truth.labels.get(row).filter(|label| **label >= 0)?;
        let name = truth.names.as_ref().and_then(|names| names.get(usize::try_from(label).ok()?));
        Some(name.cloned().unwrap_or_else(|| label.to_string()))
    }
}

/// Visits every row. Paths and pixels are read later, in runs.
pub(super) fn visit(table: &Arc<Table>, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    for row in 0..table.len() {
        visitor.found(Origin::Row { path: String::new(), table: table.clone(), row })?;
    }
    ControlFlow::Continue(())
}
