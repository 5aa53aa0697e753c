//! Who sends a request, as a number: what is shared fairly is shared between these.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use actix_web::HttpRequest;

/// A number that stands for the peer's address. Headers such as X-Forwarded-For are not believed: any client can write
/// them.
pub fn of(request: &HttpRequest) -> u64 {
    static HASH: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    HASH.hash_one(request.peer_addr().map(|address| network(address.ip())))
}

/// What one client can hardly have many of: an address of version 4, or the network of one of version 6, in which it can
/// take a new address for every connection.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
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
        assert_eq!(number("10.0.0.1:1000"), number("[::ffff:10.0.0.1]:2000"));
        assert_eq!(number("[2001:db8:1:2::3]:1000"), number("[2001:db8:1:2:ffff::4]:1000"));
        assert_ne!(number("[2001:db8:1:2::3]:1000"), number("[2001:db8:1:3::3]:1000"));
    }
}
