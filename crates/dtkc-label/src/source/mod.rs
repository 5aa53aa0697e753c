//! Where items come from: what `dtkc-source` finds in folders, archives, lists and patterns, rows of datasets, and what
//! `dtkc-formats` reads of sequences.
//!
//! An input is visited in one fixed order, so that the position of an item is the same in every run: shards,
//! `--resume` and `merge` rest on that.

mod dataset;
mod downloads;
mod sequences;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use dataset::Table;
use dtkc_files::Sources;
use dtkc_item::{ItemError, ItemShape};
use dtkc_source::classes::FolderClasses;
use dtkc_source::parquet::{self, ImageRows, RowColumns};
use dtkc_source::{Body, FileKind, Found, Input, Passed, Pattern, SourceError, expand_ranges, kind_of};
pub use sequences::{Sequence, SequenceFiles};

use dtkc_observe::Observer;
use dtkc_source::remote::{self, At};
use tempfile::TempDir;

use self::downloads::Downloads;
use crate::error::{LabelError, Result};
use crate::sequences::SequenceOptions;

/// Where an item comes from.
pub enum Origin {
    /// An encoded image.
    Encoded(Found),
    /// A sequence of a file that is no dataset.
    Sequence(Box<Sequence>),
    /// A row of a dataset; it needs no decoding.
    Row {
        /// What the `path` column says; filled in when rows are read.
        path: String,
        /// The dataset.
        table: Arc<Table>,
        /// Which row.
        row: usize,
    },
}

impl Origin {
    /// What the `path` column says.
    pub fn path(&self) -> &str {
        match self {
            Self::Encoded(found) => &found.path,
            Self::Sequence(sequence) => &sequence.path,
            Self::Row { path, .. } => path,
        }
    }

    /// The same, without the rest.
    pub fn into_path(self) -> String {
        match self {
            Self::Encoded(found) => found.path,
            Self::Sequence(sequence) => sequence.path,
            Self::Row { path, .. } => path,
        }
    }

    /// The file that it is read from.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Row { table, .. } => Some(Path::new(table.path())),
            Self::Sequence(sequence) => Some(&sequence.file),
            Self::Encoded(found) => match &found.body {
                Body::File(path) => Some(path),
                Body::Slice { archive, .. } | Body::Zip { archive, .. } => Some(archive),
                Body::Row { table, .. } => Some(&table.path),
                Body::Object { .. } | Body::Bytes(_) | Body::Broken(_) => None,
            },
        }
    }

    /// The dataset that it is a row of.
    pub fn table(&self) -> Option<&Arc<Table>> {
        match self {
            Self::Encoded(_) | Self::Sequence(_) => None,
            Self::Row { table, .. } => Some(table),
        }
    }
}

/// Is told what is found, in order.
pub trait Visitor {
    /// An item, or something that should have been one. The answer says whether to go on.
    fn found(&mut self, origin: Origin) -> ControlFlow<()>;

    /// Something that is passed over.
    fn passed(&mut self, _passed: Passed<'_>) {}

    /// Whether the classes that tables and archives give their items are of use.
    fn wants_classes(&self) -> bool {
        false
    }
}

impl<F: FnMut(Origin) -> ControlFlow<()>> Visitor for F {
    fn found(&mut self, origin: Origin) -> ControlFlow<()> {
        self(origin)
    }
}

/// Everything named by `--input`, in order.
pub struct Inputs {
    inputs: Vec<LabelInput>,
    max_bytes: u64,
    columns: RowColumns,
    /// Files that had to be brought: they go with the inputs.
    _downloads: Option<TempDir>,
}

enum LabelInput {
    Encoded(Input),
    Sequences(SequenceFiles),
    Dataset(Arc<Table>),
}

/// What is looked for in inputs.
pub struct Wanted<'a> {
    /// What the model takes.
    pub shape: ItemShape,
    /// The most bytes of an image file.
    pub max_bytes: u64,
    /// How sequences are read, where the model takes sequences.
    pub sequences: Option<&'a SequenceOptions>,
    /// Which columns of a table of images are what.
    pub columns: &'a RowColumns,
}

impl Inputs {
    /// Looks at each input, and refuses what is not there, cannot be opened or holds items of another kind before any
    /// work is done.
    pub fn open(texts: &[String], wanted: &Wanted<'_>, observer: &dyn Observer) -> Result<Self> {
        let mut downloads = Downloads::new(observer);
        let mut inputs = Vec::new();
        for text in texts {
            for text in expand_ranges(text)? {
                inputs.push(LabelInput::open(&text, wanted, &mut downloads)?);
            }
        }
        let (max_bytes, columns) = (wanted.max_bytes, wanted.columns.clone());
        let is_list = |input: &&LabelInput| matches!(input, LabelInput::Encoded(Input::List(_)));
        if inputs.iter().filter(is_list).count() > 1 {
            return Err(SourceError::input("-", "is named twice; standard input can be read once").into());
        }
        Ok(Self { inputs, max_bytes, columns, _downloads: downloads.keep() })
    }

    /// Shows every item to `visitor`, in order, until it has seen enough.
    pub fn visit(&self, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>> {
        for input in &self.inputs {
            if input.visit(self, visitor)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// How many items there are, where that can be known without reading standard input, unpacking a compressed tar or
    /// reading sequences. `stop` ends a long count.
    pub fn count(&self, stop: &dyn Fn() -> bool) -> Option<u64> {
        let mut count = 0;
        for input in &self.inputs {
            match input {
                LabelInput::Encoded(Input::List(_)) => return None,
                LabelInput::Sequences(files) => count += files.count()?,
                LabelInput::Dataset(table) => count += table.len() as u64,
                input => {
                    let mut found = |origin: Origin| {
                        count += 1;
                        let costly = matches!(&origin, Origin::Encoded(found) if matches!(found.body, Body::Bytes(_)));
                        if costly || stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    };
                    if input.visit(self, &mut found).ok()?.is_break() {
                        return None;
                    }
                }
            }
        }
        Some(count)
    }

    /// The classes that the folders of encoded images stand for, or that lie beside them: what all have in common is known
    /// only when all names were seen. `seen` is told of each, and says whether to go on.
    pub fn classes(&self, seen: &mut dyn FnMut() -> ControlFlow<()>) -> Result<FolderClasses> {
        let mut classes = FolderClasses::default();
        for input in self.inputs.iter().filter(|input| matches!(input, LabelInput::Encoded(_))) {
            if input.visit(self, &mut Learn { classes: &mut classes, seen: &mut *seen })?.is_break() {
                break;
            }
        }
        Ok(classes)
    }

    /// Folders that are walked: nothing may be written into them during the run.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.inputs.iter().filter_map(|input| match input {
            LabelInput::Encoded(input) => input.folder(),
            LabelInput::Sequences(files) => files.folders().next(),
            LabelInput::Dataset(_) => None,
        })
    }

    /// Files and folders that are named directly: nothing may be written over or into them.
    pub fn sources(&self) -> Sources {
        let paths = self.inputs.iter().filter_map(|input| match input {
            LabelInput::Dataset(table) => Some(Path::new(table.path())),
            LabelInput::Encoded(
                Input::Folder(path) | Input::File(path) | Input::Zip(path) | Input::Tar(path) | Input::Parquet(path),
            ) => Some(path),
            LabelInput::Encoded(Input::Glob(_) | Input::List(_)) | LabelInput::Sequences(_) => None,
        });
        let paths = paths.chain(self.files().flat_map(SequenceFiles::places));
        Sources::of(paths.filter(|path| !remote::is(path)))
    }

    /// Files that hold images inside them, as far as they are named or the first of a pattern.
    pub fn packed(&self) -> impl Iterator<Item = PathBuf> {
        self.inputs.iter().filter_map(|input| match input {
            LabelInput::Encoded(Input::Zip(path) | Input::Tar(path) | Input::Parquet(path)) => Some(path.clone()),
            LabelInput::Encoded(Input::Glob(pattern)) => {
                let holds = |path: &PathBuf| {
                    matches!(kind_of(path), Ok(FileKind::Zip | FileKind::Tar | FileKind::Parquet)) && path.is_file()
                };
                pattern.first().filter(holds)
            }
            _ => None,
        })
    }

    /// Shows every Parquet file that is named, matches a pattern or is listed, in order.
    pub fn each_parquet(&self, seen: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
        let mut tables = Tables { seen, error: None };
        for input in &self.inputs {
            match input {
                LabelInput::Encoded(Input::Parquet(path)) => (tables.seen)(path)?,
                LabelInput::Encoded(input @ (Input::Glob(_) | Input::List(_))) => {
                    // Whether it ended early is in the error.
                    let _ = input.visit(self.max_bytes, &mut tables)?;
                }
                _ => {}
            }
            if let Some(error) = tables.error.take() {
                return Err(error);
            }
        }
        Ok(())
    }

    /// What the paths of images begin with: folders, archives and tables, and the folders of single files. A list and a
    /// dataset say nothing about that.
    pub fn places(&self) -> Vec<PathBuf> {
        let place = |input: &LabelInput| match input {
            LabelInput::Encoded(Input::Folder(path) | Input::Zip(path) | Input::Tar(path) | Input::Parquet(path)) => {
                Some(path.clone())
            }
            LabelInput::Encoded(Input::File(path)) => Some(path.parent().unwrap_or(Path::new(".")).to_owned()),
            LabelInput::Encoded(Input::Glob(pattern)) => Some(pattern.base().to_owned()),
            LabelInput::Encoded(Input::List(_)) | LabelInput::Sequences(_) | LabelInput::Dataset(_) => None,
        };
        self.inputs.iter().filter_map(place).collect()
    }

    /// Whether all are datasets.
    pub fn only_tables(&self) -> bool {
        self.inputs.iter().all(|input| matches!(input, LabelInput::Dataset(_)))
    }

    /// Patterns.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.inputs.iter().filter_map(|input| match input {
            LabelInput::Encoded(Input::Glob(pattern)) => Some(pattern),
            _ => None,
        })
    }

    /// Datasets named directly.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.inputs.iter().filter_map(|input| match input {
            LabelInput::Encoded(_) | LabelInput::Sequences(_) => None,
            LabelInput::Dataset(table) => Some(table.as_ref()),
        })
    }

    /// Files of sequences that are no datasets.
    pub fn files(&self) -> impl Iterator<Item = &SequenceFiles> {
        self.inputs.iter().filter_map(|input| if let LabelInput::Sequences(files) = input { Some(files) } else { None })
    }
}

impl LabelInput {
    fn open(text: &str, wanted: &Wanted<'_>, downloads: &mut Downloads<'_>) -> Result<Self> {
        let path = Path::new(text);
        match wanted.sequences {
            _ if is_dataset_in_store(path) => {
                let local = downloads.bring(text)?;
                Ok(Self::Dataset(Arc::new(Table::open(&local, wanted.shape)?.called(text))))
            }
            _ if path.is_file() && dataset::is_dataset(path) => {
                Ok(Self::Dataset(Arc::new(Table::open(path, wanted.shape)?)))
            }
            Some(options) => Ok(Self::Sequences(SequenceFiles::open(text, options, downloads)?)),
            None => {
                let input = Input::open(text)?;
                check_columns(&input, wanted.columns)?;
                Ok(Self::Encoded(input))
            }
        }
    }

    fn visit(&self, all: &Inputs, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>> {
        match self {
            Self::Encoded(input) => {
                Ok(input.visit(all.max_bytes, &mut WithDatasets { visitor, columns: &all.columns })?)
            }
            Self::Sequences(files) => files.visit(visitor),
            Self::Dataset(table) => Ok(dataset::visit(table, visitor)),
        }
    }
}

/// Whether an address leads to a dataset: these are read on the disk. What is not there is told by whoever opens it.
fn is_dataset_in_store(path: &Path) -> bool {
    remote::is(path) && matches!(remote::at(path), Ok(At::File(_))) && dataset::is_dataset(path)
}

/// A table without the images or the columns that were asked for is refused at the start, of a pattern its first.
fn check_columns(input: &Input, columns: &RowColumns) -> Result<()> {
    match input {
        Input::Parquet(path) => Ok(ImageRows::expect(path, columns).map(drop)?),
        Input::Glob(pattern) => match pattern.first().filter(|path| matches!(kind_of(path), Ok(FileKind::Parquet))) {
            Some(first) => Ok(parquet::check_columns(&first, columns)?),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Learns the classes of items.
struct Learn<'a> {
    classes: &'a mut FolderClasses,
    seen: &'a mut dyn FnMut() -> ControlFlow<()>,
}

impl Visitor for Learn<'_> {
    fn found(&mut self, origin: Origin) -> ControlFlow<()> {
        if let Origin::Encoded(found) = &origin {
            self.classes.add(found);
        }
        (self.seen)()
    }

    fn wants_classes(&self) -> bool {
        true
    }
}

/// Looks for tables and passes over everything else.
struct Tables<'a> {
    seen: &'a mut dyn FnMut(&Path) -> Result<()>,
    error: Option<LabelError>,
}

impl dtkc_source::Visitor for Tables<'_> {
    fn found(&mut self, _: Found) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn named(&mut self, path: &Path) -> Option<ControlFlow<()>> {
        if !matches!(kind_of(path), Ok(FileKind::Parquet)) {
            return Some(ControlFlow::Continue(()));
        }
        Some(match (self.seen)(path) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        })
    }
}

/// A visitor of encoded images that knows datasets, too, where a list or a pattern names them.
struct WithDatasets<'a> {
    visitor: &'a mut dyn Visitor,
    columns: &'a RowColumns,
}

impl dtkc_source::Visitor for WithDatasets<'_> {
    fn columns(&self) -> RowColumns {
        self.columns.clone()
    }

    fn wants_classes(&self) -> bool {
        self.visitor.wants_classes()
    }

    fn found(&mut self, found: Found) -> ControlFlow<()> {
        self.visitor.found(Origin::Encoded(found))
    }

    fn passed(&mut self, passed: Passed<'_>) {
        self.visitor.passed(passed);
    }

    fn named(&mut self, path: &Path) -> Option<ControlFlow<()>> {
        if remote::is(path) && dataset::is_dataset(path) {
            let text = "a dataset in a store is read where it is named by itself, and not by a pattern or a list";
            return Some(self.found(Found::broken(path, ItemError::new("not_in_place", text))));
        }
        dataset::is_dataset(path).then(|| match Table::of_images(path) {
            Ok(table) => dataset::visit(&Arc::new(table), self.visitor),
            Err(error) => self.found(Found::broken(path, ItemError::new("damaged_dataset", error))),
        })
    }
}
