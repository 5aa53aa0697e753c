//! Finds and reads items: folders, zip and tar archives, lists and patterns become named items, by one set of rules.
//!
//! Importing, labelling and serving see the same items in the same order under the same names, because all three ask
//! this crate. It knows nothing of pixels, HDF5 or HTTP.
//!
//! | rule | file |
//! |---|---|
//! | hidden files and folders, and the Mac's shadows (`__MACOSX`), are passed over | [`rules`] |
//! | a file with the extension of an image is an item (or of a table or a sound, where a visitor seeks these); one with another extension is passed over | [`rules`] |
//! | a file without extension is an item where its first bytes are those of an image format that we read | [`rules`] |
//! | folders and zips come in natural order of the whole name (`img2` before `img10`), a tar in its own | [`order`] |
//! | what a file is, its first bytes say: an archive needs no particular name | [`kind_of`] |
//! | every row of a Parquet file with a column of encoded images is an item | [`parquet`] |
//! | `{000..099}` stands for a hundred names, all of which must be there | `ranges.rs` |
//! | names from archives and tables are made relative and fit to be shown; they are never paths to write to | `archive/name.rs` |
//! | the class of an item is the first folder below what all have in common and below `train`, `test` | [`classes`] |
//! | where a tar holds `.cls` or `.json` beside an image, or a Parquet file a column of that name, that is its class | `archive/sample.rs`, [`parquet`] |
//! | a folder in a store is the objects whose names begin with its own, by the rules of folders | [`remote`] |
//! | what is named by itself, in a list or by a pattern is an item whatever its name says | [`Input`] |
//! | whatever is passed over is told, with the reason | [`Visitor::passed`] |
//!
//! Nothing is trusted: sizes in headers are checked against a limit and against what comes out, archives in archives
//! are not opened, pipes and devices neither, links that lead back are not followed, and memory holds the names of one
//! folder per level, or the directory of one zip, never more than one item's bytes, or one page of a Parquet file.

pub mod classes;
pub mod order;
pub mod parquet;
pub mod remote;
pub mod rules;
pub mod unpack;

mod archive;
mod error;
mod folder;
mod found;
mod glob;
mod input;
mod list;
mod passed;
mod ranges;
mod reader;
#[cfg(test)]
mod testing;

pub use archive::zip::{self, Seen, ZipEntry};
pub use archive::{FileKind, is_tar, kind_by_name, kind_of};
pub use error::SourceError;
pub use found::{Body, Found, Passed, Visitor};
pub use glob::Pattern;
pub use input::{Input, expand, expand_ranges};
pub use list::List;
pub use passed::{ListFile, PassedOver};
pub use reader::{BodyReader, read_head};
pub use rules::{Reason, Sought};
