//! How often one client may ask.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

/// Requests per time, as `50`, `50/s`, `600/m` or `1000/h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    count: NonZeroU32,
    per: Duration,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is not a rate; write for example 50/s, 600/m or 1000/h");
        let (count, unit) = text.split_once('/').unwrap_or((text, "s"));
        let per = match unit.trim() {
            "s" | "sec" | "second" => 1,
            "m" | "min" | "minute" => 60,
            "h" | "hour" => 3600,
            _ => return Err(bad()),
        };
        Ok(Self { count: count.trim().parse().map_err(|_| bad())?, per: Duration::from_secs(per) })
    }
}

/// Counts requests per client. A client's entry is forgotten once it could ask its whole share again.
pub struct Limiter {
    limiter: RateLimiter<u64, DashMapStateStore<u64>, DefaultClock>,
    clock: DefaultClock,
}

impl Limiter {
    /// A limiter where each client may send `rate.count` requests at once and then at that rate.
    pub fn new(rate: Rate) -> Self {
        let period = rate.per / rate.count.get();
        let quota = Quota::with_period(period.max(Duration::from_nanos(1)))
            .unwrap_or_else(|| Quota::per_second(rate.count))
            .allow_burst(rate.count);
        let clock = DefaultClock::default();
        Self { limiter: RateLimiter::dashmap_with_clock(quota, clock.clone()), clock }
    }

    /// Counts one request of a client; `Err` says how long it should wait.
    pub fn check(&self, client: u64) -> Result<(), Duration> {
        self.limiter.check_key(&client).map_err(|refused| refused.wait_time_from(self.clock.now()))
    }

    /// Forgets clients that have been quiet, so that the table stays small.
    pub fn forget_quiet_clients(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}

/// Counts wrong keys per address, so that keys cannot be guessed at the speed of the network. An address that sent too
/// many is not even listened to for a while.
pub struct Guesses {
    limiter: Limiter,
    until: Mutex<HashMap<u64, Instant>>,
}

impl Guesses {
    /// Nobody has guessed yet.
    pub fn new(rate: Rate) -> Self {
        Self { limiter: Limiter::new(rate), until: Mutex::default() }
    }

    /// How long an address must still wait; `None` where it is listened to.
    pub fn wait(&self, address: u64) -> Option<Duration> {
        self.until().get(&address).and_then(|until| until.checked_duration_since(Instant::now()))
    }

    /// An address sent a wrong key.
    pub fn note(&self, address: u64) {
        if let Err(wait) = self.limiter.check(address) {
            self.until().insert(address, Instant::now() + wait);
        }
    }

    /// Forgets addresses that need not wait any more.
    pub fn forget_quiet_clients(&self) {
        self.limiter.forget_quiet_clients();
        let now = Instant::now();
        self.until().retain(|_, until| *until > now);
    }

    fn until(&self) -> MutexGuard<'_, HashMap<u64, Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let rate = |text: &str| text.parse::<Rate>().map(|r| (r.count.get(), r.per.as_secs()));
        assert_eq!(rate("50"), Ok((50, 1)));
        assert_eq!(rate("600/m"), Ok((600, 60)));
        assert_eq!(rate(" 7 / h"), Ok((7, 3600)));
        for text in ["", "0", "-1", "5/day", "x/s", "1.5"] {
            assert!(rate(text).is_err_and(|e| e.contains("50/s")), "{text}");
        }
    }

    #[test]
    fn each_client_has_its_own_share() {
        let limiter = Limiter::new("2/h".parse().unwrap());
        assert!(limiter.check(1).is_ok());
        assert!(limiter.check(1).is_ok());
        let wait = limiter.check(1).unwrap_err();
        assert!(!wait.is_zero() && wait <= Duration::from_secs(1800), "{wait:?}");
        assert!(limiter.check(2).is_ok());
    }

    #[test]
    fn guesses_are_slowed_down_per_address() {
        let guesses = Guesses::new("2/h".parse().unwrap());
        for _ in 0..2 {
            guesses.note(1);
            assert_eq!(guesses.wait(1), None);
        }
        guesses.note(1);
        assert!(guesses.wait(1).unwrap() > Duration::from_secs(60));
        assert_eq!(guesses.wait(2), None);
        guesses.forget_quiet_clients();
        assert!(guesses.wait(1).is_some());
    }
}
