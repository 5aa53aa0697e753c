//! Work shared between threads with a fixed split, so that results do not depend on timing or on their number.

use std::sync::{Mutex, PoisonError};

use crate::threads::threads;

/// Parts that a batch is cut into at most. Sums over the batch are taken per part and then over the parts, whatever
/// the number of threads; 24 divides evenly among 1, 2, 3, 4, 6, 8, 12 and 24 of them.
const PARTS: usize = 24;

/// Images per part of a batch of `n`.
pub(crate) fn part_len(n: usize) -> usize {
    n.div_ceil(PARTS).max(1)
}

/// Runs `work` on every item, in any order, on [`threads`] threads.
///
/// The items must not depend on the number of threads, then neither do results.
pub fn for_each<T: Send>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let threads = threads();
    if threads <= 1 {
        return items.for_each(work);
    }
    let queue = Mutex::new(items);
    let worker = || {
        loop {
            // Taking an item cannot leave the iterator half-advanced, so a panic elsewhere does not matter here.
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Some(item) => work(item),
                None => return,
            }
        }
    };
    rayon::in_place_scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|_| worker());
        }
        worker();
    });
}

/// Adds all parts of `length` values to the first one, in order.
pub(crate) fn sum_parts(sums: &mut [f32], length: usize) -> &[f32] {
    let (total, others) = sums.split_at_mut(length);
    let others = &*others;
    let piece = length.div_ceil(8).max(1);
    for_each(total.chunks_mut(piece).enumerate(), |(index, total)| {
        for other in others.chunks_exact(length) {
            for (total, value) in total.iter_mut().zip(&other[index * piece..]) {
                *total += value;
            }
        }
    });
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once() {
        let mut counts = vec![0u32; 1000];
        for_each(counts.iter_mut().enumerate(), |(i, count)| *count += i as u32 + 1);
        assert!(counts.iter().enumerate().all(|(i, count)| *count == i as u32 + 1));
    }

    #[test]
    fn parts_divide_a_batch() {
        assert_eq!(part_len(0), 1);
        assert_eq!(part_len(1), 1);
        assert_eq!(part_len(120), 5);
        assert_eq!(part_len(121), 6);
    }
}
