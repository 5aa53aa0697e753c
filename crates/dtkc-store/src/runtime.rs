//! The one place that knows of asynchronous work: a thread that does it, and others that wait for it.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::StoreError;

/// How often somebody who waits looks whether to stop.
const LOOK: Duration = Duration::from_millis(50);

static STOP: OnceLock<fn() -> bool> = OnceLock::new();

/// Who is asked whether to go on waiting.
pub(crate) fn set_stop(stop: fn() -> bool) {
    // The first one stays.
    let _ = STOP.set(stop);
}

fn stop() -> bool {
    STOP.get().is_some_and(|stop| stop())
}

/// The thread on which all requests are made. It lives as long as the process.
fn handle() -> Result<&'static Handle, StoreError> {
    static HANDLE: OnceLock<Result<Handle, String>> = OnceLock::new();
    let started = HANDLE.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let handle = runtime.handle().clone();
        let thread = std::thread::Builder::new().name("stores".into());
        thread.spawn(move || runtime.block_on(std::future::pending::<()>())).map_err(|e| e.to_string())?;
        Ok(handle)
    });
    started.as_ref().map_err(|error| StoreError::other(format!("no thread could be started for it ({error})")))
}

/// Work under way. It ends when nobody waits for it any more.
pub(crate) struct Underway<T> {
    answer: Receiver<T>,
    task: AbortHandle,
}

/// Begins some work.
pub(crate) fn begin<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<Underway<T>, StoreError> {
    let (send, answer) = sync_channel(1);
    let task = handle()?.spawn(async move {
        // Whoever waited may have gone.
        let _ = send.send(work.await);
    });
    Ok(Underway { answer, task: task.abort_handle() })
}

impl<T> Underway<T> {
    /// Waits for the end, or until somebody asks to stop.
    pub(crate) fn wait(self) -> Result<T, StoreError> {
        self.wait_unless(&stop)
    }

    fn wait_unless(self, stop: &dyn Fn() -> bool) -> Result<T, StoreError> {
        loop {
            match self.answer.recv_timeout(LOOK) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) if stop() => return Err(StoreError::stopped()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(StoreError::other("a request broke down; please report it"));
                }
            }
        }
    }
}

impl<T> Drop for Underway<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Does some work and waits for it.
pub(crate) fn run<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, StoreError> {
    begin(work)?.wait()
}

/// The same, whoever asks to stop: for what must be cleaned up.
pub(crate) fn run_to_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, StoreError> {
    begin(work)?.wait_unless(&|| false)
}
