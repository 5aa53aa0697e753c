//! Importers: from folders, archives, IDX, MAT, NumPy, foreign HDF5 and sequence files to one dataset.
//!
//! Folders and archives of images are found and read by `dtkc-source`; every other format has its own module with a function that knows its first bytes and an [`Importer`] that
//! streams [`Record`]s. [`import`] finds out what the sources are, chooses size and colour, plans what
//! becomes of labels, and sends the records through a pipeline that decodes them in parallel and in order.
//! Arrays (IDX, MAT, NumPy, HDF5, LIBSVM) share the code in [`arrays`].

pub mod arrays;
pub mod detect;
pub mod record;
pub mod shape;

mod classes;
mod error;
mod foreign;
mod idx;
mod images;
mod labels;
mod libsvm;
mod mat;
mod npy;
mod open;
mod output;
mod pipeline;
mod run;
mod sequences;
mod skipped;
mod splits;
mod stacked;
mod stream;
mod summary;
mod target;
mod words;

pub use classes::{Known, Titles};
pub use detect::Format;
pub use error::ImportError;
pub use labels::LabelsFrom;
pub use open::ReadOptions;
pub(crate) use output::check_new;
pub use record::{Importer, Record};
pub use run::{ImportOptions, import};
pub use sequences::Missing;
pub use sequences::sound::{SoundKind, SoundOptions};
pub use sequences::table::Columns;
pub use shape::{Size, Wanted};
pub use skipped::Skipped;
pub(crate) use stream::open as open_stream;
pub use summary::{ClassCount, Summary};

/// Reads everything but the images of an HDF5 file, as an import would. For a process that may break: see
/// [`dtkc_dataset::trial`].
pub fn read_structure(path: &std::path::Path) {
    let _ = foreign::open(path, &Default::default(), None);
}
