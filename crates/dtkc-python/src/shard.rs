//! The images of a shard (a Parquet file, a tar), some at a time, by the rules and within the bounds of `dtkc-source`.
//!
//! A thread of its own reads ahead, one batch, while Python labels the one before.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use dtkc_image::Limits;
use dtkc_source::parquet::{ImageRows, RowColumns, Wants};
use dtkc_source::{Body, BodyReader, FileKind, Found, Input, SourceError, Visitor, kind_of};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::error::raised;

/// A shard, and a way through it.
#[pyclass(frozen, module = "dtkc._dtkc")]
pub struct Shard {
    column: Option<String>,
    batches: Receiver<Sent>,
    ended: AtomicBool,
}

/// A batch, the end, or why there is none.
type Sent = Result<Option<Batch>, String>;

/// Some images: names, files one after the other, where each begins and the last ends, and why some have none.
type Rows<'py> = (Vec<String>, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>, Vec<(usize, String)>);

#[pymethods]
impl Shard {
    /// Opens a shard. At most `rows` images and `size` bytes come at a time, unless one image is larger. `keep_images` is for whoever reads the
    /// column of the images himself, too.
    #[new]
    #[pyo3(signature = (path, column = None, keep_images = false, rows = 1024, size = 64 << 20))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        column: Option<String>,
        keep_images: bool,
        rows: usize,
        size: usize,
    ) -> PyResult<Self> {
        let columns = RowColumns { image: column, ..RowColumns::default() };
        let opened = py.detach(|| Opened::new(&path, &columns, keep_images)).map_err(|error| raised(told(&error)))?;
        let column = match &opened {
            Opened::Table(images) => Some(images.column().to_owned()),
            Opened::Archive(_) => None,
        };
        let (send, batches) = bounded(1);
        let filler = Filler { batch: Batch::default(), rows: rows.max(1), size, reader: reader(), send };
        thread::Builder::new().name("dtkc-shard".into()).spawn(move || filler.run(&opened)).map_err(raised)?;
        Ok(Self { column, batches, ended: AtomicBool::new(false) })
    }

    /// The column that holds the images, of a table.
    #[getter]
    fn column(&self) -> Option<&str> {
        self.column.as_deref()
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Rows<'py>>> {
        if self.ended.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // Whoever ends without a word has broken down, and what is left must not be taken for nothing.
        let broken = || Err("its reader broke down, which is a fault of this package".to_owned());
        match py.detach(|| self.batches.recv()).unwrap_or_else(|_| broken()) {
            Ok(Some(Batch { names, data, offsets, errors })) => {
                Ok(Some((names, data.into_pyarray(py), offsets.into_pyarray(py), errors)))
            }
            end => {
                self.ended.store(true, Ordering::Relaxed);
                end.map(|_| None).map_err(raised)
            }
        }
    }
}

fn reader() -> BodyReader {
    BodyReader::new(Limits::default().max_bytes)
}

/// What is wrong, in words of Python.
fn told(error: &SourceError) -> String {
    error
        .to_string()
        .replace("choose with --image-column", "choose with column=")
        .replace("(--image-column)", "(column=)")
}

/// What a shard is.
enum Opened {
    Table(ImageRows),
    Archive(Input),
}

impl Opened {
    fn new(path: &Path, columns: &RowColumns, keep_images: bool) -> Result<Self, SourceError> {
        if let Ok(FileKind::Parquet) = kind_of(path) {
            let images = ImageRows::expect(path, columns)?;
            images.check_others(keep_images)?;
            return Ok(Self::Table(images));
        }
        match Input::open(&path.to_string_lossy())? {
            archive @ (Input::Tar(_) | Input::Zip(_)) => Ok(Self::Archive(archive)),
            _ => {
                let reason = "it is neither a Parquet file nor an archive".to_owned();
                Err(SourceError::File { path: path.to_owned(), reason })
            }
        }
    }
}

/// Images on their way to Python.
struct Batch {
    names: Vec<String>,
    data: Vec<u8>,
    offsets: Vec<i64>,
    errors: Vec<(usize, String)>,
}

impl Default for Batch {
    fn default() -> Self {
        Self { names: Vec::new(), data: Vec::new(), offsets: vec![0], errors: Vec::new() }
    }
}

/// Collects images and sends them off.
struct Filler {
    batch: Batch,
    rows: usize,
    size: usize,
    reader: BodyReader,
    send: Sender<Sent>,
}

impl Filler {
    fn run(mut self, opened: &Opened) {
        let walked = match opened {
            Opened::Table(images) => images
                .each(Wants { names: true, labels: false }, &mut |row| self.add(row.name, row.body))
                .map_err(|error| told(&error)),
            Opened::Archive(input) => input.visit(Limits::default().max_bytes, &mut self).map_err(|error| told(&error)),
        };
        let last = match walked {
            // Nobody listens any more, or all is said.
            Ok(ControlFlow::Break(())) => return,
            Ok(ControlFlow::Continue(())) => Ok(Some(self.batch).filter(|batch| !batch.names.is_empty())),
            Err(error) => Err(error),
        };
        let is_more = matches!(last, Ok(Some(_)));
        if self.send.send(last).is_ok() && is_more {
            let _ = self.send.send(Ok(None));
        }
    }

    fn add(&mut self, name: String, mut body: Body) -> ControlFlow<()> {
        let read = self.reader.read(&mut body);
        let size = read.as_ref().map_or(0, Vec::len);
        let full = self.batch.names.len() >= self.rows || self.batch.data.len() + size > self.size;
        if full && !self.batch.names.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            if self.send.send(Ok(Some(batch))).is_err() {
                return ControlFlow::Break(());
            }
        }
        let batch = &mut self.batch;
        match read {
            Ok(bytes) => batch.data.extend_from_slice(&bytes),
            Err(error) => batch.errors.push((batch.names.len(), error.message.to_string())),
        }
        batch.offsets.push(batch.data.len() as i64);
        batch.names.push(name);
        ControlFlow::Continue(())
    }
}

impl Visitor for Filler {
    fn found(&mut self, found: Found) -> ControlFlow<()> {
        self.add(found.name().to_owned(), found.body)
    }

    /// A shard is labelled as a whole or not at all: what was cut off is copied again, and then all of it is there.
    fn damaged(&mut self, found: Found) -> ControlFlow<()> {
        if let Body::Broken(error) = &found.body {
            let _ = self.send.send(Err(format!("{}: {}", found.path, error.message)));
        }
        ControlFlow::Break(())
    }
}
