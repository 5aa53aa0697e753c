//! Who may use the service, and how often.

use std::net::IpAddr;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::HeaderMap;
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
    let peer = request.peer_addr().map(|peer| peer.ip());
    let client = identify(state, peer, request.headers())?;
    request.extensions_mut().insert(Client(client));
    Ok(())
}

/// Who asks, by its key or its address; refuses whoever has no valid key or asks too often.
pub fn identify(state: &State, peer: Option<IpAddr>, headers: &HeaderMap) -> Result<u64, ApiError> {
    let address = client::by_address(peer, headers, &state.config);
    let key = match state.guesses.wait(address) {
        Some(wait) if state.keys.required() => Err(ApiError::TooManyWrongKeys { retry_after: seconds(wait) }),
        _ => state.keys.check(headers),
    };
    if key == Err(ApiError::WrongKey) {
        state.guesses.note(address);
    }
    let client = key?.unwrap_or(address);
    let counted = state.limiter.as_ref().map_or(Ok(()), |limiter| limiter.check(client));
    counted.map(|()| client).map_err(|wait| ApiError::RateLimited { retry_after: seconds(wait) })
}

fn seconds(wait: std::time::Duration) -> u64 {
    wait.as_secs_f64().ceil().max(1.0) as u64
}
