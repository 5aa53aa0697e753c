//! Where images come from: folders, files, globs, archives, datasets, a list of paths.
//!
//! An input is visited in one fixed order, so that the position of an image is the same in every run: shards,
//! `--resume` and `merge` rest on that. Visiting finds images and reads none of them (but those of a compressed
//! tar, which cannot be read twice); the workers do.

mod body;
mod dataset;
mod folder;
mod glob;
mod list;
mod tar;
mod zip;

use dtkc_item::ItemError;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub use body::{Body, BodyReader, Found};
pub use dataset::Table;
use dtkc_image::looks_like_image;

use crate::error::{LabelError, Result};

/// Is told what is found, in order.
pub trait Visitor {
    /// An image, or something that should have been one. The answer says whether to go on.
    fn found(&mut self, found: Found) -> ControlFlow<()>;

    /// A file that is not taken for an image by its name.
    fn skipped(&mut self, _path: &Path) {}
}

impl<F: FnMut(Found) -> ControlFlow<()>> Visitor for F {
    fn found(&mut self, found: Found) -> ControlFlow<()> {
        self(found)
    }
}

/// Everything named by `--input`, in order.
pub struct Inputs {
    sources: Vec<Source>,
}

enum Source {
    Folder(PathBuf),
    File(PathBuf),
    Glob(glob::Pattern),
    Zip(PathBuf),
    Tar(PathBuf),
    Dataset(std::sync::Arc<Table>),
    List(list::List),
}

impl Inputs {
    /// Looks at each input, and refuses what is not there or cannot be opened before any work is done.
    pub fn open(texts: &[String]) -> Result<Self> {
        let sources: Vec<Source> = texts.iter().map(|text| Source::open(text)).collect::<Result<_>>()?;
        if sources.iter().filter(|s| matches!(s, Source::List(_))).count() > 1 {
            return Err(LabelError::input("-", "is named twice; standard input can be read once"));
        }
        Ok(Self { sources })
    }

    /// Shows every image to `visitor`, in order, until it has seen enough.
    pub fn visit(&self, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>> {
        for source in &self.sources {
            if source.visit(visitor)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// How many images there are, where that can be known without reading standard input or unpacking a compressed
    /// tar. `stop` ends a long count.
    pub fn count(&self, stop: &dyn Fn() -> bool) -> Option<u64> {
        let mut count = 0;
        for source in &self.sources {
            match source {
                Source::List(_) => return None,
                Source::Dataset(table) => count += table.len() as u64,
                source => {
                    let mut found = |found: Found| {
                        count += 1;
                        let costly = matches!(found.body, Body::Bytes(_));
                        if costly || stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    };
                    if source.visit(&mut found).ok()?.is_break() {
                        return None;
                    }
                }
            }
        }
        Some(count)
    }

    /// Folders that are walked: nothing may be written into them during the run.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.sources.iter().filter_map(|source| match source {
            Source::Folder(path) => Some(path.as_path()),
            Source::Glob(pattern) => Some(pattern.base()),
            _ => None,
        })
    }

    /// Datasets named directly.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.sources.iter().filter_map(|source| match source {
            Source::Dataset(table) => Some(table.as_ref()),
            _ => None,
        })
    }
}

/// What a file is, by the ending of its name.
enum Kind {
    Zip,
    Tar,
    Dataset,
    Other,
}

fn kind_of(path: &Path) -> Kind {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|e| name.ends_with(e));
    match () {
        () if ends(&[".zip"]) => Kind::Zip,
        () if ends(&[".tar", ".tar.gz", ".tgz"]) => Kind::Tar,
        () if ends(&[".h5", ".hdf5"]) => Kind::Dataset,
        () => Kind::Other,
    }
}

impl Source {
    fn open(text: &str) -> Result<Self> {
        if text == "-" {
            return Ok(Self::List(list::List::stdin()));
        }
        let path = Path::new(text);
        match fs_err::metadata(path) {
            Ok(meta) if meta.is_dir() => Ok(Self::Folder(path.to_owned())),
            Ok(_) => Self::of_file(path),
            Err(_) if glob::is_pattern(text) => Ok(Self::Glob(glob::Pattern::new(text)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(LabelError::input(text, "does not exist; check the path"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A file that exists. Archives and datasets are opened once, so that a wrong one is reported at the start.
    fn of_file(path: &Path) -> Result<Self> {
        match kind_of(path) {
            Kind::Zip => {
                zip::check(path)?;
                Ok(Self::Zip(path.to_owned()))
            }
            Kind::Tar => {
                tar::check(path)?;
                Ok(Self::Tar(path.to_owned()))
            }
            Kind::Dataset => Ok(Self::Dataset(std::sync::Arc::new(Table::open(path)?))),
            Kind::Other => Ok(Self::File(path.to_owned())),
        }
    }

    fn visit(&self, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>> {
        match self {
            Self::Folder(path) => Ok(folder::visit(path, visitor)),
            Self::File(path) => Ok(visitor.found(Found::file(path, 0))),
            Self::Glob(pattern) => Ok(pattern.visit(visitor)),
            Self::Zip(path) => Ok(zip::visit(path, visitor)),
            Self::Tar(path) => Ok(tar::visit(path, visitor)),
            Self::Dataset(table) => Ok(dataset::visit(table, visitor)),
            Self::List(list) => list.visit(visitor),
        }
    }
}

/// Visits one path that a glob or a list names: an archive or a dataset is opened, a folder is walked, any other
/// file counts as an image. What cannot be opened fails alone.
fn visit_path(path: &Path, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    if looks_like_image(path) {
        return visitor.found(Found::file(path, 0));
    }
    match kind_of(path) {
        Kind::Zip => zip::visit(path, visitor),
        Kind::Tar => tar::visit(path, visitor),
        Kind::Dataset => match Table::open(path) {
            Ok(table) => dataset::visit(&std::sync::Arc::new(table), visitor),
            Err(error) => visitor.found(Found::broken(path, ItemError::new("damaged_dataset", error.to_string()))),
        },
        Kind::Other if path.is_dir() => folder::visit(path, visitor),
        Kind::Other => visitor.found(Found::file(path, 0)),
    }
}

/// Names in archives that are no images whatever their ending says: folders' and the Mac's own entries.
fn is_archived_image(name: &str) -> bool {
    let hidden = name.split('/').any(|part| part.starts_with('.') && part != "." && part != "..");
    looks_like_image(Path::new(name)) && !hidden && !name.starts_with("__MACOSX/")
}
