//! How much memory all requests together may take: bodies, what is read out of them, and answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::ApiError;

/// What several requests of one client leave to the others: this part of the budget.
const RESERVE: u64 = 4;

/// The bytes that requests may hold at one time, over all connections.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
    /// What each client holds that holds anything.
    clients: Mutex<HashMap<u64, u64>>,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0), clients: Mutex::default() })
    }

    /// Bytes held now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// A part of the budget, empty at first, given back when it is dropped.
    pub fn open(self: &Arc<Self>) -> Held {
        Held { budget: Some(self.clone()), ..Held::default() }
    }

    /// The same for a request of that client, which cannot take what is left for others by sending many.
    pub fn open_for(self: &Arc<Self>, client: u64) -> Held {
        Held { budget: Some(self.clone()), client: Some(client), ..Held::default() }
    }

    /// A part for an answer that will take at most `bytes`, from its rows to the last byte that is sent. Taken before
    /// anything of it is made. An answer that could never fit, with what its request holds, is refused for good.
    pub fn answer(self: &Arc<Self>, bytes: u64, request: &Held) -> Result<Held, ApiError> {
        if bytes.saturating_add(request.bytes) > self.limit {
            return Err(ApiError::AnswerTooLarge { bytes, limit: self.limit });
        }
        let mut held = Held { budget: Some(self.clone()), client: request.client, beside: request.bytes, bytes: 0 };
        held.grow(bytes)?;
        Ok(held)
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        // Nothing panics while it is held.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes, and says how many are held then by all and by that client.
    fn take(&self, client: Option<u64>, bytes: u64) -> (u64, u64) {
        let own = client.map_or(0, |client| {
            let mut clients = self.clients();
            let own = clients.entry(client).or_default();
            *own += bytes;
            *own
        });
        (self.used.fetch_add(bytes, Ordering::Relaxed) + bytes, own)
    }

    fn give_back(&self, client: Option<u64>, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        let Some(client) = client else { return };
        let mut clients = self.clients();
        if let Some(own) = clients.get_mut(&client) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                clients.remove(&client);
            }
        }
    }
}

/// The part of the budget that one request holds.
#[derive(Debug, Default)]
pub struct Held {
    budget: Option<Arc<Budget>>,
    client: Option<u64>,
    /// What the same request holds elsewhere.
    beside: u64,
    bytes: u64,
}

impl Held {
    /// Takes `bytes` more, or answers that too much is being held already.
    pub fn grow(&mut self, bytes: u64) -> Result<(), ApiError> {
        let Some(budget) = &self.budget else { return Ok(()) };
        let (all, own) = budget.take(self.client, bytes);
        self.bytes += bytes;
        // One request alone may take everything: it will end. Many of one client may not.
        let share = (budget.limit - budget.limit / RESERVE).max(self.bytes + self.beside);
        match () {
            // Alone it is too much already: waiting would not help.
            () if self.bytes > budget.limit => Err(ApiError::BodyTooLarge { limit: budget.limit }),
            () if all > budget.limit || own > share => Err(ApiError::Busy { retry_after: 1 }),
            () => Ok(()),
        }
    }

    /// Holds exactly `bytes` from now on: what was taken for the worst case is given back.
    pub fn settle(&mut self, bytes: u64) -> Result<(), ApiError> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                if let Some(budget) = &self.budget {
                    budget.give_back(self.client, self.bytes - bytes);
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
            budget.give_back(self.client, self.bytes);
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
    fn many_requests_of_one_client_leave_room_for_others() {
        let budget = Budget::new(100);
        let mut first: Vec<Held> = (0..3).map(|_| budget.open_for(1)).collect();
        assert!(first.iter_mut().all(|held| held.grow(25).is_ok()));
        assert!(matches!(budget.open_for(1).grow(1), Err(ApiError::Busy { .. })));
        let mut second = budget.open_for(2);
        assert!(second.grow(25).is_ok());
        assert!(matches!(second.grow(1), Err(ApiError::Busy { .. })));
        drop((first, second));
        assert!(budget.used() == 0 && budget.clients().is_empty());
        // One request that is as large as allowed is no misuse, and neither is its answer.
        let mut alone = budget.open_for(1);
        assert!(alone.grow(90).is_ok());
        assert!(budget.answer(5, &alone).is_ok());
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
