//! Connections: how many there may be, and how long each may take.
//!
//! The HTTP library limits the first head of a connection and the idle time after a complete request. It has no limit
//! for a body that nobody reads any more, for the head of a second request, or for a client that does not read its
//! answer. So the rule is kept here, where every byte passes ([`Line`]), and it is one for all kinds of requests:
//! whoever's turn it is must act within a time that is known beforehand. How long a body may take to arrive is the
//! handlers' part: they answer 408.

mod exchange;
mod line;
mod places;
mod stand_in;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use socket2::Socket;
use tokio::sync::Notify;

pub use exchange::{Exchange, Watched};
pub use line::{Line, Stream};
pub use places::{Place, Places};

/// How long a client may take, whatever it does.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// From the connection to its first complete head.
    pub head: Duration,
    /// From an answer to the next complete head.
    pub idle: Duration,
    /// From an answer to the end of a body that nobody reads any more.
    pub close: Duration,
    /// Without taking a byte of its answer.
    pub stall: Duration,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client's, for the first time.
    New,
    /// Ours: a request is being handled.
    Busy,
    /// The client's: it should take its answer.
    Sending,
    /// The client's: it may ask again. `true` where the body of its last request has not arrived whole.
    Idle(bool),
}

/// One connection. It lives on one thread, with its [`Line`] and its requests.
#[derive(Debug)]
pub struct Connection {
    patience: Patience,
    phase: Cell<Phase>,
    since: Cell<Instant>,
    /// The client has sent its last byte.
    finished: Cell<bool>,
    half_closed: Notify,
    /// The socket once more, from then on.
    probe: RefCell<Option<Rc<Socket>>>,
    /// Who waits for the client, with the deadline of an earlier phase.
    waiting: RefCell<Option<Waker>>,
    place: Place,
}

/// Informal answer that every client must be able to pass over.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// How often a half-closed connection is looked at.
const LOOK: Duration = Duration::from_millis(50);

impl Connection {
    /// A connection that was just accepted.
    pub fn new(patience: Patience, place: Place) -> Rc<Self> {
        let (phase, since) = (Cell::new(Phase::New), Cell::new(Instant::now()));
        let (finished, half_closed) = (Cell::new(false), Notify::new());
        let (probe, waiting) = (RefCell::default(), RefCell::default());
        Rc::new(Self { patience, phase, since, finished, half_closed, probe, waiting, place })
    }

    /// Whether it is one of those beyond the limit, which are kept for health checks.
    pub fn is_spare(&self) -> bool {
        self.place.is_spare()
    }

    /// When the client must have acted; `None` while it is our turn.
    fn deadline(&self) -> Option<Instant> {
        let Patience { head, idle, close, stall } = self.patience;
        let time = match self.phase.get() {
            Phase::Busy => return None,
            Phase::New if self.is_spare() => close,
            Phase::New => head,
            Phase::Sending => stall,
            Phase::Idle(true) => close,
            Phase::Idle(false) if self.is_spare() => close,
            Phase::Idle(false) => idle,
        };
        Some(self.since.get() + time)
    }

    /// Whether it must go to make room for others.
    fn is_over(&self, context: &Context<'_>) -> bool {
        self.place.is_over(context)
    }

    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(Instant::now());
        // Nothing else would look at the clock before the old deadline, where the client says nothing more.
        if let (Phase::Idle(true), Some(waiting)) = (phase, self.waiting.take()) {
            waiting.wake();
        }
    }

    /// Notes who is to be woken when the deadline changes.
    fn wake_at_change(&self, waker: &Waker) {
        self.waiting.replace(Some(waker.clone()));
    }

    /// The client took some of its answer.
    fn took_bytes(&self) {
        if self.phase.get() == Phase::Sending {
            self.since.set(Instant::now());
        }
    }

    /// The client has closed its side of the socket; there is none to look at where it is encrypted.
    fn finish(&self, socket: Option<Socket>) {
        self.finished.set(true);
        self.probe.replace(socket.map(Rc::new));
        self.half_closed.notify_waiters();
    }

    /// Whether whatever is written now is an answer of the HTTP library itself, to something that was no request.
    fn is_unasked(&self) -> bool {
        matches!(self.phase.get(), Phase::New | Phase::Idle(_))
    }

    /// Returns once the client has gone, so that nobody works for it any more. Only while a request is being handled and
    /// nothing of its answer was written.
    ///
    /// A client that has gone and one that has only closed its own side and waits for its answer look the same, until
    /// something is written: the system of one that has gone refuses it.
    pub async fn gone(&self, may_write: bool) {
        while !self.finished.get() {
            self.half_closed.notified().await;
        }
        // It stays for the next request: a client may send several before it closes its side.
        let Some(probe) = self.probe.borrow().clone() else { return };
        if !may_write {
            return std::future::pending().await;
        }
        let mut refused = probe.send(CONTINUE).is_err();
        while !refused {
            tokio::time::sleep(LOOK).await;
            refused = !matches!(probe.take_error(), Ok(None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Rc<Connection> {
        let seconds = Duration::from_secs;
        let patience = Patience { head: seconds(10), idle: seconds(75), close: seconds(3), stall: seconds(30) };
        Connection::new(patience, Place::for_tests())
    }

    fn left(connection: &Connection) -> Option<u64> {
        let left = connection.deadline()?.saturating_duration_since(Instant::now());
        Some(left.as_secs_f64().ceil() as u64)
    }

    #[test]
    fn whoevers_turn_it_is_must_act_in_time() {
        let connection = connection();
        assert_eq!(left(&connection), Some(10));
        let exchange = Exchange::begin(&connection, false);
        assert_eq!(left(&connection), None, "our turn");
        exchange.answer();
        assert_eq!(left(&connection), Some(30));
        drop(exchange);
        assert_eq!(left(&connection), Some(75));
    }

    #[test]
    fn a_body_that_nobody_reads_has_little_time() {
        let connection = connection();
        drop(Exchange::begin(&connection, true));
        assert_eq!(left(&connection), Some(3));
        let exchange = Exchange::begin(&connection, true);
        exchange.body_arrived();
        drop(exchange);
        assert_eq!(left(&connection), Some(75));
    }
}
