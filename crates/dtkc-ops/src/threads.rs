//! How many threads the operations use.

use std::sync::atomic::{AtomicUsize, Ordering};

/// 0 means: as many as rayon's pool has.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Limits the operations of this crate to `n` threads (0: all cores).
///
/// burn's own operations run in rayon's global pool, whose size is fixed at its first use; call this before any
/// tensor work to limit them too. Results do not depend on the number of threads.
pub fn set_threads(n: usize) {
    THREADS.store(n, Ordering::Relaxed);
    // An error only says that the pool exists already, which the limit above takes into account.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(n).build_global();
}

/// Number of threads that the operations of this crate use.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => rayon::current_num_threads(),
        n => n,
    }
}
