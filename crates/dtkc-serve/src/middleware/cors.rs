//! Which pages of other sites may use the service from a browser.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse, web};

use crate::error::ApiError;
use crate::state::State;

const METHODS: &str = "GET, POST, PUT, OPTIONS";
const HEADERS: &str = "authorization, content-type, if-match, x-api-key, x-request-id, inference-header-content-length";
const EXPOSED: &str = "x-request-id, x-model-fingerprint, x-queue-ms, x-inference-ms, retry-after, inference-header-content-length, server-timing";

/// Answers preflights, marks answers for allowed origins, and refuses what a foreign page tries to change.
pub async fn cors(
    state: web::Data<State>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let allowed = origin.as_ref().and_then(|origin| allow(&state.config.cors, origin));
    if request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        let mut response = HttpResponse::NoContent().finish();
        if let Some(origin) = allowed {
            mark(response.headers_mut(), origin);
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        }
        return Ok(request.into_response(response).map_into_right_body());
    }
    // Reading the answer is already forbidden to other pages without the headers above; this also keeps them from making
    // the service work or change.
    if allowed.is_none() && !request.method().is_safe() && is_foreign(request.headers()) {
        return Ok(request.error_response(ApiError::CrossSite).map_into_right_body());
    }
    let mut response = next.call(request).await?;
    if let Some(origin) = allowed {
        mark(response.headers_mut(), origin);
    }
    Ok(response.map_into_left_body())
}

/// The value for the answer where the origin is allowed.
fn allow(allowed: &[String], origin: &HeaderValue) -> Option<HeaderValue> {
    if allowed.iter().any(|a| a == "*") {
        return Some(HeaderValue::from_static("*"));
    }
    let text = origin.to_str().ok()?;
    allowed.iter().any(|a| a.eq_ignore_ascii_case(text)).then(|| origin.clone())
}

/// Whether a browser sends this for a page that is not ours. Programs send neither header.
fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("null"));
    if let Some(origin) = text(header::ORIGIN) {
        return !text(header::HOST).is_some_and(|host| is_same(origin, host));
    }
    // Older browsers leave the origin out in places; then this says the same.
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    site.is_some_and(|site| site != b"same-origin" && site != b"none")
}

/// Whether an origin, as `http://host:port`, is the host that was asked. A proxy may have taken the encryption off, so
/// only the port that belongs to the origin's own scheme may be missing.
fn is_same(origin: &str, host: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    let plain = |authority: &str| authority.strip_suffix(port).unwrap_or(authority).to_ascii_lowercase();
    plain(authority) == plain(host)
}

fn mark(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_compared_with_the_host() {
        for (origin, host) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://Localhost", "localhost:80"),
            ("https://a.example", "a.example"),
            ("https://a.example:443", "a.example"),
            ("http://[::1]:9", "[::1]:9"),
        ] {
            assert!(is_same(origin, host), "{origin} {host}");
        }
        for (origin, host) in [
            ("null", "127.0.0.1:8080"),
            ("http://127.0.0.1:8081", "127.0.0.1:8080"),
            ("http://127.0.0.1:8080.evil.example", "127.0.0.1:8080"),
            ("http://evil.example", "a.example"),
            ("file://a.example", "a.example"),
            ("http://a.example:443", "a.example"),
            ("", ""),
        ] {
            assert!(!is_same(origin, host), "{origin} {host}");
        }
    }
}
