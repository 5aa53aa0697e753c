//! Opening: everything is checked here, so that nothing surprises later.

use std::path::Path;

use dtkc_item::{FeatureShape, ImageShape, ItemKind, MOST_TAPS, Resize, TapShape, Taps};
use hdf5::types::{FloatSize, IntSize, TypeDescriptor};
use hdf5::{File, LinkType, MinorErrorCode};

use super::rows::Rows;
use super::storage::Storage;
use super::{Dataset, Values, text};
use crate::{DataError, h5, schema};

/// More classes than anybody can look at.
const MAX_LABEL_NAMES: usize = 1 << 20;

/// A file on its way to being a [`Dataset`].
struct Candidate<'a> {
    path: &'a Path,
    file: File,
    file_bytes: u64,
}

pub fn open(path: &Path) -> Result<Dataset, DataError> {
    let candidate = Candidate::open(path)?;
    candidate.check_schema()?;
    candidate.check_links()?;
    let name = candidate.text_attribute(schema::NAME)?.unwrap_or_else(|| stem(path));
    let source = candidate.text_attribute(schema::SOURCE)?.unwrap_or_default();
    let resize = candidate.resize()?;
    let (values, storage, len) = match candidate.kind()? {
        ItemKind::Images => candidate.images()?,
        ItemKind::Sequences => candidate.sequences()?,
        ItemKind::Features => candidate.features()?,
    };
    let origin = match values {
        Values::Features { .. } => candidate.origin()?,
        _ => None,
    };
    let labels = candidate.labels(len)?;
    let label_names = candidate.label_names()?;
    let paths = candidate.paths(len)?;
    Ok(Dataset { path: path.to_owned(), name, source, resize, values, labels, label_names, paths, storage, origin })
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

impl<'a> Candidate<'a> {
    fn open(path: &'a Path) -> Result<Self, DataError> {
        let metadata = std::fs::metadata(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound if path.to_string_lossy().contains("://") => {
                DataError::InStore { path: path.to_owned() }
            }
            std::io::ErrorKind::NotFound => DataError::Missing { path: path.to_owned() },
            kind => DataError::Io(std::io::Error::new(kind, format!("cannot read {}: {e}", path.display()))),
        })?;
        if metadata.is_dir() {
            let text = format!("{} is a folder, not a dataset file", path.display());
            return Err(DataError::Io(std::io::Error::new(std::io::ErrorKind::IsADirectory, text)));
        }
        // HDF5's own message about a file without permission is of no use to anybody.
        drop(fs_err::File::open(path)?);
        // Rows are read once and in pieces that we choose: a chunk cache would only copy them. Files appear
        // whole and are never changed in place, so no lock is needed, and some file systems have none.
        let file = File::with_options()
            .with_fapl(|p| p.chunk_cache(1, 0, 1.0).file_locking(false))
            .open(path)
            .map_err(|e| not_opened(path, &e))?;
        Ok(Self { path, file, file_bytes: metadata.len() })
    }

    fn layout(&self, reason: impl Into<String>) -> DataError {
        DataError::Layout { path: self.path.to_owned(), reason: reason.into() }
    }

    fn foreign(&self, reason: impl Into<String>) -> DataError {
        DataError::NotADataset { path: self.path.to_owned(), reason: reason.into() }
    }

    fn check_schema(&self) -> Result<(), DataError> {
        let Ok(attribute) = self.file.attr(schema::SCHEMA) else {
            return Err(self.foreign(format!("it has no attribute {}", schema::SCHEMA)));
        };
        let found = match attribute.size() {
            1 => attribute.read_raw::<i64>().ok().and_then(|v| v.first().copied()),
            _ => None,
        };
        match found {
            Some(schema::VERSION) => Ok(()),
            Some(found) => Err(DataError::Schema { path: self.path.to_owned(), found }),
            None => Err(self.foreign(format!("its attribute {} is not a number", schema::SCHEMA))),
        }
    }

    /// A dataset must be in this very file: a link could point to any file of the machine.
    fn check_links(&self) -> Result<(), DataError> {
        let links = self.file.links(Default::default(), Default::default());
        let links = links.map_err(|e| h5::read_failed(self.path, &e))?;
        match links.iter().find(|(_, info)| info.link_type == LinkType::External) {
            Some((name, _)) => Err(self.layout(format!("/{name} is a link to another file"))),
            None => Ok(()),
        }
    }

    fn text_attribute(&self, name: &str) -> Result<Option<String>, DataError> {
        let Ok(attribute) = self.file.attr(name) else { return Ok(None) };
        match text::attribute(&attribute) {
            Some(text) => Ok(Some(text)),
            None => Err(self.layout(format!("its attribute {name} is not a string"))),
        }
    }

    fn kind(&self) -> Result<ItemKind, DataError> {
        let Some(name) = self.text_attribute(schema::KIND)? else {
            return Err(self.layout(format!("it has no attribute {}", schema::KIND)));
        };
        ItemKind::from_name(&name)
            .ok_or_else(|| self.layout(format!("its kind is '{name}', not images, sequences or features")))
    }

    fn resize(&self) -> Result<Option<Resize>, DataError> {
        let rule = self.text_attribute(schema::RESIZE)?;
        let parsed = rule.map(|rule| rule.parse()).transpose();
        parsed.map_err(|reason: String| self.layout(format!("its attribute {}: {reason}", schema::RESIZE)))
    }

    fn required(&self, name: &str) -> Result<hdf5::Dataset, DataError> {
        self.optional(name)?.ok_or_else(|| self.layout(format!("/{name} is missing")))
    }

    fn optional(&self, name: &str) -> Result<Option<hdf5::Dataset>, DataError> {
        if !self.file.link_exists(name) {
            return Ok(None);
        }
        self.file.dataset(name).map(Some).map_err(|_| self.layout(format!("/{name} is not a dataset")))
    }

    /// How a dataset is stored; refused where the file cannot really hold what it claims, because what
    /// it claims is what we allocate.
    fn storage(&self, dataset: &hdf5::Dataset, name: &str, dtype: &'static str) -> Result<Storage, DataError> {
        let size = dataset.dtype().map_or(1, |t| t.size()) as u64;
        Storage::inspect(dataset, dtype, size, self.file_bytes)
            .map_err(|reason| DataError::Damaged { path: self.path.to_owned(), reason: format!("/{name}: {reason}") })
    }

    fn images(&self) -> Result<(Values, Storage, usize), DataError> {
        let dataset = self.required(schema::IMAGES)?;
        if h5::type_of(&dataset) != Some(TypeDescriptor::Unsigned(IntSize::U1)) {
            return Err(self.layout(format!("/images holds {}, not u8", type_name(&dataset))));
        }
        let extents = dataset.shape();
        let &[len, height, width, channels] = extents.as_slice() else {
            return Err(self.layout(format!("/images has the shape {extents:?}, not [n, h, w, c]")));
        };
        let shape = ImageShape { height, width, channels };
        shape.check().map_err(|reason| self.layout(format!("/images: {reason}")))?;
        if len == 0 {
            return Err(self.layout("/images is empty"));
        }
        let storage = self.storage(&dataset, schema::IMAGES, "u8")?;
        let rows = Rows::new(self.path, dataset, &storage);
        Ok((Values::Images { shape, rows }, storage, len))
    }

    fn sequences(&self) -> Result<(Values, Storage, usize), DataError> {
        let values = self.required(schema::VALUES)?;
        if h5::type_of(&values) != Some(TypeDescriptor::Float(FloatSize::U4)) {
            return Err(self.layout(format!("/values holds {}, not f32", type_name(&values))));
        }
        let extents = values.shape();
        let &[steps, dim] = extents.as_slice() else {
            return Err(self.layout(format!("/values has the shape {extents:?}, not [sum of lengths, dim]")));
        };
        if dim == 0 {
            return Err(self.layout("/values has no columns"));
        }
        let storage = self.storage(&values, schema::VALUES, "f32")?;
        let offsets = self.offsets(steps)?;
        let len = offsets.len() - 1;
        Ok((Values::Sequences { dim, offsets, values }, storage, len))
    }

    fn features(&self) -> Result<(Values, Storage, usize), DataError> {
        let values = self.required(schema::FEATURES)?;
        if h5::type_of(&values) != Some(TypeDescriptor::Float(FloatSize::U4)) {
            return Err(self.layout(format!("/features holds {}, not f32", type_name(&values))));
        }
        let extents = values.shape();
        let &[len, rows, dim] = extents.as_slice() else {
            return Err(self.layout(format!("/features has the shape {extents:?}, not [n, 1 + views, dim]")));
        };
        if [len, rows, dim].contains(&0) {
            return Err(self.layout("/features is empty"));
        }
        let storage = self.storage(&values, schema::FEATURES, "f32")?;
        let (shapes, inside): (Vec<TapShape>, Vec<hdf5::Dataset>) = self.taps(len)?.into_iter().unzip();
        let taps = Taps::new(&shapes).ok_or_else(|| self.layout("/taps has sizes above 65,535"))?;
        let shape = FeatureShape { dim, views: rows - 1, taps };
        Ok((Values::Features { shape, len, values, inside }, storage, len))
    }

    /// What lies inside the network for each of `len` items.
    fn taps(&self, len: usize) -> Result<Vec<(TapShape, hdf5::Dataset)>, DataError> {
        if !self.file.link_exists(schema::TAPS) {
            return Ok(Vec::new());
        }
        let group = self.file.group(schema::TAPS).map_err(|_| self.layout("/taps is not a group"))?;
        let links = group.links(Default::default(), Default::default()).map_err(|e| h5::read_failed(self.path, &e))?;
        if links.iter().any(|(_, info)| info.link_type == LinkType::External) {
            return Err(self.layout("/taps holds a link to another file"));
        }
        if links.len() > MOST_TAPS {
            return Err(self.layout(format!("/taps holds {} datasets, more than {MOST_TAPS}", links.len())));
        }
        (0..links.len()).map(|place| self.tap(&format!("{}/{place}", schema::TAPS), len)).collect()
    }

    fn tap(&self, name: &str, len: usize) -> Result<(TapShape, hdf5::Dataset), DataError> {
        let values = self.file.dataset(name).map_err(|_| self.layout(format!("/{name} is not a dataset")))?;
        if h5::type_of(&values) != Some(TypeDescriptor::Float(FloatSize::U4)) {
            return Err(self.layout(format!("/{name} holds {}, not f32", type_name(&values))));
        }
        self.storage(&values, name, "f32")?;
        let extents = values.shape();
        match extents.split_first().map(|(count, sizes)| (*count == len, TapShape::from_sizes(sizes))) {
            Some((true, Some(shape))) => Ok((shape, values)),
            _ => Err(self.layout(format!(
                "/{name} has the shape {extents:?}, not [{len}, channels, height, width] or [{len}, size]"
            ))),
        }
    }

    /// What features were made of, and the network that made them: both or none.
    fn origin(&self) -> Result<Option<(String, hdf5::Dataset)>, DataError> {
        let Some(about) = self.text_attribute(schema::ORIGIN)? else { return Ok(None) };
        let network = self.required(schema::NETWORK)?;
        if h5::type_of(&network) != Some(TypeDescriptor::Unsigned(IntSize::U1)) || network.ndim() != 1 {
            return Err(self.layout("/network is not a list of bytes"));
        }
        self.storage(&network, schema::NETWORK, "u8")?;
        Ok(Some((about, network)))
    }

    fn offsets(&self, steps: usize) -> Result<Vec<usize>, DataError> {
        let dataset = self.required(schema::OFFSETS)?;
        self.check_list(&dataset, schema::OFFSETS)?;
        let offsets = dataset.read_raw::<u64>().map_err(|e| h5::read_failed(self.path, &e))?;
        let offsets: Vec<usize> = offsets.iter().map(|&o| o as usize).collect();
        let ordered = offsets.first() == Some(&0) && offsets.is_sorted() && offsets.last() == Some(&steps);
        if offsets.len() < 2 || !ordered {
            return Err(self.layout(format!("/offsets does not lead from 0 to the {steps} rows of /values")));
        }
        Ok(offsets)
    }

    fn labels(&self, len: usize) -> Result<Option<hdf5::Dataset>, DataError> {
        let Some(dataset) = self.optional(schema::LABELS)? else { return Ok(None) };
        self.check_list(&dataset, schema::LABELS)?;
        self.check_count(&dataset, schema::LABELS, len)?;
        Ok(Some(dataset))
    }

    fn label_names(&self) -> Result<Option<Vec<String>>, DataError> {
        let Some(dataset) = self.optional(schema::LABEL_NAMES)? else { return Ok(None) };
        let names = h5::strings(self.path, &dataset, MAX_LABEL_NAMES)?;
        names.map(Some).ok_or_else(|| self.layout("/label_names is not a list of strings"))
    }

    fn paths(&self, len: usize) -> Result<Option<hdf5::Dataset>, DataError> {
        let Some(dataset) = self.optional(schema::PATHS)? else { return Ok(None) };
        if dataset.ndim() != 1 || !text::is_text(&dataset) {
            return Err(self.layout("/paths is not a list of strings"));
        }
        self.check_count(&dataset, schema::PATHS, len)?;
        Ok(Some(dataset))
    }

    fn check_count(&self, dataset: &hdf5::Dataset, name: &str, len: usize) -> Result<(), DataError> {
        let found = dataset.size();
        if found == len {
            return Ok(());
        }
        Err(self.layout(format!("it has {len} items but {found} {name}")))
    }

    /// A list of integers that is really there.
    fn check_list(&self, dataset: &hdf5::Dataset, name: &str) -> Result<(), DataError> {
        let kind = h5::type_of(dataset);
        if !matches!(kind, Some(TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_))) {
            return Err(self.layout(format!("/{name} holds {}, not whole numbers", type_name(dataset))));
        }
        if dataset.ndim() != 1 {
            return Err(self.layout(format!("/{name} has the shape {:?}, not one dimension", dataset.shape())));
        }
        self.storage(dataset, name, "integer").map(drop)
    }
}

fn type_name(dataset: &hdf5::Dataset) -> String {
    h5::type_of(dataset).map_or_else(|| "an unknown type".into(), |t| t.to_string())
}

fn not_opened(path: &Path, error: &hdf5::Error) -> DataError {
    let path = path.to_owned();
    if error.contains_minor(MinorErrorCode::NotHdf5) {
        return DataError::NotHdf5 { path };
    }
    let cause = h5::cause(error);
    let reason = if cause.starts_with("truncated file") { "it is cut off".to_owned() } else { cause };
    DataError::Damaged { path, reason }
}
