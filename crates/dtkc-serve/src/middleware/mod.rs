//! What happens around every request.

mod access;
mod admit;
mod cors;
mod observe;

use std::rc::Rc;

use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;

use crate::connection::Connection;
use crate::error::ApiError;

pub use access::access;
#[cfg(feature = "grpc")]
pub use access::identify;
pub use admit::admit;
pub use cors::cors;
#[cfg(feature = "grpc")]
pub use observe::client_id;
pub use observe::{fresh_id, observe};

/// The connection that a request came on.
fn connection_of(request: &ServiceRequest) -> Option<&Rc<Connection>> {
    request.request().conn_data::<Rc<Connection>>()
}

/// Hands a request on, or answers it with what is wrong. An answer, not an error: the layers around it still add their
/// headers.
async fn pass<B: MessageBody + 'static>(
    checked: Result<(), ApiError>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    match checked {
        Ok(()) => Ok(next.call(request).await?.map_into_left_body()),
        Err(error) => Ok(request.error_response(error).map_into_right_body()),
    }
}
