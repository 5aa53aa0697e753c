//! One call: who makes it, what is answered, and what is noted about it.

use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ::http::request::Parts;
use ::http::{HeaderMap as Trailers, HeaderValue as TrailerValue, Request, Response, StatusCode};
use actix_web::http::Uri;
use actix_web::http::header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use actix_web::web::{Bytes, Data};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};

use super::message::{self, Outgoing};
use super::methods::{Method, Order};
use super::status::{Refusal, timeout};
use crate::error::ApiError;
use crate::intake::Held;
use crate::middleware::{client_id, fresh_id, identify};
use crate::state::State;

/// The longest message of a method that takes no images, and of one that nobody is refused.
const SMALL: u64 = 64 << 10;
const SMALLEST: u64 = 256;

/// Who is at the other end of a connection.
#[derive(Debug)]
pub struct Caller {
    pub peer: Option<IpAddr>,
    /// Whether the connection is one beyond the limit, for health checks only.
    pub is_spare: bool,
}

/// A call whose head has come.
pub struct Call {
    state: Data<State>,
    caller: Rc<Caller>,
    head: Parts,
    headers: HeaderMap,
    body: Option<RecvStream>,
    respond: SendResponse<Bytes>,
}

impl Call {
    /// A call on the connection of `caller`.
    pub fn new(
        state: Data<State>,
        caller: Rc<Caller>,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
    ) -> Self {
        let (head, body) = request.into_parts();
        Self { state, caller, headers: headers(&head), head, body: Some(body), respond }
    }

    /// Answers it, unless the client goes before.
    pub async fn serve(mut self) {
        if let Some(status) = self.no_grpc() {
            let mut response = Response::new(());
            *response.status_mut() = status;
            let _ = self.respond.send_response(response, true);
            return;
        }
        let started = Instant::now();
        let id = client_id(&self.headers).unwrap_or_else(fresh_id);
        let method = Method::at(self.head.uri.path());
        let body = self.body.take();
        let outcome = tokio::select! {
            biased;
            outcome = handle(&self.state, &self.caller, method.map(|(method, _)| method), &self.headers, body) => outcome,
            _ = poll_fn(|context| self.respond.poll_reset(context)) => Err(ApiError::ClientGone.into()),
        };
        let path = method.map_or("other", |(_, path)| path);
        note(&self.state, path, &id, started.elapsed(), outcome.as_ref().err());
        // Where it cannot be sent, nobody is there to read it.
        let _ = match outcome {
            Ok(message) => self.send(message, &id).await,
            Err(refusal) => self.refuse(&refusal, &id),
        };
    }

    /// The answer to something that is no gRPC at all.
    fn no_grpc(&self) -> Option<StatusCode> {
        let kind = self.headers.get("content-type").map_or(&b""[..], |value| value.as_bytes());
        match () {
            () if self.head.method != ::http::Method::POST => Some(StatusCode::METHOD_NOT_ALLOWED),
            () if !kind.starts_with(b"application/grpc") => Some(StatusCode::UNSUPPORTED_MEDIA_TYPE),
            () => None,
        }
    }

    async fn send(&mut self, message: Outgoing, id: &str) -> Result<(), h2::Error> {
        let mut stream = self.respond.send_response(head(id), false)?;
        message.send(&mut stream, self.state.config.request_timeout).await?;
        let mut trailers = Trailers::new();
        trailers.insert("grpc-status", TrailerValue::from_static("0"));
        stream.send_trailers(trailers)
    }

    /// A refusal has no message: all of it is in the head.
    fn refuse(&mut self, refusal: &Refusal, id: &str) -> Result<(), h2::Error> {
        if *refusal == Refusal::Api(ApiError::ClientGone) {
            self.respond.send_reset(Reason::CANCEL);
            return Ok(());
        }
        let mut response = head(id);
        let headers = response.headers_mut();
        headers.insert("grpc-status", refusal.status().into());
        if let Ok(sentence) = TrailerValue::try_from(refusal.message()) {
            headers.insert("grpc-message", sentence);
        }
        if let Ok(code) = TrailerValue::from_str(refusal.code()) {
            headers.insert("x-error-code", code);
        }
        if let Some(seconds) = refusal.retry_after() {
            headers.insert("retry-after", seconds.into());
        }
        self.respond.send_response(response, true).map(drop)
    }
}

fn head(id: &str) -> Response<()> {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert("content-type", TrailerValue::from_static("application/grpc"));
    headers.insert("grpc-accept-encoding", TrailerValue::from_static("identity"));
    if let Ok(id) = TrailerValue::from_str(id) {
        headers.insert("x-request-id", id);
    }
    response
}

/// The same checks as over HTTP, in the same order, before a byte of the message is read.
async fn handle(
    state: &Data<State>,
    caller: &Caller,
    method: Option<Method>,
    headers: &HeaderMap,
    body: Option<RecvStream>,
) -> Result<Outgoing, Refusal> {
    // A method that does not exist is told only to those who may call the others.
    let is_open = method.is_some_and(Method::is_open);
    let client = if is_open { 0 } else { guard(state, caller, headers)? };
    let (method, body) = (method.ok_or(Refusal::NoMethod)?, body.ok_or(ApiError::Internal)?);
    let timeout = patience(state.config.request_timeout, headers);
    let deadline = Instant::now() + timeout;
    // Health checks are answered while everything is full.
    let (limit, mut held) = match method {
        _ if is_open => (SMALLEST, Held::default()),
        Method::ModelInfer => (state.config.max_body, state.budget.open_for(client)),
        _ => (SMALL.min(state.config.max_body), state.budget.open_for(client)),
    };
    let reading = message::read(body, limit, &mut held);
    let read = tokio::time::timeout_at(deadline.into(), reading).await;
    let message = read.map_err(|_| ApiError::SlowBody(timeout))??;
    Ok(Order { method, message, held, client, deadline, timeout }.run(state).await?)
}

fn guard(state: &State, caller: &Caller, headers: &HeaderMap) -> Result<u64, ApiError> {
    // No program sends these, and no page can speak this protocol; whatever does it is not asked further.
    if headers.contains_key(ORIGIN) || headers.contains_key("sec-fetch-site") {
        return Err(ApiError::CrossSite);
    }
    state.hosts.check(headers, &Uri::from_static("/"))?;
    if caller.is_spare {
        return Err(ApiError::Crowded);
    }
    identify(state, caller.peer, headers)
}

/// How long a call may take: as long as every request, or less where the client says so.
fn patience(longest: Duration, headers: &HeaderMap) -> Duration {
    let asked = headers.get("grpc-timeout").and_then(|value| timeout(value.to_str().ok()?));
    asked.map_or(longest, |asked| asked.min(longest))
}

/// The head as the guards know it. What they would not understand is left out.
fn headers(head: &Parts) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(head.headers.len() + 1);
    let mut add = |name: &[u8], value: &[u8]| {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    };
    if let Some(authority) = head.uri.authority() {
        add(HOST.as_str().as_bytes(), authority.as_str().as_bytes());
    }
    head.headers.iter().for_each(|(name, value)| add(name.as_str().as_bytes(), value.as_bytes()));
    headers
}

/// The same counters and the same line in the log as for HTTP.
fn note(state: &State, path: &str, id: &str, elapsed: Duration, refusal: Option<&Refusal>) {
    let status = refusal.map_or(200, Refusal::http_status);
    let code = refusal.map(Refusal::code);
    let ms = (elapsed.as_secs_f64() * 1e5).round() / 100.0;
    state.metrics.request(path, "gRPC", status, elapsed);
    if let Some(code) = code {
        state.metrics.error(code);
    }
    match status {
        500 => tracing::error!(id, method = "gRPC", path, status, ms, code, "request"),
        502.. => tracing::warn!(id, method = "gRPC", path, status, ms, code, "request"),
        _ if Method::at(path).is_some_and(|(method, _)| method.is_open()) => {
            tracing::debug!(id, method = "gRPC", path, status, ms, code, "request");
        }
        _ => tracing::info!(id, method = "gRPC", path, status, ms, code, "request"),
    }
}
