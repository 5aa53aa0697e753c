//! From inputs to portions of work: one thread that finds items, in order, and reads rows of datasets ahead.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dtkc_infer::{RawItem, SequenceSpec, Task, Work};
use dtkc_item::{ItemError, ItemRef, ItemShape, Items};
use dtkc_source::classes::FolderClasses;
use dtkc_source::{Body, BodyReader, ListFile, Passed, PassedOver, remote};

use crate::error::{LabelError, Result};
use crate::journal;
use crate::keep::Places;
use crate::label::Replaced;
use crate::row::Row;
use crate::sequences::SequenceSettings;
use crate::shard::Shard;
use crate::source::{Inputs, Origin, Table, Visitor};

/// A portion is closed early when its items or encoded bytes reach this, so that memory does not depend on how large
/// they are.
const MAX_BYTES: u64 = 8 << 20;

/// One item on its way.
pub struct Item {
    /// Position in the whole input.
    pub index: u64,
    /// Its class, where that is asked for and known.
    pub truth: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
}

/// What the feeder must know.
#[derive(Debug, Clone, Copy)]
pub struct FeedOptions<'a> {
    /// Items per portion.
    pub batch: usize,
    /// Which share of the input.
    pub shard: Shard,
    /// The classes of encoded images, where classes are wanted.
    pub classes: Option<&'a FolderClasses>,
    /// Where files that are passed over are listed.
    pub passed_list: Option<&'a Path>,
    /// Whether the encoded bytes of an archive's entries are needed again, after labelling.
    pub keep_bytes: bool,
    /// Most bytes of one encoded image.
    pub max_bytes: u64,
    /// Whether it is remembered where the rows of tables lie.
    pub places: bool,
    /// Files that the run replaces, which no item may come from.
    pub replaced: &'a Replaced,
    /// Which sequences the model takes and how they are read, where it takes sequences.
    pub sequences: Option<(SequenceSpec, &'a SequenceSettings)>,
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
    fn check(&mut self, index: u64, origin: &Origin) -> Result<()> {
        let row = match self.rows.next() {
            Some(row) => row,
            None => {
                self.rows = self.reader.next_block()?.unwrap_or_default().into_iter();
                self.rows.next().ok_or(LabelError::Internal("the journal is shorter than it was"))?
            }
        };
        let same = origin.table().is_some() || row.path == origin.path();
        if row.index == index && same {
            return Ok(());
        }
        let text = format!(
            "the input has changed since the run was interrupted: item {index} was {} and is now {}; \
             restore the input, or delete the journal to start over",
            row.path,
            origin.path()
        );
        Err(LabelError::Settings(text))
    }
}

/// How feeding ended.
#[derive(Debug, Default)]
pub struct Fed {
    /// Images that the input holds; only what was seen where feeding was stopped.
    pub seen: u64,
    /// Files that are no images.
    pub passed: PassedOver,
    /// The list of these, on its way.
    pub list: Option<ListFile>,
    /// Where the rows of tables lie, where that is asked for.
    pub places: Places,
    /// Portions that were sent.
    pub portions: u64,
    /// Whether feeding was stopped before the end.
    pub stopped: bool,
}

/// Cuts `inputs` into portions and hands each to `send`, which says whether to go on. The images come back with the
/// answers as the portion's tag.
pub fn feed(
    inputs: &Inputs,
    options: FeedOptions<'_>,
    past: Option<Past>,
    stop: &(dyn Fn() -> bool + Sync),
    send: &mut dyn FnMut(Task<Vec<Item>>) -> ControlFlow<()>,
) -> Result<Fed> {
    let mut feeder = Feeder {
        options,
        past,
        stop,
        send,
        fed: Fed { list: options.passed_list.map(ListFile::new), ..Fed::default() },
        items: Vec::new(),
        bytes: 0,
        reader: BodyReader::new(options.max_bytes),
        looked_at: None,
        error: None,
    };
    let flow = inputs.visit(&mut feeder)?;
    if let (None, Some(trouble), false) = (&feeder.error, remote::trouble(), stop()) {
        return Err(trouble.into());
    }
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
    options: FeedOptions<'a>,
    past: Option<Past>,
    stop: &'a (dyn Fn() -> bool + Sync),
    send: &'a mut dyn FnMut(Task<Vec<Item>>) -> ControlFlow<()>,
    fed: Fed,
    items: Vec<Item>,
    bytes: u64,
    reader: BodyReader,
    /// The file of the last image.
    looked_at: Option<Box<Path>>,
    error: Option<LabelError>,
}

impl Visitor for Feeder<'_> {
    fn found(&mut self, origin: Origin) -> ControlFlow<()> {
        if (self.stop)() || self.error.is_some() {
            return ControlFlow::Break(());
        }
        if let Some(trouble) = remote::trouble() {
            return self.fail(trouble.into());
        }
        if let Err(error) = self.options.replaced.check(&origin, &mut self.looked_at) {
            return self.fail(error);
        }
        let index = self.fed.seen;
        if self.options.places {
            self.fed.places.add(index, &origin);
        }
        self.fed.seen += 1;
        if !self.options.shard.owns(index) {
            return ControlFlow::Continue(());
        }
        if let Some(past) = self.past.as_mut().filter(|past| index <= past.last) {
            return match past.check(index, &origin) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => self.fail(error),
            };
        }
        self.push(index, origin)
    }

    fn wants_classes(&self) -> bool {
        self.options.classes.is_some()
    }

    fn passed(&mut self, passed: Passed<'_>) {
        self.fed.passed.add(passed.reason);
        if let Some(list) = &mut self.fed.list
            && let Err(error) = list.add(&passed.path(), passed.reason.code(), passed.reason.text())
        {
            self.error.get_or_insert(error.into());
        }
    }
}

impl Feeder<'_> {
    fn fail(&mut self, error: LabelError) -> ControlFlow<()> {
        self.error = Some(error);
        ControlFlow::Break(())
    }

    fn push(&mut self, index: u64, mut origin: Origin) -> ControlFlow<()> {
        // How large an image of a table is nobody knows before it is read.
        if let Origin::Encoded(found) = &mut origin
            && matches!(found.body, Body::Row { .. })
        {
            found.body = self.reader.read(&mut found.body).map_or_else(Body::Broken, Body::Bytes);
        }
        // A portion holds either rows of one dataset or encoded images.
        let table = |origin: &Origin| origin.table().map(Arc::as_ptr);
        if self.items.last().is_some_and(|last| table(&last.origin) != table(&origin)) {
            self.flush()?;
        }
        let truth = match &origin {
            Origin::Encoded(found) => {
                self.bytes += found.body.size();
                self.options.classes.and_then(|classes| classes.class_of(found))
            }
            Origin::Sequence(sequence) => {
                self.bytes += sequence.values.as_ref().map_or(0, |values| size_of_val(values.as_slice()) as u64);
                sequence.truth.clone().filter(|_| self.options.classes.is_some())
            }
            Origin::Row { table, row, .. } => {
                // One that is too long is not read.
                let too_long = self.options.sequences.is_some_and(|(spec, _)| table.steps(*row) > spec.max_steps);
                self.bytes += if too_long { 0 } else { table.bytes(*row) };
                None
            }
        };
        self.items.push(Item { index, truth, origin });
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
        let work = match items[0].origin.table().cloned() {
            Some(table) => name_rows(&table, &mut items, self.options.classes.is_some())
                .and_then(|()| read_rows(&table, &items, self.options.sequences)),
            None => self.read_all(&mut items),
        };
        // Who waits for a store is told to stop in the middle of it.
        if (self.stop)() && remote::trouble().is_some() {
            return ControlFlow::Break(());
        }
        match work {
            Ok(work) => {
                self.fed.portions += 1;
                (self.send)(Task { tag: items, work })
            }
            Err(error) => self.fail(error),
        }
    }

    /// Reads what the workers do not read themselves. What a store does not give is no fault of an item: the run ends, and can be
    /// resumed.
    fn read_all(&mut self, items: &mut [Item]) -> Result<Work> {
        let objects = items.iter_mut().filter_map(|item| match &mut item.origin {
            Origin::Encoded(found) => Some(&mut found.body),
            _ => None,
        });
        self.reader.fetch(objects);
        let raw = items.iter_mut().map(|item| self.read(&mut item.origin)).collect();
        match remote::trouble() {
            Some(trouble) => Err(trouble.into()),
            None => Ok(Work::Raw(raw)),
        }
    }

    /// Files are left to the workers; archives are read here, in their order, and sequences have been.
    fn read(&mut self, origin: &mut Origin) -> RawItem {
        let found = match origin {
            Origin::Encoded(found) => found,
            Origin::Sequence(sequence) => {
                let gone = Err(ItemError::unreadable("it was taken already"));
                return raw(sequence.dim, std::mem::replace(&mut sequence.values, gone), self.options.sequences);
            }
            Origin::Row { .. } => return RawItem::Failed(ItemError::unreadable("it is a row of a dataset")),
        };
        if let Body::File(path) = &found.body {
            return RawItem::File(path.clone());
        }
        match self.reader.read(&mut found.body) {
            Ok(bytes) => {
                if self.options.keep_bytes {
                    found.body = Body::Bytes(bytes.clone());
                }
                RawItem::Encoded(bytes)
            }
            Err(error) => RawItem::Failed(error),
        }
    }
}

/// A sequence for a worker, after what is missing in it was treated.
fn raw(
    dim: usize,
    values: Result<Vec<f32>, ItemError>,
    sequences: Option<(SequenceSpec, &SequenceSettings)>,
) -> RawItem {
    let settled = values.and_then(|mut values| match sequences {
        Some((spec, settings)) if spec.dim == dim => settings.settle(&spec, &mut values).map(|()| values),
        // The worker says what is wrong with it.
        _ => Ok(values),
    });
    settled.map_or_else(RawItem::Failed, |values| RawItem::Sequence { dim, values })
}

/// Which row of its dataset an item is.
fn row_of(item: &Item) -> usize {
    if let Origin::Row { row, .. } = item.origin { row } else { 0 }
}

/// Fills in paths and classes of a dataset's rows.
fn name_rows(table: &Table, items: &mut [Item], truth: bool) -> Result<()> {
    if truth {
        table.load_truth()?;
    }
    for run in items.chunk_by_mut(|a, b| row_of(a) + 1 == row_of(b)) {
        let first = row_of(&run[0]);
        let rows = first..first + run.len();
        for ((item, given), row) in run.iter_mut().zip(table.paths(rows.clone())?).zip(rows) {
            if let Origin::Row { path, .. } = &mut item.origin {
                *path = given;
            }
            item.truth = if truth { table.truth(row) } else { None };
        }
    }
    Ok(())
}

/// Reads a dataset's rows, in runs of consecutive ones. Sequences that are too long are not read.
fn read_rows(table: &Table, items: &[Item], sequences: Option<(SequenceSpec, &SequenceSettings)>) -> Result<Work> {
    let rows: Vec<usize> = items.iter().map(row_of).collect();
    let Some((spec, _)) = sequences else {
        let mut all = Items::empty(table.shape());
        for run in rows.chunk_by(|a, b| a + 1 == *b) {
            all.append(&table.items(run[0]..run[0] + run.len())?);
        }
        return Ok(Work::Decoded(all));
    };
    let dim = if let ItemShape::Sequence { dim } = table.shape() { dim } else { 0 };
    let fits = |row: &usize| table.steps(*row) <= spec.max_steps;
    let mut raws = Vec::with_capacity(rows.len());
    for run in rows.chunk_by(|a, b| a + 1 == *b && fits(a) == fits(b)) {
        if !fits(&run[0]) {
            raws.extend(run.iter().map(|row| {
                let error = spec.check_steps(table.steps(*row)).err();
                RawItem::Failed(error.unwrap_or_else(ItemError::no_steps))
            }));
            continue;
        }
        let read = table.items(run[0]..run[0] + run.len())?;
        raws.extend(read.iter().map(|item| {
            let values = if let ItemRef::Steps(steps) = item { steps.to_vec() } else { Vec::new() };
            raw(dim, Ok(values), sequences)
        }));
    }
    Ok(Work::Raw(raws))
}
