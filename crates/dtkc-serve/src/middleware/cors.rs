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
const HEADERS: &str = "authorization, content-type, x-api-key, x-request-id, inference-header-content-length";
const EXPOSED: &str =
    "x-request-id, x-queue-ms, x-inference-ms, retry-after, inference-header-content-length, server-timing";

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
    // A browser says so itself when a page of another site sends something. Reading the answer is already
    // forbidden without the headers above; this also keeps such a page from making the service work or change.
    if allowed.is_none() && !request.method().is_safe() && is_cross_site(request.headers()) {
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

fn is_cross_site(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|v| v == "cross-site")
}

fn mark(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}
