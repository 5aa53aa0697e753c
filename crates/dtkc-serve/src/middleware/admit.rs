//! What every request must fulfil, with or without a key. Health checks are not asked.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::{Error, web};

use super::connection_of;
use crate::error::ApiError;
use crate::state::State;

/// Refuses requests for names that are not ours, and those for which there is no room.
pub async fn admit(
    state: web::Data<State>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    if let Err(error) = check(&state, &request) {
        return Ok(request.error_response(error).map_into_right_body());
    }
    Ok(next.call(request).await?.map_into_left_body())
}

fn check(state: &State, request: &ServiceRequest) -> Result<(), ApiError> {
    state.hosts.check(request.headers(), request.uri())?;
    match connection_of(request) {
        Some(connection) if connection.is_spare() => Err(ApiError::Crowded),
        _ => Ok(()),
    }
}
