//! How a file stores its values, and whether it can be trusted with them.

use hdf5::dataset::Layout;
use hdf5::filters::Filter;
use serde::Serialize;

/// The largest chunk that is read: HDF5 unpacks a chunk in memory as a whole.
const MAX_CHUNK_BYTES: u64 = 256 << 20;
/// Deflate cannot do better than this, so a file that claims more is not telling the truth.
const MAX_RATIO: u64 = 1032;

/// How a file stores its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Storage {
    /// Type of one value, "u8" or "f32".
    pub dtype: &'static str,
    /// Extents of the value dataset.
    pub shape: Vec<usize>,
    /// Extents of one chunk; `None` where the values lie in one piece.
    pub chunk: Option<Vec<usize>>,
    /// Filters in the order of writing: "shuffle", "gzip 4". Empty where values are stored as they are.
    pub filters: Vec<String>,
    /// Bytes of the values in memory.
    pub value_bytes: u64,
    /// Bytes of the values in the file.
    pub stored_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

impl Storage {
    /// Looks at a dataset's layout and refuses what cannot be read safely. `size` is the bytes of one
    /// stored value, `file_bytes` the length of the file.
    pub fn inspect(dataset: &hdf5::Dataset, dtype: &'static str, size: u64, file_bytes: u64) -> Result<Self, String> {
        let shape = dataset.shape();
        let create = dataset.dcpl().map_err(|_| "its storage layout cannot be read".to_owned())?;
        if create.layout() == Layout::Virtual || !create.external().is_empty() {
            return Err("its values lie in other files".into());
        }
        let filters = create.filters().iter().map(filter_name).collect::<Result<Vec<_>, _>>()?;
        let value_bytes = bytes_of(&shape, size).ok_or("its values would not fit any memory")?;
        let chunk = create.chunk();
        if let Some(chunk) = &chunk {
            let bytes = bytes_of(chunk, size).unwrap_or(u64::MAX);
            if bytes > MAX_CHUNK_BYTES {
                return Err(format!("its chunks of {bytes} bytes are too large to be unpacked"));
            }
        }
        let stored_bytes = dataset.storage_size();
        let storage = Self { dtype, shape, chunk, filters, value_bytes, stored_bytes, file_bytes };
        storage.check_amount()?;
        Ok(storage)
    }

    /// True where chunks must be unpacked.
    pub fn filtered(&self) -> bool {
        !self.filters.is_empty()
    }

    /// A small file must not make us allocate what it only claims to hold.
    fn check_amount(&self) -> Result<(), String> {
        let possible = if self.filtered() { self.stored_bytes.saturating_mul(MAX_RATIO) } else { self.stored_bytes };
        if self.stored_bytes > self.file_bytes || possible < self.value_bytes {
            return Err(format!("only {} of {} bytes of values are there", self.stored_bytes, self.value_bytes));
        }
        Ok(())
    }
}

fn bytes_of(shape: &[usize], size: u64) -> Option<u64> {
    shape.iter().try_fold(size, |product, &n| product.checked_mul(n as u64)).filter(|&n| n < i64::MAX as u64)
}

fn filter_name(filter: &Filter) -> Result<String, String> {
    match filter {
        Filter::Deflate(level) => Ok(format!("gzip {level}")),
        Filter::Shuffle => Ok("shuffle".into()),
        Filter::Fletcher32 => Ok("fletcher32".into()),
        other => Err(format!("it is compressed in a way that this program cannot read ({other:?})")),
    }
}
