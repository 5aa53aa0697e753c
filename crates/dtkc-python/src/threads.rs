//! Work in several threads while the interpreter is free, and Ctrl-C is still heard.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, unbounded};
use pyo3::prelude::*;

/// Items of one piece of work: enough for a network to be fast, few enough for a Ctrl-C to be heard soon.
const PIECE: usize = 64;
/// How often Python is asked whether somebody pressed Ctrl-C.
const LISTEN: Duration = Duration::from_millis(100);

/// Cuts `count` items into pieces; each worker takes the next one, and `take` gets the results, in any order, on this thread. Workers come back.
pub fn share<W: Send, R: Send>(
    py: Python<'_>,
    count: usize,
    workers: &mut [W],
    work: impl Fn(&mut W, Range<usize>) -> R + Sync,
    mut take: impl FnMut(Range<usize>, R) -> PyResult<()> + Send,
) -> PyResult<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, results) = unbounded();
    py.detach(|| {
        std::thread::scope(|scope| {
            for worker in workers {
                let (next, stop, work, done) = (&next, &stop, &work, done.clone());
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let start = next.fetch_add(PIECE, Ordering::Relaxed);
                        if start >= count {
                            break;
                        }
                        let piece = start..count.min(start + PIECE);
                        if done.send((piece.clone(), work(worker, piece))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(done);
            let ended = loop {
                let heard = match results.recv_timeout(LISTEN) {
                    Ok((piece, result)) => take(piece, result),
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals()),
                    Err(RecvTimeoutError::Disconnected) => break Ok(()),
                };
                if let Err(error) = heard {
                    break Err(error);
                }
            };
            stop.store(true, Ordering::Relaxed);
            ended
        })
    })?;
    py.check_signals()
}
