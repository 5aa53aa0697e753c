//! From inputs to portions of work: one thread that finds images, in order, and reads rows of datasets ahead.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dtkc_infer::{RawItem, Task, Work};
use dtkc_item::Items;

use crate::error::{LabelError, Result};
use crate::journal;
use crate::row::Row;
use crate::shard::Shard;
use crate::source::{Body, BodyReader, Found, Inputs, Table, Visitor};

/// A portion is closed early when its pixels or encoded bytes reach this, so that memory does not depend on how
/// large the images are.
const MAX_BYTES: u64 = 8 << 20;

/// One image on its way.
pub struct Item {
    /// Position in the whole input.
    pub index: u64,
    /// Its class, where that is asked for and known.
    pub truth: Option<String>,
    /// Where it is.
    pub found: Found,
}

/// What the feeder must know.
#[derive(Debug, Clone, Copy)]
pub struct FeedOptions {
    /// Images per portion.
    pub batch: usize,
    /// Which share of the input.
    pub shard: Shard,
    /// Whether classes are wanted.
    pub truth: bool,
    /// Whether the encoded bytes of an archive's entries are needed again, after labelling.
    pub keep_bytes: bool,
    /// Most bytes of one encoded image.
    pub max_bytes: u64,
}

/// What was done before this run.
pub struct Past {
    reader: journal::Reader,
    rows: std::vec::IntoIter<Row>,
    last: u64,
}

impl Past {
    /// The rows in the journal of `output`, of which the last has the index `last`.
    pub fn open(output: &Path, last: u64) -> Result<Self> {
        Ok(Self { reader: journal::Reader::open(output)?, rows: Vec::new().into_iter(), last })
    }

    /// Compares an image with what the journal has at its place. Rows of datasets have no path yet.
    fn check(&mut self, index: u64, found: &Found) -> Result<()> {
        let row = match self.rows.next() {
            Some(row) => row,
            None => {
                self.rows = self.reader.next_block()?.unwrap_or_default().into_iter();
                self.rows.next().ok_or(LabelError::Internal("the journal is shorter than it was"))?
            }
        };
        let same = matches!(found.body, Body::Row { .. }) || row.path == found.path;
        if row.index == index && same {
            return Ok(());
        }
        let text = format!(
            "the input has changed since the run was interrupted: image {index} was {} and is now {}; \
             restore the input, or delete the journal to start over",
            row.path, found.path
        );
        Err(LabelError::Settings(text))
    }
}

/// How feeding ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fed {
    /// Images that the input holds; only what was seen where feeding was stopped.
    pub seen: u64,
    /// Files that are no images by their names.
    pub skipped: u64,
    /// Portions that were sent.
    pub portions: u64,
    /// Whether feeding was stopped before the end.
    pub stopped: bool,
}

/// Cuts `inputs` into portions and hands each to `send`, which says whether to go on. The images come back with the
/// answers as the portion's tag.
pub fn feed(
    inputs: &Inputs,
    options: FeedOptions,
    past: Option<Past>,
    stop: &(dyn Fn() -> bool + Sync),
    send: &mut dyn FnMut(Task<Vec<Item>>) -> ControlFlow<()>,
) -> Result<Fed> {
    let mut feeder = Feeder {
        options,
        past,
        stop,
        send,
        fed: Fed::default(),
        items: Vec::new(),
        bytes: 0,
        reader: BodyReader::new(options.max_bytes),
        error: None,
    };
    let flow = inputs.visit(&mut feeder)?;
    if let Some(error) = feeder.error {
        return Err(error);
    }
    feeder.fed.stopped = flow.is_break() || feeder.flush().is_break();
    match feeder.error {
        Some(error) => Err(error),
        None => Ok(feeder.fed),
    }
}

struct Feeder<'a> {
    options: FeedOptions,
    past: Option<Past>,
    stop: &'a (dyn Fn() -> bool + Sync),
    send: &'a mut dyn FnMut(Task<Vec<Item>>) -> ControlFlow<()>,
    fed: Fed,
    items: Vec<Item>,
    bytes: u64,
    reader: BodyReader,
    error: Option<LabelError>,
}

impl Visitor for Feeder<'_> {
    fn found(&mut self, found: Found) -> ControlFlow<()> {
        if (self.stop)() {
            return ControlFlow::Break(());
        }
        let index = self.fed.seen;
        self.fed.seen += 1;
        if !self.options.shard.owns(index) {
            return ControlFlow::Continue(());
        }
        if let Some(past) = self.past.as_mut().filter(|past| index <= past.last) {
            return match past.check(index, &found) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => self.fail(error),
            };
        }
        self.push(index, found)
    }

    fn skipped(&mut self, _path: &Path) {
        self.fed.skipped += 1;
    }
}

impl Feeder<'_> {
    fn fail(&mut self, error: LabelError) -> ControlFlow<()> {
        self.error = Some(error);
        ControlFlow::Break(())
    }

    fn push(&mut self, index: u64, found: Found) -> ControlFlow<()> {
        // A portion holds either rows of one dataset or encoded images.
        let table = |found: &Found| match &found.body {
            Body::Row { table, .. } => Some(Arc::as_ptr(table)),
            _ => None,
        };
        if self.items.last().is_some_and(|last| table(&last.found) != table(&found)) {
            self.flush()?;
        }
        self.bytes += match &found.body {
            Body::Row { table, .. } => table.shape().len() as u64,
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::Slice { length, .. } => *length,
            Body::Zip { entry, .. } => entry.as_ref().map_or(0, |entry| entry.size()),
            Body::File(_) | Body::Broken(_) => 0,
        };
        let truth = if self.options.truth && table(&found).is_none() { found.folder_name() } else { None };
        self.items.push(Item { index, truth, found });
        match self.items.len() >= self.options.batch || self.bytes >= MAX_BYTES {
            true => self.flush(),
            false => ControlFlow::Continue(()),
        }
    }

    fn flush(&mut self) -> ControlFlow<()> {
        if self.items.is_empty() {
            return ControlFlow::Continue(());
        }
        self.bytes = 0;
        let mut items = std::mem::take(&mut self.items);
        let work = match &items[0].found.body {
            Body::Row { table, .. } => read_rows(table.clone(), &mut items, self.options.truth),
            _ => Ok(Work::Raw(items.iter_mut().map(|item| self.read(&mut item.found.body)).collect())),
        };
        match work {
            Ok(work) => {
                self.fed.portions += 1;
                (self.send)(Task { tag: items, work })
            }
            Err(error) => self.fail(error),
        }
    }

    /// Files are left to the workers; archives are read here, in their order.
    fn read(&mut self, body: &mut Body) -> RawItem {
        if let Body::File(path) = body {
            return RawItem::File(path.clone());
        }
        match self.reader.read(body) {
            Ok(bytes) => {
                if self.options.keep_bytes {
                    *body = Body::Bytes(bytes.clone());
                }
                RawItem::Encoded(bytes)
            }
            Err(error) => RawItem::Failed(error),
        }
    }
}

/// Fills in paths and classes of a dataset's rows and reads their pixels, in runs of consecutive ones.
fn read_rows(table: Arc<Table>, items: &mut [Item], truth: bool) -> Result<Work> {
    if truth {
        table.load_truth()?;
    }
    let shape = table.shape();
    let row_of = |item: &Item| if let Body::Row { row, .. } = item.found.body { row } else { 0 };
    let mut pixels = Vec::with_capacity(items.len() * shape.len());
    for run in items.chunk_by_mut(|a, b| row_of(a) + 1 == row_of(b)) {
        let first = row_of(&run[0]);
        let rows = first..first + run.len();
        pixels.append(&mut table.pixels(rows.clone())?);
        for ((item, path), row) in run.iter_mut().zip(table.paths(rows.clone())?).zip(rows) {
            item.found.path = path;
            item.truth = if truth { table.truth(row) } else { None };
        }
    }
    Ok(Work::Decoded(Items::Images { shape, pixels }))
}
