//! A reader that stops before a lie costs memory.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

/// How many bytes may still be read; shared with the reader.
#[derive(Debug, Clone)]
pub(super) struct Allowance(Rc<Cell<u64>>);

impl Allowance {
    pub(super) fn new() -> Self {
        Self(Rc::new(Cell::new(u64::MAX)))
    }

    pub(super) fn set(&self, bytes: u64) {
        self.0.set(bytes);
    }
}

/// The tar reader keeps a long name in memory whatever length it claims; this ends it. Seeking is free.
#[derive(Debug)]
pub(super) struct Bounded<R> {
    inner: R,
    left: Allowance,
}

impl<R> Bounded<R> {
    pub(super) fn new(inner: R, left: &Allowance) -> Self {
        Self { inner, left: left.clone() }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.0.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a name in it is too long"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.inner.read(&mut buffer[..most])?;
        self.left.set(left - count as u64);
        Ok(count)
    }
}

impl<R: Seek> Seek for Bounded<R> {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.inner.seek(place)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_with_the_allowance() {
        let left = Allowance::new();
        let mut reader = Bounded::new(io::repeat(7), &left);
        left.set(5);
        let mut bytes = Vec::new();
        assert!(reader.read_to_end(&mut bytes).unwrap_err().to_string().contains("too long"));
        assert_eq!(bytes.len(), 5);
        left.set(2);
        reader.read_exact(&mut [0; 2]).unwrap();
    }
}
