//! The names under which this service is known.
//!
//! A page of another site can have its own name point to this machine and then counts as ours in its visitor's browser
//! (DNS rebinding). It cannot change the `Host` header, though: a name that nobody gave to this service is refused.

use std::net::IpAddr;

use actix_web::http::header::{HOST, HeaderMap};
use actix_web::http::uri::Uri;

use crate::config::ServeConfig;
use crate::error::ApiError;

/// The names of this service.
#[derive(Debug)]
pub struct Hosts {
    bound: IpAddr,
    names: Vec<String>,
    all: bool,
}

impl Hosts {
    /// Loopback names, the address it is bound to, this machine's name where others can reach it, and what was allowed.
    pub fn new(config: &ServeConfig) -> Self {
        let mut names: Vec<String> = config.allowed_host.iter().map(|name| name.to_ascii_lowercase()).collect();
        if !config.host.is_loopback() {
            let own = gethostname::gethostname().to_string_lossy().to_ascii_lowercase();
            names.extend([format!("{own}.local"), own]);
        }
        Self { bound: config.host, all: names.iter().any(|name| name == "*"), names }
    }

    /// Refuses a request for another name. One without any name comes from no browser.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
        if self.all {
            return Ok(());
        }
        let in_header = headers.get_all(HOST).map(|value| value.to_str().unwrap_or_default());
        let in_line = uri.authority().map(|authority| authority.as_str());
        match in_header.chain(in_line).find(|authority| !self.is_known(authority)) {
            None => Ok(()),
            Some(unknown) => Err(ApiError::WrongHost(format!("'{}'", unknown.chars().take(100).collect::<String>()))),
        }
    }

    fn is_known(&self, authority: &str) -> bool {
        let name = host_of(authority).to_ascii_lowercase();
        let name = name.trim_end_matches('.');
        match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => self.is_ours(address.to_canonical()) || self.names.iter().any(|known| known == name),
            Err(_) => {
                name == "localhost" || name.ends_with(".localhost") || self.names.iter().any(|known| known == name)
            }
        }
    }

    /// An address is no name that could be pointed elsewhere; behind a service for every network any may be this machine's.
    fn is_ours(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.bound.is_unspecified() || address == self.bound.to_canonical()
    }
}

/// The host of `host:port`.
pub fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !host.is_empty() && is_whole(host) => host,
        _ => authority,
    }
}

/// Not the front part of a bare IPv6 address.
fn is_whole(host: &str) -> bool {
    !host.contains(':') || host.ends_with(']')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use clap::Parser;

    use super::*;

    fn is_known(args: &[&str], host: &str) -> bool {
        let config = ServeConfig::parse_from(std::iter::once(&"dtkc-serve").chain(args));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        Hosts::new(&config).check(&headers, &Uri::from_static("/")).is_ok()
    }

    #[test]
    fn loopback_is_known_and_other_names_are_not() {
        for host in
            ["localhost", "LOCALHOST:8080", "a.localhost:1", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "localhost."]
        {
            assert!(is_known(&[], host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.0.2.1:8080",
            "",
            "localhost:80:80",
        ] {
            assert!(!is_known(&[], host), "{host}");
        }
    }

    #[test]
    fn the_bound_address_and_allowed_names_are_known() {
        assert!(is_known(&["--host", "192.0.2.1"], "192.0.2.1:8080"));
        assert!(!is_known(&["--host", "192.0.2.1"], "192.0.2.2:8080"));
        assert!(is_known(&["--host", "0.0.0.0"], "192.0.2.2:8080"));
        assert!(!is_known(&["--host", "0.0.0.0"], "evil.example"));
        assert!(is_known(&["--allowed-host", "Clusters.example.org"], "clusters.example.org:443"));
        assert!(!is_known(&["--allowed-host", "clusters.example.org"], "example.org"));
        assert!(is_known(&["--allowed-host", "*"], "evil.example"));
    }

    #[test]
    fn every_name_that_a_request_gives_is_looked_at() {
        let hosts = Hosts::new(&ServeConfig::parse_from(["dtkc-serve"]));
        let mut headers = HeaderMap::new();
        assert!(hosts.check(&headers, &Uri::from_static("/")).is_ok(), "no browser");
        headers.append(HOST, HeaderValue::from_static("localhost"));
        assert!(hosts.check(&headers, &Uri::from_static("http://evil.example/v1/models")).is_err());
        headers.append(HOST, HeaderValue::from_static("evil.example"));
        assert!(hosts.check(&headers, &Uri::from_static("/")).is_err());
    }
}
