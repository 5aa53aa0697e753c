//! What other programs' files hold, as a stream of images or sequences.
//!
//! Folders and archives are found and read by `dtkc-source`; every format has its own module with a function that knows
//! its first bytes and an [`Importer`] that streams [`Record`]s. [`detect`](detect::detect) finds out what files are,
//! [`open`](open::open) makes importers of them. Arrays (IDX, MAT, NumPy, HDF5, LIBSVM) share the code in [`arrays`].
//!
//! HDF5 itself is not read here: whoever links its library gives [`open`](open::open) a function for it. So whatever must
//! not link it can still read tables.

pub mod arrays;
pub mod detect;
pub mod idx;
pub mod images;
pub mod labels;
pub mod mat;
pub mod npy;
pub mod open;
pub mod record;
pub mod sequences;
pub mod stream;
pub mod words;

mod error;
mod libsvm;
mod rows;
mod splits;
mod stacked;

pub use detect::Format;
pub use error::ReadError;
pub use labels::LabelsFrom;
pub use open::ReadOptions;
pub use record::{Importer, Record};
pub use sequences::Missing;
