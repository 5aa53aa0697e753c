//! Reading datasets.

mod direct;
mod features;
mod fingerprint;
mod open;
mod rows;
mod storage;
pub(crate) mod text;

use std::ops::Range;
use std::path::{Path, PathBuf};

use dtkc_item::{FeatureShape, ImageShape, ItemKind, ItemShape, Items, Resize};

use self::rows::Rows;
pub use self::storage::Storage;
use crate::{DataError, h5};

/// Bytes of sequences or features that are read together, about.
const READ_TOGETHER: u64 = 1 << 20;

/// An open dataset file, checked against schema 1.
#[derive(Debug)]
pub struct Dataset {
    path: PathBuf,
    name: String,
    source: String,
    resize: Option<Resize>,
    values: Values,
    labels: Option<hdf5::Dataset>,
    label_names: Option<Vec<String>>,
    paths: Option<hdf5::Dataset>,
    storage: Storage,
    origin: Option<(String, hdf5::Dataset)>,
}

/// The content proper.
#[derive(Debug)]
enum Values {
    Images {
        shape: ImageShape,
        rows: Rows,
    },
    Sequences {
        dim: usize,
        offsets: Vec<usize>,
        values: hdf5::Dataset,
    },
    /// `inside` has what lies inside the network, as the shape says.
    Features {
        shape: FeatureShape,
        len: usize,
        values: hdf5::Dataset,
        inside: Vec<hdf5::Dataset>,
    },
}

impl Dataset {
    /// Opens a file and checks that it follows schema 1. Nothing large is read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        crate::trial::check(path.as_ref())?;
        open::open(path.as_ref())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What every item looks like.
    pub fn shape(&self) -> ItemShape {
        match self.values {
            Values::Images { shape, .. } => ItemShape::Image(shape),
            Values::Sequences { dim, .. } => ItemShape::Sequence { dim },
            Values::Features { shape, .. } => ItemShape::Features(shape),
        }
    }

    /// Images, sequences or features.
    pub fn kind(&self) -> ItemKind {
        self.shape().kind()
    }

    /// The set's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the set came from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How the images were brought to their size: what another image needs to become like them. `None` where they never
    /// were, and in files that are older than the rule.
    pub fn resize(&self) -> Option<Resize> {
        self.resize
    }

    /// Items in the set; at least one.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Images { rows, .. } => rows.len(),
            Values::Sequences { offsets, .. } => offsets.len() - 1,
            Values::Features { len, .. } => *len,
        }
    }

    /// Never true: an empty set is not opened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of every image; `None` for others.
    pub fn image_shape(&self) -> Option<ImageShape> {
        self.shape().image()
    }

    /// What features were made of and how; `None` for others, and where the file does not say.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_ref().map(|(about, _)| about.as_str())
    }

    /// The network that made features, as an ONNX file; `None` where there is no [`origin`](Self::origin).
    pub fn network(&self) -> Result<Option<Vec<u8>>, DataError> {
        let network = self.origin.as_ref().map(|(_, network)| network.read_raw::<u8>());
        network.transpose().map_err(|e| h5::read_failed(&self.path, &e))
    }

    /// Time steps of every sequence; `None` for others.
    pub fn sequence_lengths(&self) -> Option<Vec<usize>> {
        match &self.values {
            Values::Images { .. } | Values::Features { .. } => None,
            Values::Sequences { offsets, .. } => Some(offsets.windows(2).map(|w| w[1] - w[0]).collect()),
        }
    }

    /// How the file stores its values.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// True where the set has labels.
    pub fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// True where the set has paths.
    pub fn has_paths(&self) -> bool {
        self.paths.is_some()
    }

    /// The label of every item, where the set has labels. A negative one says that an item's class is not known.
    pub fn labels(&self) -> Result<Option<Vec<i64>>, DataError> {
        let Some(dataset) = &self.labels else { return Ok(None) };
        let labels = dataset.read_raw::<i64>().map_err(|e| h5::read_failed(&self.path, &e))?;
        if let Some(names) = &self.label_names
            && let Some(bad) = labels.iter().find(|&&label| label >= names.len() as i64)
        {
            return Err(self.layout(format!("label {bad} has no name, there are {} label names", names.len())));
        }
        Ok(Some(labels))
    }

    /// The class names by label, where the set has them.
    pub fn label_names(&self) -> Result<Option<Vec<String>>, DataError> {
        Ok(self.label_names.clone())
    }

    /// The paths that the items of a range had, where the set has paths.
    pub fn paths(&self, range: Range<usize>) -> Result<Option<Vec<String>>, DataError> {
        self.check_range(&range)?;
        match &self.paths {
            Some(dataset) => text::read(&self.path, dataset, range).map(Some),
            None => Ok(None),
        }
    }

    /// The items at `indices`, in that order; an index may occur more than once.
    pub fn items(&self, indices: &[usize]) -> Result<Items, DataError> {
        if let ItemShape::Image(shape) = self.shape() {
            return Ok(Items::Images { shape, pixels: self.read(indices)? });
        }
        let mut items = Items::empty(self.shape());
        for &index in indices {
            if index >= self.len() {
                return Err(self.out_of_range(index));
            }
            items.append(&self.items_of(index..index + 1)?);
        }
        Ok(items)
    }

    /// The items of a range.
    pub fn items_of(&self, range: Range<usize>) -> Result<Items, DataError> {
        self.check_range(&range)?;
        match &self.values {
            Values::Images { shape, .. } => Ok(Items::Images { shape: *shape, pixels: self.read_range(range)? }),
            Values::Sequences { dim, offsets, values } => {
                let (first, last) = (offsets[range.start], offsets[range.end]);
                let places = offsets[range.start..=range.end].iter().map(|place| place - first).collect();
                Ok(Items::Sequences { dim: *dim, values: self.steps(values, first..last)?, offsets: places })
            }
            Values::Features { shape, values, inside, .. } => {
                let found = features::read(range, *shape, values, inside);
                let values = found.map_err(|e| h5::read_failed(&self.path, &e))?;
                Ok(Items::Features { shape: *shape, values })
            }
        }
    }

    /// Bytes of the items of a range in memory.
    pub(crate) fn bytes_of(&self, range: Range<usize>) -> u64 {
        match &self.values {
            Values::Images { shape, .. } => (range.len() * shape.len()) as u64,
            Values::Sequences { dim, offsets, .. } => {
                let steps = (offsets[range.end] - offsets[range.start]) as u64;
                // Its values and its place.
                steps * 4 * *dim as u64 + 8 * range.len() as u64
            }
            Values::Features { shape, .. } => (range.len() * shape.len() * size_of::<f32>()) as u64,
        }
    }

    /// The images at `indices`, in that order; an index may occur more than once.
    pub fn read(&self, indices: &[usize]) -> Result<Vec<u8>, DataError> {
        let rows = self.rows()?;
        if let Some(&index) = indices.iter().find(|&&i| i >= self.len()) {
            return Err(self.out_of_range(index));
        }
        let mut out = vec![0; indices.len() * rows.row_bytes()];
        rows.gather(indices, &mut out)?;
        Ok(out)
    }

    /// The images of a range.
    pub fn read_range(&self, range: Range<usize>) -> Result<Vec<u8>, DataError> {
        let bytes = range.len() * self.rows()?.row_bytes();
        self.check_range(&range)?;
        let mut out = vec![0; bytes];
        self.read_range_into(range, &mut out)?;
        Ok(out)
    }

    /// The images of a range, into a buffer of exactly their size.
    pub fn read_range_into(&self, range: Range<usize>, out: &mut [u8]) -> Result<(), DataError> {
        let rows = self.rows()?;
        self.check_range(&range)?;
        let expected = range.len() * rows.row_bytes();
        if out.len() != expected {
            return Err(DataError::Invalid(format!("the buffer has {} bytes instead of {expected}", out.len())));
        }
        rows.read(range, out)
    }

    /// The values of one sequence: time steps of [`ItemShape::dim`] values, one after the other.
    pub fn read_sequence(&self, index: usize) -> Result<Vec<f32>, DataError> {
        let Values::Sequences { offsets, values, .. } = &self.values else {
            return Err(self.wrong_kind(ItemKind::Sequences));
        };
        if index >= self.len() {
            return Err(self.out_of_range(index));
        }
        self.steps(values, offsets[index]..offsets[index + 1])
    }

    /// Time steps of a set of sequences, counted over all of them: one pass over everything need not hold a whole sequence.
    pub fn read_steps(&self, range: Range<usize>) -> Result<Vec<f32>, DataError> {
        let Values::Sequences { offsets, values, .. } = &self.values else {
            return Err(self.wrong_kind(ItemKind::Sequences));
        };
        let all = offsets.last().copied().unwrap_or(0);
        if range.start > range.end || range.end > all {
            let Range { start, end } = range;
            return Err(DataError::Invalid(format!("the steps {start}..{end} are not inside the set's 0..{all}")));
        }
        self.steps(values, range)
    }

    fn steps(&self, values: &hdf5::Dataset, range: Range<usize>) -> Result<Vec<f32>, DataError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let steps = values.read_slice::<f32, _, ndarray::Ix2>((range, ..));
        steps.map(|s| s.into_raw_vec_and_offset().0).map_err(|e| h5::read_failed(&self.path, &e))
    }

    /// SHA-256 over kind, shape, values and labels, in hex: the same for the same content, whatever the
    /// chunking and compression.
    pub fn fingerprint(&self) -> Result<String, DataError> {
        fingerprint::of(self)
    }

    /// Items that are best read together: those that the file stores together, or others of about a MiB.
    pub(crate) fn chunk_rows(&self) -> usize {
        match &self.values {
            Values::Images { rows, .. } => rows.chunk_rows(),
            Values::Sequences { .. } | Values::Features { .. } => {
                let mean = self.bytes_of(0..self.len()) / self.len() as u64;
                ((READ_TOGETHER / mean.max(1)) as usize).clamp(1, self.len())
            }
        }
    }

    /// The size of every image, or an error that says that images are needed.
    pub fn require_images(&self) -> Result<ImageShape, DataError> {
        self.image_shape().ok_or_else(|| self.wrong_kind(ItemKind::Images))
    }

    /// All items. The caller has decided that they fit.
    pub(crate) fn read_all(&self) -> Result<Items, DataError> {
        match self.shape() {
            ItemShape::Image(shape) => Ok(Items::Images { shape, pixels: self.read_all_images()? }),
            ItemShape::Sequence { .. } | ItemShape::Features(_) => self.items_of(0..self.len()),
        }
    }

    fn read_all_images(&self) -> Result<Vec<u8>, DataError> {
        const BLOCK_BYTES: usize = 4 << 20;
        let rows = self.rows()?;
        let step = rows.rows_for(BLOCK_BYTES);
        let mut all = vec![0; rows.len() * rows.row_bytes()];
        for (block, out) in all.chunks_mut(step * rows.row_bytes()).enumerate() {
            let start = block * step;
            self.read_range_into(start..rows.len().min(start + step), out)?;
        }
        Ok(all)
    }

    fn rows(&self) -> Result<&Rows, DataError> {
        match &self.values {
            Values::Images { rows, .. } => Ok(rows),
            Values::Sequences { .. } | Values::Features { .. } => Err(self.wrong_kind(ItemKind::Images)),
        }
    }

    fn check_range(&self, range: &Range<usize>) -> Result<(), DataError> {
        if range.start > range.end {
            return Err(DataError::Invalid(format!("the range {}..{} runs backwards", range.start, range.end)));
        }
        if range.end > self.len() { Err(self.out_of_range(range.end - 1)) } else { Ok(()) }
    }

    fn out_of_range(&self, index: usize) -> DataError {
        DataError::OutOfRange { path: self.path.clone(), index, len: self.len() }
    }

    fn wrong_kind(&self, wanted: ItemKind) -> DataError {
        DataError::WrongKind { path: self.path.clone(), found: self.kind().name(), wanted: wanted.name() }
    }

    fn layout(&self, reason: String) -> DataError {
        DataError::Layout { path: self.path.clone(), reason }
    }
}
