//! The reader thread: windows are read ahead while the one before is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::order::{Plan, places};
use crate::{DataError, Dataset};

/// Bytes that are asked for at once: neighbouring chunks together, but the thread looks up now and then
/// to see whether it is still needed.
const READ_BYTES: usize = 4 << 20;

/// Where in the endless sequence of windows a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub epoch: u64,
    pub window: usize,
}

/// A window in memory.
#[derive(Debug, Default)]
pub struct Window {
    /// The set's rows, in the order of `pixels`.
    pub rows: Vec<usize>,
    /// The shuffled order: places in `rows`.
    pub places: Vec<usize>,
    pub pixels: Vec<u8>,
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
        let mut window = self.used.try_recv().unwrap_or_default();
        let row_bytes = dataset.image_shape().map_or(0, |shape| shape.len());
        let count = plan.window_rows(chunks);
        window.rows.clear();
        window.rows.extend(chunks.iter().flat_map(|&chunk| plan.rows(chunk)));
        window.pixels.resize(count * row_bytes, 0);
        let most = (READ_BYTES / (plan.chunk_rows * row_bytes).max(1)).max(1);
        let mut rest = window.pixels.as_mut_slice();
        for neighbours in chunks.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(most)) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let range = plan.rows(neighbours[0]).start..plan.rows(neighbours[neighbours.len() - 1]).end;
            let (now, later) = rest.split_at_mut(range.len() * row_bytes);
            dataset.read_range_into(range, now)?;
            rest = later;
        }
        window.places = places(count, *seed, at.epoch, at.window);
        Ok(window)
    }
}
