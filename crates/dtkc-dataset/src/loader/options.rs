//! How minibatches are made.

use crate::DataError;

/// Where the items are held while training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadMode {
    /// In memory if the set fits the budget, streamed otherwise.
    #[default]
    Auto,
    /// In memory, whatever the budget says.
    Memory,
    /// Streamed, even if the set would fit.
    Stream,
}

/// A larger shuffle window mixes no better in practice, and only makes the first batch wait.
const WINDOW_BYTES: u64 = 256 << 20;

/// How minibatches are made.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Items per batch; the last batch of an epoch may have fewer.
    pub batch: usize,
    /// Seed of the shuffle.
    pub seed: u64,
    /// Bytes that the loader may hold: decides between memory and streaming, and bounds the windows.
    pub memory_budget: u64,
    /// In memory or streamed.
    pub mode: LoadMode,
    /// Chunks per shuffle window when streaming. `None` takes 256 MiB or what a smaller budget allows.
    pub window: Option<usize>,
}

impl Default for LoadOptions {
    /// Batches of 120, seed 0, a budget of 2 GiB.
    fn default() -> Self {
        Self { batch: 120, seed: 0, memory_budget: 2 << 30, mode: LoadMode::Auto, window: None }
    }
}

impl LoadOptions {
    pub(super) fn check(&self) -> Result<(), DataError> {
        match (self.batch, self.window) {
            (0, _) => Err(DataError::Invalid("a batch needs at least one item".into())),
            (_, Some(0)) => Err(DataError::Invalid("a shuffle window needs at least one chunk".into())),
            _ => Ok(()),
        }
    }

    pub(super) fn fits_memory(&self, bytes: u64) -> bool {
        match self.mode {
            LoadMode::Auto => bytes <= self.memory_budget,
            LoadMode::Memory => true,
            LoadMode::Stream => false,
        }
    }

    /// Chunks per window: the consumer holds one window while the reader fills the next, and a third part
    /// of the budget is left for everything else. Sequences differ in length, so that as many chunks make a window as fit
    /// where the largest come together.
    pub(super) fn window_chunks(&self, mut chunk_bytes: Vec<u64>) -> usize {
        let bytes = WINDOW_BYTES.min(self.memory_budget / 3);
        chunk_bytes.sort_unstable_by(|a, b| b.cmp(a));
        let mut sum = 0;
        let fitting = chunk_bytes.iter().take_while(|chunk| {
            sum += **chunk;
            sum <= bytes
        });
        self.window.unwrap_or(fitting.count()).max(1)
    }
}
