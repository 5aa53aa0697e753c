//! Counts and times of one model that can be read back, beside those for Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use utoipa::ToSchema;

/// How often, and how long in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Time {
    /// How often.
    pub count: u64,
    /// Nanoseconds in all.
    pub ns: u64,
}

/// Counts and times that only grow.
#[derive(Debug, Default)]
pub struct Totals {
    assigned: Sum,
    failed: Sum,
    queue: Sum,
    decoding: Sum,
    inference: Sum,
    last_ms: AtomicU64,
}

/// The totals at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TotalsNow {
    /// Images that were assigned; the time is that of their inference calls.
    pub assigned: Time,
    /// Images that could not be used.
    pub failed: Time,
    /// Requests and how long they waited.
    pub queue: Time,
    /// Batches and how long their decoding took.
    pub decoding: Time,
    /// Inference calls.
    pub inference: Time,
    /// When the last call ended, in milliseconds since 1970.
    pub last_ms: u64,
}

#[derive(Debug, Default)]
struct Sum {
    count: AtomicU64,
    ns: AtomicU64,
}

impl Sum {
    fn add(&self, count: u64, time: Duration) {
        self.count.fetch_add(count, Ordering::Relaxed);
        self.ns.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn now(&self) -> Time {
        Time { count: self.count.load(Ordering::Relaxed), ns: self.ns.load(Ordering::Relaxed) }
    }
}

impl Totals {
    /// One batch was decoded, and what was left of it was run.
    pub fn batch(&self, images: usize, decoding: Duration, inference: Duration) {
        self.decoding.add(1, decoding);
        if images == 0 {
            return;
        }
        self.inference.add(1, inference);
        self.assigned.add(images as u64, inference);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_ms.store(u64::try_from(since.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    /// One image could not be used.
    pub fn failed(&self) {
        self.failed.add(1, Duration::ZERO);
    }

    /// One request waited that long.
    pub fn queued(&self, waited: Duration) {
        self.queue.add(1, waited);
    }

    /// What there is now.
    pub fn now(&self) -> TotalsNow {
        TotalsNow {
            assigned: self.assigned.now(),
            failed: self.failed.now(),
            queue: self.queue.now(),
            decoding: self.decoding.now(),
            inference: self.inference.now(),
            last_ms: self.last_ms.load(Ordering::Relaxed),
        }
    }
}
