//! What happens around every request.

mod access;
mod cors;
mod observe;

pub use access::{access, is_guarded};
pub use cors::cors;
pub use observe::observe;
