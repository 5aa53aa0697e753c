//! Who sends a request, as a number: what is shared fairly is shared between these.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use actix_web::HttpRequest;

/// A number that stands for the peer's address. Headers such as X-Forwarded-For are not believed: any client can write
/// them.
pub fn of(request: &HttpRequest) -> u64 {
    static HASH: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    HASH.hash_one(request.peer_addr().map(|address| address.ip()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use actix_web::test::TestRequest;

    use super::of;

    #[test]
    fn a_client_is_an_address_whatever_its_port() {
        let number = |peer: &str| of(&TestRequest::default().peer_addr(peer.parse().unwrap()).to_http_request());
        assert_eq!(number("10.0.0.1:1000"), number("10.0.0.1:2000"));
        assert_ne!(number("10.0.0.1:1000"), number("10.0.0.2:1000"));
    }
}
