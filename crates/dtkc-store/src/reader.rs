//! An object that is read like a file: in small stretches where somebody jumps about, in large ones ahead of who reads on.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

use bytes::Bytes;
use dtkc_source::remote::ObjectFile;

use crate::StoreError;
use crate::object::{FIRST, Shared};
use crate::runtime::{self, Underway};

/// The largest stretch.
const MOST: u64 = 4 << 20;
/// Stretches that are under way at a time, ahead of who reads.
const AHEAD: usize = 4;

/// Reads an object. It takes at most `(AHEAD + 1) * MOST` bytes, 20 MiB.
pub(crate) struct Reader {
    object: Shared,
    at: u64,
    block: Block,
    ahead: VecDeque<Ahead>,
    /// How long the next stretch is.
    step: u64,
}

struct Block {
    start: u64,
    bytes: Bytes,
}

impl Block {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn holds(&self, place: u64) -> bool {
        (self.start..self.end()).contains(&place)
    }
}

/// A stretch under way.
struct Ahead {
    start: u64,
    end: u64,
    bytes: Underway<Result<Bytes, StoreError>>,
}

impl Ahead {
    fn wait(self) -> Result<Block, StoreError> {
        Ok(Block { start: self.start, bytes: self.bytes.wait()?? })
    }
}

impl Reader {
    pub(crate) fn new(object: Shared) -> Self {
        let block = Block { start: 0, bytes: object.head.clone() };
        Self { object, at: 0, block, ahead: VecDeque::new(), step: FIRST }
    }

    fn begin(&self, start: u64, step: u64) -> Result<Ahead, StoreError> {
        let end = start.saturating_add(step).min(self.object.size);
        let object = self.object.clone();
        let bytes = runtime::begin(async move { object.read(start..end).await })?;
        Ok(Ahead { start, end, bytes })
    }

    /// Brings what lies at the present place.
    fn fill(&mut self) -> Result<(), StoreError> {
        while let Some(next) = self.ahead.pop_front() {
            if (next.start..next.end).contains(&self.at) {
                self.block = next.wait()?;
                return self.top_up();
            }
        }
        let goes_on = self.at == self.block.end();
        if goes_on && self.object.recall(self.at).is_none() {
            // Once is by chance.
            let reads_on = self.step > FIRST;
            self.step = (self.step * 4).min(MOST);
            self.block = self.begin(self.at, self.step)?.wait()?;
            return if reads_on { self.top_up() } else { Ok(()) };
        }
        // Near the end of an archive somebody goes backwards in small steps.
        self.step = FIRST;
        let start = self.at - self.at % FIRST;
        self.block = match self.object.recall(start) {
            Some(bytes) => Block { start, bytes },
            None => {
                let block = self.begin(start, self.step)?.wait()?;
                self.object.remember(start, &block.bytes);
                block
            }
        };
        Ok(())
    }

    fn top_up(&mut self) -> Result<(), StoreError> {
        while self.ahead.len() < AHEAD {
            let start = self.ahead.back().map_or(self.block.end(), |last| last.end);
            if start >= self.object.size {
                break;
            }
            self.step = (self.step * 2).min(MOST);
            let next = self.begin(start, self.step)?;
            self.ahead.push_back(next);
        }
        Ok(())
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.object.size {
            return Ok(&[]);
        }
        if !self.block.holds(self.at) {
            self.fill()?;
        }
        let from = (self.at - self.block.start) as usize;
        self.block
            .bytes
            .get(from..)
            .ok_or_else(|| StoreError::other("a stretch of it is missing; please report it").into())
    }

    fn consume(&mut self, count: usize) {
        self.at += count as u64;
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl Seek for Reader {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.at = place_of(place, self.at, self.object.size)?;
        Ok(self.at)
    }
}

/// The place that somebody at `at` goes to in `size` bytes.
pub(crate) fn place_of(place: SeekFrom, at: u64, size: u64) -> io::Result<u64> {
    let to = match place {
        SeekFrom::Start(to) => Some(to),
        SeekFrom::End(step) => size.checked_add_signed(step),
        SeekFrom::Current(step) => at.checked_add_signed(step),
    };
    to.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a place before the beginning"))
}

impl ObjectFile for Reader {
    fn size(&self) -> u64 {
        self.object.size
    }

    fn holds(&self, place: u64) -> bool {
        let under_way = self.ahead.iter().any(|next| (next.start..next.end).contains(&place));
        // Its end belongs to it: who reads on comes there next.
        under_way || self.block.holds(place) || place == self.block.end()
    }

    fn fork(&self) -> Box<dyn ObjectFile> {
        Box::new(Self::new(self.object.clone()))
    }
}
