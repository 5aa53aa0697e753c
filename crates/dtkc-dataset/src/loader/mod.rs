//! Shuffled minibatches, from memory or streamed.

mod options;
mod order;
mod stream;

use std::path::Path;
use std::sync::Arc;

use dtkc_item::{Batch, ItemShape, Items};
pub use options::{LoadMode, LoadOptions};
use order::Plan;
pub(crate) use order::places;
use stream::{Position, Stream, StreamSpec, Window};

use crate::{DataError, Dataset};

/// Shuffled minibatches over one dataset.
///
/// A set that fits the memory budget is held in memory and every epoch is a shuffle of all items. A larger
/// one is streamed: chunks are shuffled and dealt into windows, items are shuffled inside each window, and
/// one thread reads the next window (of the next epoch, too) while this one is used. Either way every item
/// comes exactly once per epoch, and the order is a pure function of seed and epoch; where one window
/// covers the set it is the same order in both modes.
#[derive(Debug)]
pub struct Batches {
    options: LoadOptions,
    dataset: Arc<Dataset>,
    plan: Plan,
    held: Held,
}

/// Where the items are.
#[derive(Debug)]
enum Held {
    Memory(Window),
    Stream {
        /// The window in use.
        window: Window,
        /// The reader, and the window that it hands out next.
        reader: Option<(Stream, Position)>,
    },
}

impl Batches {
    /// Opens the dataset and, where it fits the budget, reads it into memory.
    pub fn new(path: impl AsRef<Path>, options: LoadOptions) -> Result<Self, DataError> {
        Self::over(Dataset::open(path)?, options)
    }

    /// The same over a dataset that is already open.
    pub fn over(dataset: Dataset, options: LoadOptions) -> Result<Self, DataError> {
        options.check()?;
        let (chunk_rows, len) = (dataset.chunk_rows(), dataset.len());
        let (plan, held) = if options.fits_memory(dataset.bytes_of(0..len)) {
            let window = Window { rows: (0..len).collect(), places: Vec::new(), items: dataset.read_all()? };
            (Plan::whole(len), Held::Memory(window))
        } else {
            let one_by_one = Plan { len, chunk_rows, window_chunks: 1 };
            let bytes = (0..one_by_one.chunks()).map(|chunk| dataset.bytes_of(one_by_one.rows(chunk))).collect();
            let held = Held::Stream { window: Window::empty(dataset.shape()), reader: None };
            (Plan { window_chunks: options.window_chunks(bytes), ..one_by_one }, held)
        };
        Ok(Self { options, dataset: Arc::new(dataset), plan, held })
    }

    /// The dataset underneath.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Items in the set.
    pub fn len(&self) -> usize {
        self.plan.len
    }

    /// Never true: an empty set is not opened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What every item looks like: what [`Batch::empty`] wants for [`Epoch::next_into`].
    pub fn shape(&self) -> ItemShape {
        self.dataset.shape()
    }

    /// Items per batch.
    pub fn batch_size(&self) -> usize {
        self.options.batch
    }

    /// Batches of one epoch, the last and perhaps partial one included.
    pub fn batches_per_epoch(&self) -> usize {
        self.len().div_ceil(self.options.batch)
    }

    /// True where the whole set is held in memory.
    pub fn in_memory(&self) -> bool {
        matches!(self.held, Held::Memory(_))
    }

    /// The batches of one epoch.
    pub fn epoch(&mut self, epoch: u64) -> Epoch<'_> {
        self.epoch_from(epoch, 0)
    }

    /// The batches of one epoch from batch number `first` on, the same ones that [`Batches::epoch`] would
    /// give after skipping: for a run that is resumed in mid-epoch.
    pub fn epoch_from(&mut self, epoch: u64, first: usize) -> Epoch<'_> {
        let skipped = first.saturating_mul(self.options.batch).min(self.len());
        let left = self.len() - skipped;
        Epoch { batches: self, epoch, skip: Some(skipped), at: 0, left }
    }

    /// Makes ready to hand out items of `epoch` after `skip` items; returns the place in the window.
    fn begin(&mut self, epoch: u64, mut skip: usize) -> Result<usize, DataError> {
        let seed = self.options.seed;
        match &mut self.held {
            Held::Memory(window) => {
                window.places = places(self.plan.len, seed, epoch, 0);
                Ok(skip)
            }
            Held::Stream { window, reader } => {
                let mut start = Position { epoch, window: 0 };
                for chunks in self.plan.windows(seed, epoch) {
                    let rows = self.plan.window_rows(&chunks);
                    if skip < rows {
                        break;
                    }
                    skip -= rows;
                    start.window += 1;
                }
                // The reader is one window ahead. If that is the one we want, so much the better.
                if reader.as_ref().is_none_or(|(_, next)| *next != start) {
                    *reader = None;
                    let spec = StreamSpec { dataset: Arc::clone(&self.dataset), plan: self.plan, seed };
                    *reader = Some((Stream::start(spec, start)?, start));
                }
                window.places.clear();
                self.next_window()?;
                Ok(skip)
            }
        }
    }

    /// Takes the next window from the reader.
    fn next_window(&mut self) -> Result<(), DataError> {
        let Held::Stream { window, reader } = &mut self.held else { return Ok(()) };
        let Some((stream, next)) = reader else { return Ok(()) };
        let before = std::mem::replace(window, Window::empty(self.dataset.shape()));
        match stream.next(before) {
            Ok(read) => {
                *window = read;
                next.window += 1;
                if next.window == self.plan.chunks().div_ceil(self.plan.window_chunks) {
                    *next = Position { epoch: next.epoch.wrapping_add(1), window: 0 };
                }
                Ok(())
            }
            Err(error) => {
                // The thread has ended; another attempt starts a new one.
                *reader = None;
                Err(error)
            }
        }
    }

    fn window(&self) -> &Window {
        match &self.held {
            Held::Memory(window) | Held::Stream { window, .. } => window,
        }
    }
}

/// The batches of one epoch.
#[derive(Debug)]
pub struct Epoch<'a> {
    batches: &'a mut Batches,
    epoch: u64,
    /// Items to be skipped; `None` once reading has begun.
    skip: Option<usize>,
    /// Place in the current window's order.
    at: usize,
    /// Items still to come.
    left: usize,
}

impl Epoch<'_> {
    /// Like `next`, but into a batch whose memory is used again. False at the end of the epoch.
    pub fn next_into(&mut self, batch: &mut Batch) -> Result<bool, DataError> {
        batch.clear();
        if self.left == 0 {
            return Ok(false);
        }
        let result = self.fill(batch);
        if result.is_err() {
            // An iterator that fails is at its end.
            batch.clear();
            self.left = 0;
        }
        result.map(|()| true)
    }

    fn fill(&mut self, batch: &mut Batch) -> Result<(), DataError> {
        if let Some(skip) = self.skip.take() {
            self.at = self.batches.begin(self.epoch, skip)?;
        }
        let shape = self.batches.shape();
        let mut wanted = self.batches.options.batch.min(self.left);
        self.left -= wanted;
        let Batch { indices, items } = batch;
        // Its memory is used again where it was used for such items before.
        if items.shape() != shape {
            *items = Items::empty(shape);
        }
        indices.reserve(wanted);
        while wanted > 0 {
            if self.at == self.batches.window().places.len() {
                self.batches.next_window()?;
                self.at = 0;
            }
            let Window { rows, places, items: held } = self.batches.window();
            let end = places.len().min(self.at + wanted);
            for &place in &places[self.at..end] {
                indices.push(rows[place]);
                items.push_from(held, place);
            }
            wanted -= end - self.at;
            self.at = end;
        }
        Ok(())
    }
}

impl Iterator for Epoch<'_> {
    type Item = Result<Batch, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = Batch::empty(self.batches.shape());
        match self.next_into(&mut batch) {
            Ok(true) => Some(Ok(batch)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let batches = self.left.div_ceil(self.batches.options.batch);
        (batches.min(1), Some(batches))
    }
}
