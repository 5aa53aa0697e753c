//! One request and its answer, as its connection sees them.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures_util::Stream;

use super::{Connection, Phase};

/// From a request's head to the last byte of its answer.
#[derive(Debug)]
pub struct Exchange {
    connection: Rc<Connection>,
    /// Set while some of the request's body is still to come.
    body_left: Rc<Cell<bool>>,
}

impl Exchange {
    /// A request with or without a body has come.
    pub fn begin(connection: &Rc<Connection>, has_body: bool) -> Self {
        connection.enter(Phase::Busy);
        Self { connection: connection.clone(), body_left: Rc::new(Cell::new(has_body)) }
    }

    /// The connection.
    pub fn connection(&self) -> &Rc<Connection> {
        &self.connection
    }

    /// The same body, with its end noted.
    pub fn watch(&self, payload: Payload) -> Payload {
        if matches!(payload, Payload::None) {
            return payload;
        }
        let watched = WatchedPayload { payload, left: self.body_left.clone() };
        Payload::Stream { payload: Box::pin(watched) }
    }

    /// The answer is on its way.
    pub fn answer(&self) {
        self.connection.enter(Phase::Sending);
    }

    #[cfg(test)]
    pub(super) fn body_arrived(&self) {
        self.body_left.set(false);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.connection.enter(Phase::Idle(self.body_left.get()));
    }
}

struct WatchedPayload {
    payload: Payload,
    left: Rc<Cell<bool>>,
}

impl Stream for WatchedPayload {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.payload).poll_next(context);
        if matches!(next, Poll::Ready(None)) {
            self.left.set(false);
        }
        next
    }
}

/// An answer's body that ends the exchange when it has been handed over, or is given up.
#[derive(Debug)]
pub struct Watched<B> {
    body: Pin<Box<B>>,
    _exchange: Option<Exchange>,
}

impl<B> Watched<B> {
    /// The body of the answer to an exchange; `None` where there is no connection, as in tests.
    pub fn new(body: B, exchange: Option<Exchange>) -> Self {
        Self { body: Box::pin(body), _exchange: exchange }
    }
}

impl<B: MessageBody> MessageBody for Watched<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, B::Error>>> {
        self.body.as_mut().poll_next(context)
    }
}
