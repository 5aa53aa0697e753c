//! A request id, a line in the log, counters, and the headers that every answer carries.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use actix_web::body::MessageBody;
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::Version;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, web};

use super::connection_of;
use crate::connection::{Exchange, Watched};
use crate::error::ApiError;
use crate::state::State;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The outermost layer.
pub async fn observe(
    state: web::Data<State>,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let started = Instant::now();
    let id = client_id(request.headers()).unwrap_or_else(fresh_id);
    let exchange = begin(&mut request);
    let version = request.version();
    let mut response = tokio::select! {
        biased;
        response = next.call(request) => response?,
        () = gone(exchange.as_ref(), version) => {
            state.metrics.error(ApiError::ClientGone.code());
            return Err(ApiError::ClientGone.into());
        }
    };
    if let Some(exchange) = &exchange {
        exchange.answer();
    }

    let elapsed = started.elapsed();
    let status = response.status().as_u16();
    let method = response.request().method().clone();
    let pattern = response.request().match_pattern();
    let endpoint = pattern.as_deref().unwrap_or("other");
    let code = response.response().error().and_then(|e| e.as_error::<ApiError>()).map(|e| e.code().to_owned());
    state.metrics.request(endpoint, known_method(method.as_str()), status, elapsed);
    if let Some(code) = &code {
        state.metrics.error(code);
    }
    log(&response, &id, status, elapsed.as_secs_f64() * 1e3, code.as_deref());
    finish_headers(response.headers_mut(), &id);
    Ok(response.map_body(|_, body| Watched::new(body, exchange)))
}

/// Returns once the client has gone.
async fn gone(exchange: Option<&Exchange>, version: Version) {
    match exchange {
        Some(exchange) => exchange.connection().gone(version == Version::HTTP_11).await,
        None => std::future::pending().await,
    }
}

/// Tells the connection that it is our turn now, and has the end of the body noted.
fn begin(request: &mut ServiceRequest) -> Option<Exchange> {
    let payload = request.take_payload();
    let exchange = connection_of(request).map(|c| Exchange::begin(c, !matches!(payload, Payload::None)));
    request.set_payload(match &exchange {
        Some(exchange) => exchange.watch(payload),
        None => payload,
    });
    exchange
}

/// Probes and scrapes come every few seconds; they are logged only where somebody looks for them.
fn log<B>(response: &ServiceResponse<B>, id: &str, status: u16, ms: f64, code: Option<&str>) {
    let request = response.request();
    let (method, path) = (request.method().as_str(), request.path());
    let ms = (ms * 100.0).round() / 100.0;
    let probe = ["/healthz", "/readyz", "/metrics"].contains(&path) || path.starts_with("/v2/health/");
    if status == 500 {
        tracing::error!(id, method, path, status, ms, code, "request");
    } else if status > 500 && !probe {
        tracing::warn!(id, method, path, status, ms, code, "request");
    } else if probe {
        tracing::debug!(id, method, path, status, ms, code, "request");
    } else {
        tracing::info!(id, method, path, status, ms, code, "request");
    }
}

fn finish_headers(headers: &mut HeaderMap, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, value);
    }
    let mut default = |name: &'static str, value: &'static str| {
        let name = HeaderName::from_static(name);
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    };
    default("x-content-type-options", "nosniff");
    default("cache-control", "no-store");
    default("referrer-policy", "no-referrer");
    // For answers that are no page: a browser that shows one must run nothing in it.
    default("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
}

/// A method a client made up must not become a label of its own.
fn known_method(method: &str) -> &str {
    match method {
        "GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "OPTIONS" | "PATCH" => method,
        _ => "other",
    }
}

/// The id the client sent, where it is short and harmless.
pub fn client_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(&REQUEST_ID)?.to_str().ok()?;
    let good = |b: u8| b.is_ascii_alphanumeric() || b"-_.:".contains(&b);
    (!id.is_empty() && id.len() <= 128 && id.bytes().all(good)).then(|| id.to_owned())
}

/// An id that does not repeat within a process and hardly between processes.
pub fn fresh_id() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    static START: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    format!("{:016x}", START.hash_one(COUNTER.fetch_add(1, Ordering::Relaxed)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_harmless_id_of_the_client_is_kept() {
        let sent = |id: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_bytes(id.as_bytes()).unwrap());
            client_id(&headers)
        };
        assert_eq!(sent("abc-1.2:3_x").as_deref(), Some("abc-1.2:3_x"));
        for id in ["", "with space", "<script>", "é", &"x".repeat(129)] {
            assert_eq!(sent(id), None, "{id}");
        }
    }

    #[test]
    fn fresh_ids_differ() {
        assert_ne!(fresh_id(), fresh_id());
    }
}
