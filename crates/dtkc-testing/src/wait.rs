//! Waiting for what another thread or process does.

use std::time::{Duration, Instant};

/// Whoever waits so long has waited in vain, on any machine.
pub const LONG: Duration = Duration::from_secs(300);

/// Waits until `ready` gives something. How fast the machine is decides how long that takes, never the result.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + LONG;
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(Instant::now() < until, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until something is true.
#[track_caller]
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    wait_for(what, || is_true().then_some(()));
}
