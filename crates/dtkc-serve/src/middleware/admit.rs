//! What every request must fulfil, with or without a key. Health checks are not asked.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::{Error, web};

use super::{connection_of, pass};
use crate::error::ApiError;
use crate::state::State;

/// Refuses requests for names that are not ours, and those for which there is no room.
pub async fn admit(
    state: web::Data<State>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    pass(check(&state, &request), request, next).await
}

fn check(state: &State, request: &ServiceRequest) -> Result<(), ApiError> {
    state.hosts.check(request.headers(), request.uri())?;
    match connection_of(request) {
        Some(connection) if connection.is_spare() => Err(ApiError::Crowded),
        _ => Ok(()),
    }
}
