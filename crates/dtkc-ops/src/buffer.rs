//! Large buffers that outlive one call and are used again: fresh ones of several megabytes would cost page faults and
//! zeroing in every step.

use std::{
    ops::{Deref, DerefMut},
    sync::{Mutex, PoisonError},
};

/// Buffers that are kept at most; a training step has a handful of sizes in use.
const KEPT: usize = 16;

/// Buffers that nobody uses at the moment.
static FREE: Mutex<Free> = Mutex::new(Free(Vec::new()));

/// The most recently used one last.
struct Free(Vec<Vec<f32>>);

impl Free {
    fn take(&mut self, len: usize) -> Vec<f32> {
        match self.0.iter().rposition(|buffer| buffer.len() == len) {
            Some(index) => self.0.remove(index),
            None => vec![0.0; len],
        }
    }

    /// One of at least this length, and no more than twice it. One that is somewhat too short makes room for the new one:
    /// sizes that differ from step to step would otherwise fill the memory with buffers that nearly fit.
    fn take_long(&mut self, len: usize) -> Vec<f32> {
        let fits = |buffer: &Vec<f32>| (len..=2 * len).contains(&buffer.len());
        if let Some(index) = self.0.iter().rposition(fits) {
            return self.0.remove(index);
        }
        if let Some(index) = self.0.iter().position(|buffer| (len / 2..len).contains(&buffer.len())) {
            self.0.remove(index);
        }
        vec![0.0; len + len / 8]
    }

    fn give(&mut self, buffer: Vec<f32>) {
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push(buffer);
    }
}

/// A buffer of values of any content at first; dropping it makes it available again.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<f32>);

impl Buffer {
    /// A buffer of exactly this length.
    pub(crate) fn take(len: usize) -> Buffer {
        Buffer(FREE.lock().unwrap_or_else(PoisonError::into_inner).take(len))
    }
}

impl Buffer {
    /// A buffer of this length or more.
    pub(crate) fn take_long(len: usize) -> Buffer {
        Buffer(FREE.lock().unwrap_or_else(PoisonError::into_inner).take_long(len))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).give(std::mem::take(&mut self.0));
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_few_are_kept() {
        let mut free = Free(Vec::new());
        let first = free.take(100);
        let address = first.as_ptr();
        free.give(first);
        let second = free.take(100);
        assert_eq!(second.as_ptr(), address);
        for len in 0..3 * KEPT {
            free.give(vec![0.0; len]);
        }
        assert_eq!(free.0.len(), KEPT);
    }

    #[test]
    fn sizes_that_vary_share_buffers() {
        let mut free = Free(Vec::new());
        for len in [1000, 1100, 900, 1050, 1120, 980] {
            let buffer = free.take_long(len);
            assert!(buffer.len() >= len);
            free.give(buffer);
        }
        assert_eq!(free.0.len(), 1, "one that fits them all");
        let larger = free.take_long(1500);
        free.give(larger);
        assert_eq!(free.0.len(), 1, "the shorter one made room");
    }

    #[test]
    fn a_buffer_has_the_length_that_was_asked_for() {
        assert_eq!(Buffer::take(77).len(), 77);
        assert_eq!(Buffer::take(0).len(), 0);
    }
}
