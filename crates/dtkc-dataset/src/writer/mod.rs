//! Writing datasets: streamed, whole or not at all.

mod column;
mod draft;
mod options;

use std::path::Path;

use dtkc_item::{FeatureShape, ImageShape, ItemKind, ItemShape};

use self::column::{Column, ColumnSpec};
use self::draft::Draft;
pub use self::options::{Compression, Origin, WriterOptions};
use crate::{DataError, schema};

/// Streams items to a dataset file, which appears whole at [`Writer::finish`] or not at all. One chunk of items is
/// held in memory.
#[derive(Debug)]
pub struct Writer {
    values: Values,
    draft: Draft,
}

/// The content proper.
#[derive(Debug)]
enum Values {
    Images { shape: ImageShape, pixels: Column<u8> },
    Sequences { dim: usize, steps: u64, values: Column<f32>, offsets: Column<u64> },
    Features { shape: FeatureShape, values: Column<f32>, inside: Vec<Column<f32>> },
}

impl Writer {
    /// Starts a file that will appear at `path`.
    pub fn create(path: &Path, options: WriterOptions) -> Result<Self, DataError> {
        Self::start(options, |options| Draft::create(path, options))
    }

    /// Starts a file at `place` for whoever gives it the name `target` himself, when he has added to it. Errors are about
    /// `target`.
    pub fn at(place: &Path, target: &Path, options: WriterOptions) -> Result<Self, DataError> {
        Self::start(options, |options| Draft::at(place, target, options))
    }

    fn start(
        options: WriterOptions,
        draft: impl FnOnce(WriterOptions) -> Result<Draft, DataError>,
    ) -> Result<Self, DataError> {
        let (shape, compression) = (options.shape, options.compression);
        options.check()?;
        let draft = draft(options)?;
        let values = Values::create(&draft, shape, compression).map_err(|e| draft.failed(&e))?;
        Ok(Self { values, draft })
    }

    /// Adds one image of exactly the shape's bytes. Either every item has a label or none; a negative one says that the
    /// item's class is not known. A path is needed for every item if the options say `paths`, and ignored otherwise.
    pub fn push_image(&mut self, pixels: &[u8], label: Option<i64>, path: Option<&str>) -> Result<(), DataError> {
        let number = self.len();
        let Values::Images { shape, pixels: column } = &mut self.values else {
            return Err(self.wrong_kind(ItemKind::Images));
        };
        if pixels.len() != shape.len() {
            let (found, expected) = (pixels.len(), shape.len());
            return Err(DataError::Invalid(format!(
                "image {number} has {found} bytes instead of {expected} ({shape})"
            )));
        }
        column.extend(pixels).map_err(|e| self.draft.failed(&e))?;
        self.draft.push(label, path)
    }

    /// Adds one sequence: time steps of the shape's number of values each, one after the other, at least one. Labels
    /// and paths as with [`Writer::push_image`].
    pub fn push_sequence(&mut self, steps: &[f32], label: Option<i64>, path: Option<&str>) -> Result<(), DataError> {
        let number = self.len();
        let Values::Sequences { dim, steps: end, values, offsets } = &mut self.values else {
            return Err(self.wrong_kind(ItemKind::Sequences));
        };
        if steps.is_empty() {
            return Err(DataError::Invalid(format!("sequence {number} has no steps; it must have at least one")));
        }
        if !steps.len().is_multiple_of(*dim) {
            let found = steps.len();
            let text = format!("sequence {number} has {found} values, which is not a number of steps of {dim}");
            return Err(DataError::Invalid(text));
        }
        *end += (steps.len() / *dim) as u64;
        values.extend(steps).and_then(|()| offsets.extend(&[*end])).map_err(|e| self.draft.failed(&e))?;
        self.draft.push(label, path)
    }

    /// Adds the vectors of an image and of its views, and behind them what lies inside the network, as the shape says. Labels and paths as with [`Writer::push_image`].
    pub fn push_features(&mut self, vectors: &[f32], label: Option<i64>, path: Option<&str>) -> Result<(), DataError> {
        let number = self.len();
        let Values::Features { shape, values, inside } = &mut self.values else {
            return Err(self.wrong_kind(ItemKind::Features));
        };
        if vectors.len() != shape.len() {
            let (found, expected) = (vectors.len(), shape.len());
            return Err(DataError::Invalid(format!("item {number} has {found} values instead of {expected}")));
        }
        let (vectors, mut rest) = vectors.split_at(shape.vectors());
        values.extend(vectors).map_err(|e| self.draft.failed(&e))?;
        for (tap, column) in shape.taps.iter().zip(inside) {
            let (own, behind) = rest.split_at(tap.len());
            column.extend(own).map_err(|e| self.draft.failed(&e))?;
            rest = behind;
        }
        self.draft.push(label, path)
    }

    fn wrong_kind(&self, given: ItemKind) -> DataError {
        DataError::Invalid(format!("{given} cannot be written to a set of {}", self.values.kind()))
    }

    /// Sets or replaces the class names by label, at any time before [`Writer::finish`].
    pub fn set_label_names(&mut self, names: Vec<String>) {
        self.draft.set_label_names(names);
    }

    /// Items so far.
    pub fn len(&self) -> usize {
        self.draft.count()
    }

    /// True before the first item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Completes the file and gives it its name. An empty set is refused. Returns the number of items.
    pub fn finish(self) -> Result<usize, DataError> {
        let Self { mut values, draft } = self;
        values.flush().map_err(|e| draft.failed(&e))?;
        drop(values);
        draft.finish()
    }
}

impl Values {
    fn create(draft: &Draft, shape: ItemShape, compression: Compression) -> hdf5::Result<Self> {
        fn spec<'a>(
            (draft, compression): (&'a Draft, Compression),
            name: &'a str,
            row: Vec<usize>,
            row_bytes: usize,
        ) -> ColumnSpec<'a> {
            let chunk_rows = schema::chunk_rows(row_bytes);
            ColumnSpec { file: draft.file(), name, row, chunk_rows, compression }
        }
        let way = (draft, compression);
        match shape {
            ItemShape::Image(shape) => {
                let row = vec![shape.height, shape.width, shape.channels];
                let pixels = Column::create(spec(way, schema::IMAGES, row, shape.len()))?;
                Ok(Self::Images { shape, pixels })
            }
            ItemShape::Sequence { dim } => {
                let values = Column::create(spec(way, schema::VALUES, vec![dim], dim * size_of::<f32>()))?;
                let mut offsets = Column::create(ColumnSpec::list(draft.file(), schema::OFFSETS))?;
                offsets.extend(&[0])?;
                Ok(Self::Sequences { dim, steps: 0, values, offsets })
            }
            ItemShape::Features(shape) => {
                let row = vec![shape.rows(), shape.dim];
                let values = Column::create(spec(way, schema::FEATURES, row, shape.vectors() * size_of::<f32>()))?;
                if !shape.taps.is_empty() {
                    draft.file().create_group(schema::TAPS)?;
                }
                let inside = shape.taps.iter().enumerate().map(|(place, tap)| {
                    let name = format!("{}/{place}", schema::TAPS);
                    Column::create(spec(way, &name, tap.sizes(), tap.len() * size_of::<f32>()))
                });
                let inside = inside.collect::<hdf5::Result<_>>()?;
                Ok(Self::Features { shape, values, inside })
            }
        }
    }

    fn flush(&mut self) -> hdf5::Result<()> {
        match self {
            Self::Images { pixels, .. } => pixels.flush(),
            Self::Sequences { values, offsets, .. } => values.flush().and_then(|()| offsets.flush()),
            Self::Features { values, inside, .. } => {
                values.flush().and_then(|()| inside.iter_mut().try_for_each(Column::flush))
            }
        }
    }

    fn kind(&self) -> ItemKind {
        match self {
            Self::Images { .. } => ItemKind::Images,
            Self::Sequences { .. } => ItemKind::Sequences,
            Self::Features { .. } => ItemKind::Features,
        }
    }
}
