//! The image writer.

use dtkc_item::{ImageShape, ItemKind};
use std::path::Path;

use super::column::{Column, ColumnSpec};
use super::sink::{About, Sink};
use crate::{DataError, WriterOptions, schema};

/// Streams images to a dataset file, which appears whole at [`ImageWriter::finish`] or not at all.
/// One chunk of images is held in memory.
#[derive(Debug)]
pub struct ImageWriter {
    images: Column<u8>,
    shape: ImageShape,
    sink: Sink,
}

impl ImageWriter {
    /// Starts a file that will appear at `path`.
    pub fn create(path: &Path, options: WriterOptions) -> Result<Self, DataError> {
        let shape = options.shape;
        shape.check().map_err(DataError::Invalid)?;
        options.compression.check()?;
        let about = About {
            kind: ItemKind::Images,
            name: options.name,
            source: options.source,
            paths: options.paths,
            label_names: options.label_names,
        };
        let sink = Sink::create(path, about)?;
        let images = Column::create(ColumnSpec {
            file: sink.file(),
            name: schema::IMAGES,
            row: vec![shape.height, shape.width, shape.channels],
            chunk_rows: schema::chunk_rows(shape.len()),
            compression: options.compression,
        })
        .map_err(|e| sink.failed(&e))?;
        Ok(Self { images, shape, sink })
    }

    /// Adds one image of exactly the shape's bytes. Either every image has a label or none. A path is
    /// needed for every image if the options say `paths`, and ignored otherwise.
    pub fn push(&mut self, pixels: &[u8], label: Option<i64>, path: Option<&str>) -> Result<(), DataError> {
        if pixels.len() != self.shape.len() {
            let (found, expected, shape) = (pixels.len(), self.shape.len(), self.shape);
            let text = format!("image {} has {found} bytes instead of {expected} ({shape})", self.len());
            return Err(DataError::Invalid(text));
        }
        self.images.extend(pixels).map_err(|e| self.sink.failed(&e))?;
        self.sink.push(label, path)
    }

    /// Sets or replaces the class names by label, at any time before [`ImageWriter::finish`].
    pub fn set_label_names(&mut self, names: Vec<String>) {
        self.sink.set_label_names(names);
    }

    /// Images so far.
    pub fn len(&self) -> usize {
        self.sink.count()
    }

    /// True before the first image.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Completes the file and gives it its name. An empty set is refused. Returns the number of images.
    pub fn finish(self) -> Result<usize, DataError> {
        let Self { mut images, sink, .. } = self;
        images.flush().map_err(|e| sink.failed(&e))?;
        drop(images);
        sink.finish()
    }
}
