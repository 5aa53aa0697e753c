//! Who asks: a number that stands for a client, for shares and limits.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use actix_web::http::header::HeaderMap;
use actix_web::{HttpMessage, HttpRequest};

use crate::config::ServeConfig;

/// A number that stands for a client: its key, or its address where it needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client(pub u64);

/// Who sends a request, as the guard found out; everybody is the same where nobody asked.
pub fn of(request: &HttpRequest) -> u64 {
    request.extensions().get::<Client>().map_or(0, |client| client.0)
}

/// A client by its address, as a number.
pub fn by_address(peer: Option<IpAddr>, headers: &HeaderMap, config: &ServeConfig) -> u64 {
    static HASH: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    HASH.hash_one(peer.map(|peer| network(behind(peer, headers, &config.trusted_proxy))))
}

/// The client's own address. What `X-Forwarded-For` says is believed only where a trusted proxy says it: any client can
/// write such a header. Proxies append, so the last address that is no trusted proxy is the client's.
fn behind(peer: IpAddr, headers: &HeaderMap, proxies: &[IpAddr]) -> IpAddr {
    let is_proxy = |address: &IpAddr| proxies.iter().any(|proxy| proxy.to_canonical() == address.to_canonical());
    if !is_proxy(&peer) {
        return peer;
    }
    let values: Vec<&str> = headers.get_all("x-forwarded-for").filter_map(|value| value.to_str().ok()).collect();
    let mut hops = values.iter().rev().flat_map(|value| value.rsplit(',')).map(|hop| hop.trim().parse::<IpAddr>());
    // Whatever stands before something unreadable was not written by a trusted proxy either.
    hops.by_ref().map_while(Result::ok).find(|hop| !is_proxy(hop)).unwrap_or(peer)
}

/// What stands for a client's address: itself for IPv4; for IPv6 the network that one line has, because a client there
/// has as many addresses as it likes.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};
    use clap::Parser;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn seen(peer: &str, forwarded: &[&str], proxies: &[&str]) -> IpAddr {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(HeaderName::from_static("x-forwarded-for"), HeaderValue::from_str(value).unwrap());
        }
        let proxies: Vec<IpAddr> = proxies.iter().map(|proxy| ip(proxy)).collect();
        behind(ip(peer), &headers, &proxies)
    }

    #[test]
    fn a_client_is_an_address_whatever_its_port() {
        let config = ServeConfig::parse_from(["dtkc-serve"]);
        let peer = |peer: &str| Some(peer.parse::<std::net::SocketAddr>().unwrap().ip());
        let number = |text: &str| by_address(peer(text), &HeaderMap::new(), &config);
        assert_eq!(number("10.0.0.1:1000"), number("10.0.0.1:2000"));
        assert_ne!(number("10.0.0.1:1000"), number("10.0.0.2:1000"));
        assert_eq!(number("10.0.0.1:1000"), number("[::ffff:10.0.0.1]:2000"));
        assert_eq!(number("[2001:db8:1:2::3]:1000"), number("[2001:db8:1:2:ffff::4]:1000"));
        assert_ne!(number("[2001:db8:1:2::3]:1000"), number("[2001:db8:1:3::3]:1000"));
    }

    #[test]
    fn a_header_that_anybody_can_write_is_not_believed() {
        assert_eq!(seen("192.0.2.1", &["198.51.100.7"], &[]), ip("192.0.2.1"));
        assert_eq!(seen("192.0.2.1", &["198.51.100.7"], &["192.0.2.2"]), ip("192.0.2.1"));
    }

    #[test]
    fn a_trusted_proxy_says_who_asks() {
        let proxies = ["127.0.0.1", "10.0.0.1"];
        assert_eq!(seen("127.0.0.1", &["198.51.100.7"], &proxies), ip("198.51.100.7"));
        assert_eq!(seen("::ffff:127.0.0.1", &["198.51.100.7, 10.0.0.1"], &proxies), ip("198.51.100.7"));
        // The client wrote the first address itself; the proxy appended the true one.
        assert_eq!(seen("127.0.0.1", &["203.0.113.9", "198.51.100.7"], &proxies), ip("198.51.100.7"));
        assert_eq!(seen("127.0.0.1", &["203.0.113.9, junk, 10.0.0.1"], &proxies), ip("127.0.0.1"));
        assert_eq!(seen("127.0.0.1", &[], &proxies), ip("127.0.0.1"));
    }
}
