//! From any collection to one dataset.
//!
//! What files hold is read by `dtkc-formats`; only HDF5 files of other programs are read here, because the library is.
//! [`import`] finds out what the sources are, chooses size and colour, plans what becomes of labels, and sends the
//! records through a pipeline that decodes them in parallel and in order.

pub mod shape;

mod classes;
mod downloads;
mod error;
mod foreign;
mod output;
mod pipeline;
mod run;
mod skipped;
mod summary;
mod target;

pub use classes::{Known, Titles};
pub use dtkc_formats::sequences::sound::{SoundKind, SoundOptions};
pub use dtkc_formats::sequences::table::Columns;
pub use dtkc_formats::{Format, Importer, LabelsFrom, Missing, ReadError, ReadOptions, Record, arrays, record};
pub use error::ImportError;
pub(crate) use output::check_new;
pub use run::{ImportOptions, import};
pub use shape::{Size, Wanted};
pub use skipped::Skipped;
pub use summary::{ClassCount, Summary};

/// Reads everything but the images of an HDF5 file, as an import would. For a process that may break: see
/// [`dtkc_dataset::trial`].
pub fn read_structure(path: &std::path::Path) {
    let _ = foreign::open(path, &Default::default(), None);
}
