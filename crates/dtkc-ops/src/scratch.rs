//! Buffers that are used again: a step in steady state allocates nothing here.

use std::{cell::RefCell, thread::LocalKey};

/// Buffers of one thread that nobody uses at the moment, largest first.
type Free<T> = RefCell<Vec<Vec<T>>>;

thread_local! {
    static SINGLE: Free<f32> = const { RefCell::new(Vec::new()) };
    static DOUBLE: Free<f64> = const { RefCell::new(Vec::new()) };
}

/// Gives `work` a buffer of `len` values of any content.
pub(crate) fn with<R>(len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    with_free(&SINGLE, len, work)
}

/// The same in f64.
pub(crate) fn with_double<R>(len: usize, work: impl FnOnce(&mut [f64]) -> R) -> R {
    with_free(&DOUBLE, len, work)
}

fn with_free<T: Copy + Default, R>(
    free: &'static LocalKey<Free<T>>,
    len: usize,
    work: impl FnOnce(&mut [T]) -> R,
) -> R {
    let mut buffer = free.with_borrow_mut(|free| {
        // The smallest that is large enough, else the largest, which then grows.
        let index = free.iter().rposition(|buffer| buffer.len() >= len).unwrap_or(0);
        if free.is_empty() { Vec::new() } else { free.remove(index) }
    });
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
    let result = work(&mut buffer[..len]);
    free.with_borrow_mut(|free| {
        let index = free.partition_point(|other| other.len() > buffer.len());
        free.insert(index, buffer);
    });
    result
}

#[cfg(test)]
mod tests {
    #[test]
    fn nested_buffers_are_distinct_and_come_back() {
        let first = super::with(100, |outer| {
            outer.fill(1.0);
            super::with(50, |inner| {
                inner.fill(2.0);
                assert_eq!(inner.len(), 50);
            });
            assert!(outer.iter().all(|value| *value == 1.0));
            outer.as_ptr() as usize
        });
        assert_eq!(super::with(90, |again| again.as_ptr() as usize), first);
    }
}
