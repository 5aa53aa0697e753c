//! Large buffers that outlive one call and are used again: fresh ones of several megabytes would cost page faults and
//! zeroing in every step.

use std::{
    ops::{Deref, DerefMut},
    sync::{Mutex, PoisonError},
};

/// Buffers that nobody uses at the moment.
static FREE: Mutex<Vec<Vec<f32>>> = Mutex::new(Vec::new());

/// Buffers that are kept at most; a training step has a handful of sizes in use.
const KEPT: usize = 16;

/// A buffer of values of any content at first; dropping it makes it available again.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<f32>);

impl Buffer {
    /// A buffer of exactly this length.
    pub(crate) fn take(len: usize) -> Buffer {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        match free.iter().rposition(|buffer| buffer.len() == len) {
            Some(index) => Buffer(free.remove(index)),
            None => Buffer(vec![0.0; len]),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() == KEPT {
            // The one that was not needed for longest.
            free.remove(0);
        }
        free.push(std::mem::take(&mut self.0));
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
    fn a_dropped_buffer_is_used_again_and_few_are_kept() {
        let first = Buffer::take(12345).as_ptr() as usize;
        assert_eq!(Buffer::take(12345).as_ptr() as usize, first);
        for len in 0..3 * KEPT {
            drop(Buffer::take(20000 + len));
        }
        assert!(FREE.lock().unwrap_or_else(PoisonError::into_inner).len() <= KEPT);
    }
}
