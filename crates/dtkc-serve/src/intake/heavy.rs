//! Work that takes long: never on a thread that answers connections, and never much of it at once.

use std::sync::{Arc, LazyLock};

use actix_web::web;
use tokio::sync::Semaphore;

use crate::error::ApiError;

/// As much at once as there are cores. More would bring no speed, only the memory of all of them at the same time; the
/// pool for blocking work itself would start hundreds.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get().max(2));
    Arc::new(Semaphore::new(cores))
});

/// Runs work that takes long once there is a place for it.
pub async fn heavy<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let place = PLACES.clone().acquire_owned().await.map_err(|_| ApiError::Internal)?;
    let running = web::block(move || {
        // Kept by the work, not by whoever waits for it: work goes on when its client has left.
        let _place = place;
        work()
    });
    running.await.map_err(|_| ApiError::Internal)
}

/// Runs work that only waits, for the disk or for a model to load, on a thread that may block.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    web::block(work).await.map_err(|_| ApiError::Internal)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[actix_web::test]
    async fn no_more_runs_at_once_than_there_are_places() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        let places = PLACES.available_permits();
        let work = || {
            let running = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
            std::thread::yield_now();
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            running
        };
        let most = futures_util::future::join_all((0..100).map(|_| heavy(work))).await;
        let most = most.into_iter().map(Result::unwrap).max().unwrap();
        assert!(most <= places, "{most} of {places}");
        assert_eq!(heavy(|| 7).await, Ok(7));
    }
}
