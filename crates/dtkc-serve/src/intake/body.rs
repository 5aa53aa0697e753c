//! Request bodies: never more than allowed, never longer than allowed, counted against one budget.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use actix_web::web::Bytes;
use futures_util::{Stream, StreamExt};

use super::budget::Held;
use super::unpack::Unpack;
use crate::error::ApiError;

/// What an early refusal still reads, so that a client that is in the middle of sending sees the answer
/// instead of a reset connection, and can keep the connection.
const DRAIN_BYTES: u64 = 4 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// A request body as a stream that stops at the limits.
pub struct Body {
    content: Content,
    meter: Rc<RefCell<Meter>>,
}

enum Content {
    Plain(Payload),
    Packed(Unpack),
}

/// Counts what a body has brought so far. Shared, because a multipart parser owns the stream but can only
/// pass on its own kind of error.
pub struct Meter {
    limit: u64,
    read: u64,
    held: Held,
    problem: Option<ApiError>,
}

impl Meter {
    /// What stopped the body: one of our limits, or what the connection did.
    pub fn explain(&mut self, error: &PayloadError) -> ApiError {
        let reason = match (self.problem.take(), error) {
            (Some(problem), _) => return problem,
            (None, PayloadError::EncodingCorrupted) => "its compression is damaged",
            (None, PayloadError::Incomplete(_)) => "the client stopped sending",
            (None, _) => "the connection broke",
        };
        ApiError::BrokenBody(reason.into())
    }

    /// True where one of our limits stopped the body.
    pub fn is_stopped(&self) -> bool {
        self.problem.is_some()
    }

    /// Holds so many bytes more.
    pub fn hold(&mut self, bytes: u64) -> Result<(), ApiError> {
        self.held.grow(bytes)
    }

    /// The memory that the body holds; moves on with the images.
    pub fn take_held(&mut self) -> Held {
        std::mem::take(&mut self.held)
    }

    fn count(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.read += bytes as u64;
        if self.read > self.limit {
            return Err(ApiError::BodyTooLarge { limit: self.limit });
        }
        self.held.grow(bytes as u64)
    }
}

impl Body {
    /// Opens a body; one that announces too much is refused before a byte is read.
    pub fn open(headers: &HeaderMap, payload: Payload, limit: u64, held: Held) -> Result<Self, ApiError> {
        if announced(headers).is_some_and(|bytes| bytes > limit) {
            return Err(ApiError::BodyTooLarge { limit });
        }
        let encoding = headers.get(CONTENT_ENCODING).map_or("", |value| value.to_str().unwrap_or("?"));
        let content = match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Content::Plain(payload),
            "gzip" | "x-gzip" => Content::Packed(Unpack::gzip(payload, limit)),
            "deflate" => Content::Packed(Unpack::deflate(payload, limit)),
            other => return Err(ApiError::WrongEncoding(other.to_owned())),
        };
        let meter = Rc::new(RefCell::new(Meter { limit, read: 0, held, problem: None }));
        Ok(Self { content, meter })
    }

    /// The counter, which outlives the stream.
    pub fn meter(&self) -> Rc<RefCell<Meter>> {
        self.meter.clone()
    }

    /// The whole body in one piece.
    pub async fn collect(mut self, headers: &HeaderMap) -> Result<(Bytes, Held), ApiError> {
        let mut whole = Vec::new();
        let mut first: Option<Bytes> = None;
        while let Some(chunk) = self.next().await {
            let chunk = chunk.map_err(|error| self.explain(&error))?;
            match first.take() {
                // Most requests fit one chunk, which then needs no copy.
                None if whole.is_empty() => first = Some(chunk),
                None => whole.extend_from_slice(&chunk),
                Some(earlier) => {
                    let expected = announced(headers).unwrap_or(0).min(1 << 20) as usize;
                    whole.reserve(expected.max(earlier.len() + chunk.len()));
                    whole.extend_from_slice(&earlier);
                    whole.extend_from_slice(&chunk);
                }
            }
        }
        let held = self.meter.borrow_mut().take_held();
        // It grew in leaps; what is more than counted goes back.
        whole.shrink_to_fit();
        let body = first.unwrap_or_else(|| whole.into());
        if body.is_empty() { Err(ApiError::EmptyBody) } else { Ok((body, held)) }
    }

    fn explain(&self, error: &PayloadError) -> ApiError {
        self.meter.borrow_mut().explain(error)
    }
}

impl Stream for Body {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = match &mut self.content {
            Content::Plain(payload) => Pin::new(payload).poll_next(cx),
            Content::Packed(payload) => Pin::new(payload).poll_next(cx),
        };
        let chunk = match polled {
            Poll::Ready(Some(Ok(chunk))) => chunk,
            // The packed bytes alone are more than allowed.
            Poll::Ready(Some(Err(PayloadError::Overflow))) => {
                let mut meter = self.meter.borrow_mut();
                meter.problem = Some(ApiError::BodyTooLarge { limit: meter.limit });
                return Poll::Ready(Some(Err(PayloadError::Overflow)));
            }
            other => return other,
        };
        let counted = self.meter.borrow_mut().count(chunk.len());
        Poll::Ready(Some(match counted {
            Ok(()) => Ok(chunk),
            Err(problem) => {
                self.meter.borrow_mut().problem = Some(problem);
                Err(PayloadError::Overflow)
            }
        }))
    }
}

/// Reads and forgets a body that is about to be refused.
pub async fn drain(headers: &HeaderMap, mut payload: Payload) {
    if announced(headers).is_some_and(|bytes| bytes > DRAIN_BYTES) {
        return;
    }
    let reading = async {
        let mut read = 0;
        while let Some(Ok(chunk)) = payload.next().await {
            read += chunk.len() as u64;
            if read > DRAIN_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, reading).await;
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
