//! The reader thread: windows are read ahead while the one before is used.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use dtkc_item::{ItemShape, Items};

use super::order::{Plan, places};
use crate::{DataError, Dataset};

/// Bytes that are asked for at once: neighbouring chunks together, but the thread looks up now and then
/// to see whether it is still needed.
const READ_BYTES: u64 = 4 << 20;

/// Where in the endless sequence of windows a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub epoch: u64,
    pub window: usize,
}

/// A window in memory.
#[derive(Debug)]
pub struct Window {
    /// The set's rows, in the order of `items`.
    pub rows: Vec<usize>,
    /// The shuffled order: places in `rows`.
    pub places: Vec<usize>,
    pub items: Items,
}

impl Window {
    /// Nothing yet, of items that look like that.
    pub fn empty(shape: ItemShape) -> Self {
        Self { rows: Vec::new(), places: Vec::new(), items: Items::empty(shape) }
    }
}

/// A thread that reads window after window, epoch after epoch, always one ahead of the consumer. Two
/// windows exist at any time: the consumer's and the reader's.
#[derive(Debug)]
pub struct Stream {
    windows: Option<Receiver<Result<Window, DataError>>>,
    used: Sender<Window>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What the reader thread needs to know.
#[derive(Debug, Clone)]
pub struct StreamSpec {
    pub dataset: Arc<Dataset>,
    pub plan: Plan,
    pub seed: u64,
}

impl Stream {
    /// Starts reading at `start`.
    pub fn start(spec: StreamSpec, start: Position) -> Result<Self, DataError> {
        // No slot in between: the reader waits with its window in hand, so that there are two and not three.
        let (to_consumer, windows) = bounded(0);
        let (used, from_consumer) = bounded(1);
        let stop = Arc::new(AtomicBool::new(false));
        let reader = Reader { spec, to_consumer, used: from_consumer, stop: Arc::clone(&stop) };
        let thread = std::thread::Builder::new().name("dtkc-reader".into()).spawn(move || reader.run(start))?;
        Ok(Self { windows: Some(windows), used, stop, thread: Some(thread) })
    }

    /// The next window; `before` is the used one, whose memory is used again.
    pub fn next(&mut self, before: Window) -> Result<Window, DataError> {
        // If the reader has a spare one already, this one is simply freed.
        let _ = self.used.try_send(before);
        let windows = self.windows.as_ref().and_then(|windows| windows.recv().ok());
        windows.unwrap_or_else(|| Err(DataError::Invalid("the reader thread has ended".into())))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Without a receiver a waiting reader wakes up and ends.
        self.windows = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Reader {
    spec: StreamSpec,
    to_consumer: Sender<Result<Window, DataError>>,
    used: Receiver<Window>,
    stop: Arc<AtomicBool>,
}

impl Reader {
    fn run(self, start: Position) {
        let Position { mut epoch, window: mut first } = start;
        loop {
            let windows = self.spec.plan.windows(self.spec.seed, epoch);
            for (number, chunks) in windows.iter().enumerate().skip(first) {
                let window = self.read(chunks, Position { epoch, window: number });
                let failed = window.is_err();
                if self.to_consumer.send(window).is_err() || failed || self.stop.load(Ordering::Relaxed) {
                    return;
                }
            }
            (epoch, first) = (epoch.wrapping_add(1), 0);
        }
    }

    fn read(&self, chunks: &[usize], at: Position) -> Result<Window, DataError> {
        let StreamSpec { dataset, plan, seed } = &self.spec;
        let mut window = self.used.try_recv().unwrap_or_else(|_| Window::empty(dataset.shape()));
        window.rows.clear();
        window.rows.extend(chunks.iter().flat_map(|&chunk| plan.rows(chunk)));
        window.items.clear();
        let one = dataset.bytes_of(plan.rows(0)).max(1);
        let most = (READ_BYTES / one).max(1) as usize;
        for neighbours in chunks.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(most)) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let range = plan.rows(neighbours[0]).start..plan.rows(neighbours[neighbours.len() - 1]).end;
            self.append(range, &mut window.items)?;
        }
        window.places = places(plan.window_rows(chunks), *seed, at.epoch, at.window);
        Ok(window)
    }

    /// Images go straight to their place; others are put behind those that are there.
    fn append(&self, range: Range<usize>, items: &mut Items) -> Result<(), DataError> {
        let dataset = &self.spec.dataset;
        match items {
            Items::Images { shape, pixels } => {
                let end = pixels.len();
                pixels.resize(end + range.len() * shape.len(), 0);
                dataset.read_range_into(range, &mut pixels[end..])
            }
            Items::Sequences { .. } | Items::Features { .. } => {
                items.append(&dataset.items_of(range)?);
                Ok(())
            }
        }
    }
}
