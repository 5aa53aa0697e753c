//! Who may use the service, and how often.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, web};

use super::pass;
use crate::client::{self, Client};
use crate::error::ApiError;
use crate::state::State;

/// Asks for the key and counts the client's requests. It belongs to the routes that it guards, whatever spelling of
/// their path led there.
pub async fn access(
    state: web::Data<State>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    pass(check(&state, &request), request, next).await
}

fn check(state: &State, request: &ServiceRequest) -> Result<(), ApiError> {
    let address = client::by_address(request.request(), &state.config);
    let key = match state.guesses.wait(address) {
        Some(wait) if state.keys.required() => Err(ApiError::TooManyWrongKeys { retry_after: seconds(wait) }),
        _ => state.keys.check(request.headers()),
    };
    if key == Err(ApiError::WrongKey) {
        state.guesses.note(address);
    }
    let client = key?.unwrap_or(address);
    request.extensions_mut().insert(Client(client));
    let Some(limiter) = &state.limiter else { return Ok(()) };
    let counted = limiter.check(client);
    counted.map_err(|wait| ApiError::RateLimited { retry_after: seconds(wait) })
}

fn seconds(wait: std::time::Duration) -> u64 {
    wait.as_secs_f64().ceil().max(1.0) as u64
}
