//! Datasets in HDF5 (schema 1): the fast way in, because nothing has to be decoded.

use dtkc_dataset::Dataset;
use dtkc_item::{ImageShape, ItemError, ItemShape, Items};
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

/// An open dataset.
pub struct Table {
    path: String,
    dataset: Dataset,
    /// Where each sequence begins, in time steps, and the end; empty for images.
    offsets: Vec<usize>,
    truth: OnceLock<Option<Truth>>,
}

struct Truth {
    labels: Vec<i64>,
    names: Option<Vec<String>>,
}

impl Table {
    /// Opens a dataset and refuses what does not hold what the model takes: sequences of its dimension, or images, which
    /// may have another size.
    pub fn open(path: &Path, wanted: ItemShape) -> Result<Self> {
        let dataset = Dataset::open(path)?;
        let (kind, takes) = (dataset.kind(), wanted.kind());
        if kind != takes {
            return Err(LabelError::file(path, format!("it holds {kind}, and the model labels {takes}")));
        }
        if let (Some(found), Some(wanted)) = (dataset.shape().dim(), wanted.dim())
            && found != wanted
        {
            return Err(LabelError::file(path, ItemError::other_dimension(found, wanted).message));
        }
        let offsets = dataset.sequence_lengths().map_or_else(Vec::new, |lengths| {
            let ends = lengths.iter().scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            std::iter::once(0).chain(ends).collect()
        });
        Ok(Self { path: path.to_string_lossy().into_owned(), dataset, offsets, truth: OnceLock::new() })
    }

    /// The same under the name that the user gave.
    pub fn called(self, name: &str) -> Self {
        Self { path: name.to_owned(), ..self }
    }

    /// Opens a dataset of images of any size.
    pub fn of_images(path: &Path) -> Result<Self> {
        Self::open(path, ItemShape::Image(ImageShape { height: 1, width: 1, channels: 1 }))
    }

    /// The file, as given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.dataset.len()
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What every item looks like.
    pub fn shape(&self) -> ItemShape {
        self.dataset.shape()
    }

    /// Time steps of a row; 0 for images.
    pub fn steps(&self, row: usize) -> usize {
        match (self.offsets.get(row), self.offsets.get(row + 1)) {
            (Some(start), Some(end)) => end - start,
            _ => 0,
        }
    }

    /// Bytes that a row takes in memory.
    pub fn bytes(&self, row: usize) -> u64 {
        match self.shape() {
            ItemShape::Image(shape) => shape.len() as u64,
            ItemShape::Sequence { dim } => (self.steps(row) * dim * size_of::<f32>()) as u64,
            ItemShape::Features(shape) => (shape.len() * size_of::<f32>()) as u64,
        }
    }

    /// Some rows that follow each other.
    pub fn items(&self, rows: Range<usize>) -> Result<Items> {
        Ok(match self.shape() {
            ItemShape::Image(shape) => Items::Images { shape, pixels: self.dataset.read_range(rows)? },
            ItemShape::Sequence { dim } => {
                let places = self.offsets.get(rows.start..=rows.end).unwrap_or(&[0]);
                let (start, end) = (places[0], places[places.len() - 1]);
                let offsets = places.iter().map(|place| place - start).collect();
                Items::Sequences { dim, values: self.dataset.read_steps(start..end)?, offsets }
            }
            ItemShape::Features(_) => self.dataset.items_of(rows)?,
        })
    }

    /// What the `path` column says for some rows: the recorded paths, else the file and the row.
    pub fn paths(&self, rows: Range<usize>) -> Result<Vec<String>> {
        match self.dataset.paths(rows.clone())? {
            Some(paths) => Ok(paths),
            None => Ok(rows.map(|row| format!("{}#{row}", self.path)).collect()),
        }
    }

    /// Whether it says where its items came from.
    pub fn has_paths(&self) -> Result<bool> {
        Ok(self.dataset.paths(0..self.len().min(1))?.is_some())
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
