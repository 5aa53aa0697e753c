//! The order of images in an epoch: a pure function of seed and epoch.
//!
//! Chunks are shuffled and dealt into windows; inside a window all rows are shuffled. Where one window
//! covers the set this is a plain shuffle of all rows and does not depend on the chunks at all, so that it
//! is the same in memory and streamed.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// How a set is cut for shuffling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Rows in the set; at least one.
    pub len: usize,
    /// Rows per chunk; the last chunk may have fewer.
    pub chunk_rows: usize,
    /// Chunks per window; the last window may have fewer.
    pub window_chunks: usize,
}

impl Plan {
    /// One window over everything.
    pub fn whole(len: usize) -> Self {
        Self { len, chunk_rows: len, window_chunks: 1 }
    }

    /// Chunks in the set.
    pub fn chunks(&self) -> usize {
        self.len.div_ceil(self.chunk_rows)
    }

    /// The rows of one chunk.
    pub fn rows(&self, chunk: usize) -> Range<usize> {
        let start = chunk * self.chunk_rows;
        start..self.len.min(start + self.chunk_rows)
    }

    /// The windows of an epoch, each with its chunks in rising order.
    pub fn windows(&self, seed: u64, epoch: u64) -> Vec<Vec<usize>> {
        let mut chunks: Vec<usize> = (0..self.chunks()).collect();
        shuffle(&mut chunks, &mut generator(seed, epoch, 0));
        let deal = |window: &[usize]| {
            let mut window = window.to_vec();
            window.sort_unstable();
            window
        };
        chunks.chunks(self.window_chunks).map(deal).collect()
    }

    /// Rows of a window.
    pub fn window_rows(&self, chunks: &[usize]) -> usize {
        chunks.iter().map(|&c| self.rows(c).len()).sum()
    }
}

/// The shuffled places inside a window of `rows` rows: place 0 is the first row of its first chunk.
pub fn places(rows: usize, seed: u64, epoch: u64, window: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..rows).collect();
    shuffle(&mut places, &mut generator(seed, epoch, window as u64 + 1));
    places
}

/// An independent stream of random numbers for every (seed, epoch, stream).
fn generator(seed: u64, epoch: u64, stream: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&epoch.to_le_bytes());
    let mut generator = ChaCha8Rng::from_seed(key);
    generator.set_stream(stream);
    generator
}

/// Fisher-Yates, written out so that the order does not change with a library's version.
fn shuffle(items: &mut [usize], generator: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        let other = (u128::from(generator.next_u64()) * (last as u128 + 1)) >> 64;
        items.swap(last, other as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_never_changes_between_versions() {
        // Recorded once: a change here would break every run that is to be repeated.
        assert_eq!(places(10, 0, 0, 0), [8, 5, 0, 6, 1, 3, 4, 2, 9, 7]);
        assert_eq!(places(10, 0, 1, 0), [7, 3, 4, 8, 0, 6, 9, 5, 1, 2]);
    }

    #[test]
    fn a_window_over_everything_does_not_depend_on_chunks() {
        let plan = Plan { len: 100, chunk_rows: 7, window_chunks: 50 };
        let windows = plan.windows(3, 4);
        assert_eq!(windows, [(0..15).collect::<Vec<_>>()]);
        assert_eq!(plan.window_rows(&windows[0]), 100);
        assert_eq!(Plan::whole(100).windows(3, 4), [[0]]);
    }

    #[test]
    fn a_shuffle_is_fair() {
        // Each of five items should come first in about a fifth of 5000 shuffles: 1000 +- 5 sigma (28).
        let mut first = [0; 5];
        for epoch in 0..5000 {
            first[places(5, 7, epoch, 0)[0]] += 1;
        }
        assert!(first.iter().all(|n| (860..=1140).contains(n)), "{first:?}");
    }
}
