//! How much memory all request bodies together may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ApiError;

/// The bytes that request bodies may hold at one time, over all connections.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0) })
    }

    /// Bytes held now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// A part of the budget, empty at first, given back when it is dropped.
    pub fn open(self: &Arc<Self>) -> Held {
        Held { budget: Some(self.clone()), bytes: 0 }
    }
}

/// The part of the budget that one request holds.
#[derive(Debug, Default)]
pub struct Held {
    budget: Option<Arc<Budget>>,
    bytes: u64,
}

impl Held {
    /// Takes `bytes` more, or answers that too much is being held already.
    pub fn grow(&mut self, bytes: u64) -> Result<(), ApiError> {
        let Some(budget) = &self.budget else { return Ok(()) };
        let before = budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if before + bytes > budget.limit { Err(ApiError::Busy { retry_after: 1 }) } else { Ok(()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = Budget::new(100);
        let mut first = budget.open();
        let mut second = budget.open();
        assert!(first.grow(60).is_ok());
        assert!(matches!(second.grow(60), Err(ApiError::Busy { .. })));
        drop(second);
        assert_eq!(budget.used(), 60);
        assert!(first.grow(40).is_ok());
        drop(first);
        assert_eq!(budget.used(), 0);
    }
}
