//! Answers that leave in pieces, so that a client that is slow to read costs no more memory than it may.
//!
//! The HTTP library copies a body into the connection's buffer as fast as the body gives it. A large answer given
//! whole would be held there a second time, uncounted, until the client has read it. In pieces, what waits stays
//! here and counts against the same budget as uploads.

use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;

use crate::error::ApiError;
use crate::intake::Held;

/// About what a connection buffers at a time.
const PIECE: usize = 32 << 10;
/// A client that reads more slowly than this many bytes a second, after some time of grace, is cut off. One that
/// reads nothing at all never gets here: the system cuts it off, see `server`.
const SLOWEST: f64 = 8192.0;
const GRACE: Duration = Duration::from_secs(30);

/// How long a client may take at most to read so many bytes.
#[cfg(feature = "grpc")]
pub fn longest(bytes: usize) -> Duration {
    GRACE + Duration::from_secs_f64(bytes as f64 / SLOWEST)
}

/// A body that is handed over piece by piece.
pub struct Pieces {
    rest: Bytes,
    sent: usize,
    started: Instant,
    /// Given back once the client has taken all of it, or has gone.
    _held: Held,
}

impl Pieces {
    /// A body of `bytes` counted by `held`, which gives back what it held beyond that; or the answer that too much is
    /// being held already.
    pub fn new(bytes: impl Into<Bytes>, mut held: Held) -> Result<Self, ApiError> {
        let rest = bytes.into();
        held.settle(rest.len() as u64)?;
        Ok(Self { rest, sent: 0, started: Instant::now(), _held: held })
    }

    /// A body that is part of the program: it takes no memory while it waits.
    pub fn of_program(bytes: impl Into<Bytes>) -> Self {
        Self { rest: bytes.into(), sent: 0, started: Instant::now(), _held: Held::default() }
    }

    fn is_too_slow(&self) -> bool {
        self.started.elapsed() > GRACE + Duration::from_secs_f64(self.sent as f64 / SLOWEST)
    }
}

impl MessageBody for Pieces {
    type Error = Error;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.rest.len() as u64)
    }

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if self.is_too_slow() {
            return Poll::Ready(Some(Err(ErrorKind::TimedOut.into())));
        }
        let next = self.rest.len().min(PIECE);
        self.sent += next;
        Poll::Ready(Some(Ok(self.rest.split_to(next))))
    }

    fn try_into_bytes(self) -> Result<Bytes, Self> {
        if self.rest.len() <= PIECE { Ok(self.rest) } else { Err(self) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::intake::Budget;

    fn next(body: &mut Pieces) -> Option<Bytes> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(body).poll_next(&mut context) {
            Poll::Ready(piece) => piece.map(Result::unwrap),
            Poll::Pending => panic!("a piece is always there"),
        }
    }

    #[test]
    fn the_pieces_are_the_whole_and_the_budget_gets_it_back() {
        let budget = Budget::new(1 << 20);
        let whole: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        let mut body = Pieces::new(whole.clone(), budget.open()).unwrap();
        assert_eq!((body.size(), budget.used()), (BodySize::Sized(100_000), 100_000));
        let mut read = Vec::new();
        while let Some(piece) = next(&mut body) {
            assert!(piece.len() <= PIECE);
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, whole);
        drop(body);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_client_that_reads_a_byte_a_second_is_cut_off() {
        let mut body = Pieces::of_program(vec![0; 4 * PIECE]);
        assert!(next(&mut body).is_some());
        body.started = Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
        assert!(body.is_too_slow());
        // The same time for a thousand times as much is not slow.
        body.sent *= 1000;
        assert!(!body.is_too_slow());
    }

    #[test]
    fn an_answer_beyond_the_budget_is_refused() {
        let budget = Budget::new(1000);
        let mut others = budget.open();
        others.grow(500).unwrap();
        assert!(matches!(Pieces::new(vec![0; 501], budget.open()), Err(ApiError::Busy { .. })));
        drop(others);
        assert_eq!(budget.used(), 0);
    }
}
