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
    fn a_buffer_has_the_length_that_was_asked_for() {
        assert_eq!(Buffer::take(77).len(), 77);
        assert_eq!(Buffer::take(0).len(), 0);
    }
}
