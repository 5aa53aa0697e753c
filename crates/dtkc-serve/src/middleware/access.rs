//! Who may use the service, and how often.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::{Error, web};

use crate::error::ApiError;
use crate::state::State;

/// Asks for the key and counts the client's requests. Health, metrics, the page and the docs are open.
pub async fn access(
    state: web::Data<State>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    if is_guarded(request.path())
        && let Err(error) = check(&state, &request)
    {
        // An answer, not an error: the layers around it still add their headers.
        return Ok(request.error_response(error).map_into_right_body());
    }
    Ok(next.call(request).await?.map_into_left_body())
}

/// True for paths that ask for a key where keys are set.
pub fn is_guarded(path: &str) -> bool {
    (path.starts_with("/v1/") || path.starts_with("/v2")) && !path.starts_with("/v2/health/")
}

fn check(state: &State, request: &ServiceRequest) -> Result<(), ApiError> {
    let key = state.keys.check(request.headers())?;
    let Some(limiter) = &state.limiter else { return Ok(()) };
    let client = key.unwrap_or_else(|| address_number(request));
    limiter
        .check(client)
        .map_err(|wait| ApiError::RateLimited { retry_after: wait.as_secs_f64().ceil().max(1.0) as u64 })
}

/// A number that stands for the peer's address. Headers such as X-Forwarded-For are not believed: any client
/// can write them.
fn address_number(request: &ServiceRequest) -> u64 {
    static HASH: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    HASH.hash_one(request.peer_addr().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::is_guarded;

    #[test]
    fn health_metrics_and_the_page_are_open() {
        for path in ["/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs/", "/app.js", "/v2/health/ready"] {
            assert!(!is_guarded(path), "{path}");
        }
        for path in ["/v1/assign", "/v1/models/x/clusters/1", "/v2/models/x/infer", "/v2"] {
            assert!(is_guarded(path), "{path}");
        }
    }
}
