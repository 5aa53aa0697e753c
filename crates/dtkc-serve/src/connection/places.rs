//! How many connections there may be, for one client and in all.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Context;

use futures_util::task::AtomicWaker;

use crate::client::network;

/// Connections beyond the limit that are accepted for health checks. They ask at once and are answered at once; whoever
/// has been there longest makes room for the next one, so that silent connections cannot fill these places.
const SPARE: usize = 64;
/// Connections that were told to go and have not yet.
const LEAVING: usize = 64;

/// Counts the connections of a service.
#[derive(Debug)]
pub struct Places {
    per_client: usize,
    in_all: usize,
    /// Clients whose connections are those of many.
    proxies: Vec<IpAddr>,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    in_all: usize,
    by_client: HashMap<IpAddr, usize>,
    /// Those beyond the limit, the oldest first.
    spare: VecDeque<Arc<Spare>>,
}

/// A place beyond the limit.
#[derive(Debug, Default)]
struct Spare {
    is_over: AtomicBool,
    waiting: AtomicWaker,
}

/// Why a connection is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPlace {
    /// The client has as many as it may have.
    Client,
    /// There are too many in all.
    All,
}

impl NoPlace {
    /// The label in the metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::All => "all",
        }
    }
}

/// The place of one connection, given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    client: Option<IpAddr>,
    spare: Option<Arc<Spare>>,
}

impl Places {
    /// So many for one client, so many in all, and some more for health checks.
    pub fn new(per_client: usize, in_all: usize, proxies: &[IpAddr]) -> Arc<Self> {
        let proxies = proxies.iter().map(IpAddr::to_canonical).collect();
        Arc::new(Self { per_client, in_all, proxies, taken: Mutex::default() })
    }

    /// A place for one more connection of a client.
    pub fn enter(self: &Arc<Self>, client: IpAddr) -> Result<Place, NoPlace> {
        let client = Some(network(client)).filter(|_| !self.proxies.contains(&client.to_canonical()));
        let mut taken = self.taken();
        if taken.in_all >= self.in_all + SPARE + LEAVING {
            return Err(NoPlace::All);
        }
        if let Some(client) = client {
            let count = taken.by_client.entry(client).or_default();
            if *count >= self.per_client {
                return Err(NoPlace::Client);
            }
            *count += 1;
        }
        taken.in_all += 1;
        let spare = (taken.in_all > self.in_all).then(|| taken.make_spare());
        drop(taken);
        Ok(Place { places: self.clone(), client, spare })
    }

    /// Connections there are.
    pub fn taken_in_all(&self) -> usize {
        self.taken().in_all
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// One more place beyond the limit, if need be that of whoever has been there longest.
    fn make_spare(&mut self) -> Arc<Spare> {
        if self.spare.len() >= SPARE
            && let Some(oldest) = self.spare.pop_front()
        {
            oldest.is_over.store(true, Ordering::Release);
            oldest.waiting.wake();
        }
        let spare = Arc::new(Spare::default());
        self.spare.push_back(spare.clone());
        spare
    }
}

impl Place {
    /// Whether it is one of those beyond the limit.
    pub fn is_spare(&self) -> bool {
        self.spare.is_some()
    }

    /// Whether the connection must go to make room; if not yet, the task is woken when it must.
    pub fn is_over(&self, context: &Context<'_>) -> bool {
        let Some(spare) = &self.spare else { return false };
        spare.waiting.register(context.waker());
        spare.is_over.load(Ordering::Acquire)
    }

    #[cfg(test)]
    pub(super) fn for_tests() -> Self {
        Self { places: Places::new(1, 1, &[]), client: None, spare: None }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.in_all = taken.in_all.saturating_sub(1);
        if let Some(spare) = &self.spare {
            taken.spare.retain(|other| !Arc::ptr_eq(other, spare));
        }
        let Some(client) = self.client else { return };
        let left = taken.by_client.get_mut(&client).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            taken.by_client.remove(&client);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_client_has_its_share_and_gets_places_back() {
        let places = Places::new(2, 100, &[]);
        let first = places.enter(ip("192.0.2.1")).unwrap();
        let _second = places.enter(ip("::ffff:192.0.2.1")).unwrap();
        assert_eq!(places.enter(ip("192.0.2.1")).unwrap_err(), NoPlace::Client);
        let _other = places.enter(ip("192.0.2.2")).unwrap();
        drop(first);
        assert!(places.enter(ip("192.0.2.1")).is_ok());
        assert_eq!(places.taken_in_all(), 2);
    }

    #[test]
    fn the_many_addresses_of_one_line_are_one_client() {
        let places = Places::new(1, 100, &[]);
        let _first = places.enter(ip("2001:db8:1:2::1")).unwrap();
        assert_eq!(places.enter(ip("2001:db8:1:2:ffff::9")).unwrap_err(), NoPlace::Client);
        assert!(places.enter(ip("2001:db8:1:3::1")).is_ok());
    }

    #[test]
    fn proxies_speak_for_many() {
        let places = Places::new(1, 100, &[ip("127.0.0.1")]);
        let _held: Vec<Place> = (0..5).map(|_| places.enter(ip("127.0.0.1")).unwrap()).collect();
    }

    #[test]
    fn beyond_the_limit_there_is_room_for_health_checks_only() {
        let places = Places::new(1000, 3, &[]);
        let mut held: Vec<Place> = (0..3 + SPARE).map(|_| places.enter(ip("192.0.2.1")).unwrap()).collect();
        assert_eq!(held.iter().filter(|place| place.is_spare()).count(), SPARE);
        let is_over = |place: &Place| place.is_over(&Context::from_waker(std::task::Waker::noop()));
        assert!(!held.iter().any(is_over));
        held.push(places.enter(ip("192.0.2.9")).unwrap());
        let over: Vec<usize> = (0..held.len()).filter(|&n| is_over(&held[n])).collect();
        assert_eq!(over, [3], "the oldest of them makes room");
        held.extend((1..LEAVING).map(|_| places.enter(ip("192.0.2.9")).unwrap()));
        assert_eq!(places.enter(ip("192.0.2.9")).unwrap_err(), NoPlace::All);
        drop(held);
        assert!(places.taken().spare.is_empty());
        assert_eq!(places.taken_in_all(), 0);
        assert!(places.taken().by_client.is_empty());
    }
}
