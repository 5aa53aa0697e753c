//! What is found, where its bytes are, and who is told.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dtkc_item::ItemError;

use crate::parquet::{RowColumns, RowTable};
use crate::{Reason, Sought, ZipEntry, remote};

/// What an object counts for whose size nobody said.
const UNKNOWN: u64 = 1 << 20;

/// One item that was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its full name for people: the path of a file, or that of the archive and the name in it.
    pub path: String,
    /// Where in `path` the part begins that lies below the folder or archive; 0 for a file that was named itself.
    pub place: usize,
    /// Where its bytes are.
    pub body: Body,
    /// The class that its container gives it, beside the folder that it may lie in; only where [`Visitor::wants_classes`].
    pub class: Option<Arc<str>>,
}

/// Where the bytes of an item are.
#[derive(Debug, Clone)]
pub enum Body {
    /// A file of its own.
    File(PathBuf),
    /// A stretch of a file (an entry of a tar).
    Slice {
        /// The archive.
        archive: Arc<Path>,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// An entry of a zip.
    Zip {
        /// The archive.
        archive: Arc<Path>,
        /// Where in it.
        entry: ZipEntry,
    },
    /// A row of a Parquet file.
    Row {
        /// The file and the column.
        table: Arc<RowTable>,
        /// The row group.
        group: usize,
        /// The row in it.
        row: usize,
        /// Whether there is a path beside the place of the image, so that the image may be elsewhere.
        named: bool,
    },
    /// An object in a store.
    Object {
        /// Its address, as the store knows it.
        url: Box<str>,
        /// Its bytes, as the listing says; 0 where it was not listed.
        size: u64,
    },
    /// Already here (a compressed tar can be read only from front to back).
    Bytes(Vec<u8>),
    /// Should have been an item.
    Broken(ItemError),
}

impl Body {
    /// A file of its own, or an object.
    pub(crate) fn of_path(path: &Path) -> Self {
        match path.to_str().filter(|text| remote::is_text(text)) {
            Some(url) => Self::Object { url: url.into(), size: 0 },
            None => Self::File(path.to_owned()),
        }
    }

    /// Whether it is a file or an object of its own, and no part of another.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File(_) | Self::Object { .. })
    }

    /// How many bytes reading it takes, as far as that is known without opening it.
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Slice { length, .. } => *length,
            Self::Zip { entry, .. } => entry.size(),
            Self::Object { size: 0, .. } => UNKNOWN,
            Self::Object { size, .. } => *size,
            Self::File(_) | Self::Row { .. } | Self::Broken(_) => 0,
        }
    }
}

impl Found {
    /// A file that was named itself.
    pub fn file(path: &Path) -> Self {
        Self::named(path, Body::of_path(path))
    }

    /// Something below a folder or an archive.
    pub(crate) fn below(root: &Path, name: &str, body: Body) -> Self {
        let path = Self::path_below(root, name);
        Self { place: path.len() - name.len(), path, body, class: None }
    }

    /// The full name of something below a folder or an archive.
    fn path_below(root: &Path, name: &str) -> String {
        format!("{}/{name}", shown(root).trim_end_matches(std::path::MAIN_SEPARATOR))
    }

    /// Something that cannot be read at all.
    pub fn broken(path: &Path, error: ItemError) -> Self {
        Self::named(path, Body::Broken(error))
    }

    fn named(path: &Path, body: Body) -> Self {
        Self { path: shown(path), place: 0, body, class: None }
    }

    /// The name below the folder or archive; the whole path of a file that was named itself.
    pub fn name(&self) -> &str {
        self.path.get(self.place..).unwrap_or(&self.path)
    }

    /// The folder or archive; `None` for a file that was named itself.
    pub fn root(&self) -> Option<&str> {
        self.path.get(..self.place.checked_sub(1)?)
    }
}

/// A path as people see it. What is secret in an address does not get into tables.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    if remote::is_text(&text) { remote::Shown(&text).to_string() } else { text.into_owned() }
}

/// Something that is passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed<'a> {
    /// The folder or archive that it lies in.
    pub root: &'a Path,
    /// Its name below that.
    pub name: &'a str,
    /// Why.
    pub reason: Reason,
}

impl Passed<'_> {
    /// Its full name for people.
    pub fn path(&self) -> String {
        Found::path_below(self.root, self.name)
    }
}

/// Is told what is found, in order.
pub trait Visitor {
    /// Which files it wants.
    fn sought(&self) -> Sought {
        Sought::Images
    }

    /// Which columns of a table are what, where the schema does not tell.
    fn columns(&self) -> RowColumns {
        RowColumns::default()
    }

    /// Whether the classes that tables and archives give their items are of use: finding them takes time.
    fn wants_classes(&self) -> bool {
        false
    }

    /// An item, or something that should have been one. The answer says whether to go on.
    fn found(&mut self, found: Found) -> ControlFlow<()>;

    /// Something that is passed over.
    fn passed(&mut self, passed: Passed<'_>) {
        let _ = passed;
    }

    /// An archive that is cut off or damaged, or its last entry: always [`Body::Broken`], and the end of that archive.
    /// Whoever must have all or nothing fails here; by default it is an item that failed.
    fn damaged(&mut self, found: Found) -> ControlFlow<()> {
        self.found(found)
    }

    /// A file that a list or a pattern names and that is not an image by its name, before it is opened. A visitor that
    /// reads such files itself says so with an answer.
    fn named(&mut self, path: &Path) -> Option<ControlFlow<()>> {
        let _ = path;
        None
    }
}

impl<F: FnMut(Found) -> ControlFlow<()>> Visitor for F {
    fn found(&mut self, found: Found) -> ControlFlow<()> {
        self(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lie_below_their_roots() {
        let found = Found::below(Path::new("photos/"), "a/1.png", Body::Bytes(vec![]));
        assert_eq!((found.path.as_str(), found.name(), found.root()), ("photos/a/1.png", "a/1.png", Some("photos")));
        let found = Found::below(Path::new("/"), "1.png", Body::Bytes(vec![]));
        assert_eq!((found.path.as_str(), found.name(), found.root()), ("/1.png", "1.png", Some("")));
        let found = Found::file(Path::new("x/1.png"));
        assert_eq!((found.name(), found.root()), ("x/1.png", None));
        let found = Found::below(Path::new("https://h/a.tar?sign=s"), "1.png", Body::Bytes(vec![]));
        assert_eq!((found.path.as_str(), found.name()), ("https://h/a.tar/1.png", "1.png"));
    }
}
