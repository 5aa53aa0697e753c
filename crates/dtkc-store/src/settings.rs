//! How long a store may take, from the environment.

use std::time::Duration;

use object_store::{BackoffConfig, RetryConfig};

/// Until a connection is made.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// For one request as a whole: a few MiB, there or back.
pub(crate) const REQUEST: Duration = Duration::from_secs(300);

/// Seconds without a byte after which a request is given up and made again.
pub(crate) fn silence() -> Duration {
    Duration::from_secs(number("DTKC_STORE_TIMEOUT").unwrap_or(30).clamp(1, 3600))
}

/// How often a request is made again at most.
fn retries() -> usize {
    number("DTKC_STORE_RETRIES").unwrap_or(8).min(100) as usize
}

/// Whether plain HTTP to other machines is allowed.
pub(crate) fn allow_http() -> bool {
    is_on("DTKC_STORE_ALLOW_HTTP")
}

/// Whether a variable says yes.
pub(crate) fn is_on(name: &str) -> bool {
    std::env::var(name)
        .is_ok_and(|text| ["1", "true", "yes", "on"].contains(&text.trim().to_ascii_lowercase().as_str()))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.trim().parse().ok()
}

/// What a store is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// Whether something is there: who mistypes an address should not wait long.
    Look,
    /// Bytes.
    Read,
    /// To keep bytes. It says nothing while it takes them.
    Write,
}

impl Purpose {
    pub(crate) fn retry(self) -> RetryConfig {
        let max_retries = if self == Self::Look { retries().min(3) } else { retries() };
        let backoff =
            BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: Duration::from_secs(8), base: 2.0 };
        RetryConfig { backoff, max_retries, retry_timeout: Duration::from_secs(150) }
    }

    /// Seconds without a byte, where a server is expected to speak.
    pub(crate) fn silence(self) -> Option<Duration> {
        (self != Self::Write).then(silence)
    }
}
