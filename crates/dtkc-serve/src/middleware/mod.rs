//! What happens around every request.

mod access;
mod admit;
mod cors;
mod observe;

use std::rc::Rc;

use actix_web::dev::ServiceRequest;

use crate::connection::Connection;

pub use access::access;
pub use admit::admit;
pub use cors::cors;
pub use observe::{fresh_id, observe};

/// The connection that a request came on.
fn connection_of(request: &ServiceRequest) -> Option<&Rc<Connection>> {
    request.request().conn_data::<Rc<Connection>>()
}
