//! The sequence writer.

use dtkc_item::ItemKind;
use std::path::Path;

use super::column::{Column, ColumnSpec};
use super::sink::{About, Sink};
use crate::{DataError, SequenceOptions, schema};

/// Streams sequences to a dataset file, which appears whole at [`SequenceWriter::finish`] or not at all.
#[derive(Debug)]
pub struct SequenceWriter {
    values: Column<f32>,
    offsets: Column<u64>,
    dim: usize,
    steps: u64,
    sink: Sink,
}

impl SequenceWriter {
    /// Starts a file that will appear at `path`.
    pub fn create(path: &Path, options: SequenceOptions) -> Result<Self, DataError> {
        let dim = options.dim;
        if dim == 0 {
            return Err(DataError::Invalid("a sequence needs at least one value per time step".into()));
        }
        options.compression.check()?;
        let about = About {
            kind: ItemKind::Sequences,
            name: options.name,
            source: options.source,
            paths: options.paths,
            label_names: options.label_names,
        };
        let sink = Sink::create(path, about)?;
        let spec = ColumnSpec {
            file: sink.file(),
            name: schema::VALUES,
            row: vec![dim],
            chunk_rows: schema::chunk_rows(dim * size_of::<f32>()),
            compression: options.compression,
        };
        let values = Column::create(spec).map_err(|e| sink.failed(&e))?;
        let list = ColumnSpec::list(sink.file(), schema::OFFSETS);
        let mut offsets = Column::create(list).map_err(|e| sink.failed(&e))?;
        offsets.extend(&[0]).map_err(|e| sink.failed(&e))?;
        Ok(Self { values, offsets, dim, steps: 0, sink })
    }

    /// Adds one sequence: time steps of `dim` values each, one after the other, at least one. Labels and
    /// paths as with [`ImageWriter::push`](crate::ImageWriter::push).
    pub fn push(&mut self, values: &[f32], label: Option<i64>, path: Option<&str>) -> Result<(), DataError> {
        if values.is_empty() || !values.len().is_multiple_of(self.dim) {
            let (found, dim) = (values.len(), self.dim);
            let text = format!("sequence {} has {found} values, which is not a number of steps of {dim}", self.len());
            return Err(DataError::Invalid(text));
        }
        self.values.extend(values).map_err(|e| self.sink.failed(&e))?;
        self.steps += (values.len() / self.dim) as u64;
        self.offsets.extend(&[self.steps]).map_err(|e| self.sink.failed(&e))?;
        self.sink.push(label, path)
    }

    /// Sets or replaces the class names by label, at any time before [`SequenceWriter::finish`].
    pub fn set_label_names(&mut self, names: Vec<String>) {
        self.sink.set_label_names(names);
    }

    /// Sequences so far.
    pub fn len(&self) -> usize {
        self.sink.count()
    }

    /// True before the first sequence.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Completes the file and gives it its name. An empty set is refused. Returns the number of sequences.
    pub fn finish(self) -> Result<usize, DataError> {
        let Self { mut values, mut offsets, sink, .. } = self;
        values.flush().and_then(|()| offsets.flush()).map_err(|e| sink.failed(&e))?;
        drop((values, offsets));
        sink.finish()
    }
}
