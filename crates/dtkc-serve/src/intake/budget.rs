//! How much memory all requests together may take: bodies, what is read out of them, and answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ApiError;

/// The bytes that requests may hold at one time, over all connections.
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

    /// A part for an answer that will take at most `bytes`, from its rows to the last byte that is sent. Taken before
    /// anything of it is made. An answer that could never fit, with what its request holds, is refused for good.
    pub fn answer(self: &Arc<Self>, bytes: u64, request: &Held) -> Result<Held, ApiError> {
        if bytes.saturating_add(request.bytes) > self.limit {
            return Err(ApiError::AnswerTooLarge { bytes, limit: self.limit });
        }
        let mut held = self.open();
        held.grow(bytes)?;
        Ok(held)
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
        match () {
            // Alone it is too much already: waiting would not help.
            () if self.bytes > budget.limit => Err(ApiError::BodyTooLarge { limit: budget.limit }),
            () if before + bytes > budget.limit => Err(ApiError::Busy { retry_after: 1 }),
            () => Ok(()),
        }
    }

    /// Holds exactly `bytes` from now on: what was taken for the worst case is given back.
    pub fn settle(&mut self, bytes: u64) -> Result<(), ApiError> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                if let Some(budget) = &self.budget {
                    budget.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
                }
                self.bytes = bytes;
                Ok(())
            }
        }
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
#[allow(clippy::unwrap_used)]
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

    #[test]
    fn an_answer_is_booked_before_it_is_made_and_settled_after() {
        let budget = Budget::new(100);
        let mut request = budget.open();
        let mut held = budget.answer(80, &request).unwrap();
        assert!(matches!(budget.answer(30, &request), Err(ApiError::Busy { .. })));
        assert!(matches!(budget.answer(101, &request), Err(ApiError::AnswerTooLarge { bytes: 101, limit: 100 })));
        request.grow(5).unwrap();
        assert!(matches!(budget.answer(96, &request), Err(ApiError::AnswerTooLarge { bytes: 96, limit: 100 })));
        assert!(matches!(request.grow(96), Err(ApiError::BodyTooLarge { limit: 100 })));
        drop(request);
        assert_eq!(budget.used(), 80);
        held.settle(10).unwrap();
        assert_eq!(budget.used(), 10);
        held.settle(30).unwrap();
        assert_eq!(budget.used(), 30);
        drop(held);
        assert_eq!(budget.used(), 0);
    }
}
