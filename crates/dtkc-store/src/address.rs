//! Addresses: `s3://bucket/name`, `gs://bucket/name`, `az://container/name`, `https://host/name`.

use object_store::path::Path;
use url::Url;

use crate::StoreError;

/// Where a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    S3,
    Google,
    Azure,
    Web,
}

/// An address that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) scheme: Scheme,
    /// The bucket or container; the whole address of a file on a web server.
    pub(crate) bucket: String,
    /// The name in it, byte for byte as the store knows it; empty for a file on a web server.
    pub(crate) key: Path,
    /// Whether it was written as a folder: with `/` at its end, or the bucket alone.
    pub(crate) is_folder: bool,
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| StoreError::address("it is no address"))?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "s3" => Scheme::S3,
            "gs" => Scheme::Google,
            "az" => Scheme::Azure,
            "https" | "http" => return Self::web(text),
            _ => return Err(StoreError::address("it is no address of a store (s3://, gs://, az://, https://)")),
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if bucket.is_empty() || !bucket.chars().all(fits) {
            return Err(StoreError::address(format!(
                "'{}' is not the name of a bucket; write {}://BUCKET/NAME",
                bucket.chars().filter(|c| !c.is_control()).take(80).collect::<String>(),
                scheme.name()
            )));
        }
        let is_folder = key.is_empty() || key.ends_with('/');
        // Not `Path::from`, which would write signs such as # and % in another way than the store does.
        let key = Path::parse(key.strip_suffix('/').unwrap_or(key)).map_err(|error| {
            StoreError::address(format!(
                "its name cannot be asked for ({error}); names with //, . or .. as a part are not read"
            ))
        })?;
        Ok(Self { scheme, bucket: bucket.to_owned(), key, is_folder })
    }

    /// A file on a web server. Plain HTTP is for servers on this machine, or where it was allowed.
    fn web(text: &str) -> Result<Self, StoreError> {
        let url = Url::parse(text).map_err(|error| StoreError::address(format!("it is no address ({error})")))?;
        if url.scheme() == "http" && !is_loopback(&url) && !crate::settings::allow_http() {
            return Err(StoreError::address(
                "plain http would show to everybody on the way what is read, and let them change it; \
                 write https, or set DTKC_STORE_ALLOW_HTTP=true",
            ));
        }
        Ok(Self { scheme: Scheme::Web, bucket: url.into(), key: Path::default(), is_folder: false })
    }
}

impl Scheme {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
            Self::Web => "https",
        }
    }
}

/// Whether an address is that of this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_as_the_store_knows_them() {
        let address = Address::parse("s3://my-bucket/a b/x#1?%41*[1].png").unwrap();
        assert_eq!((address.scheme, address.bucket.as_str()), (Scheme::S3, "my-bucket"));
        assert_eq!(address.key.as_ref(), "a b/x#1?%41*[1].png");
        assert!(!address.is_folder);
        for text in ["gs://b", "gs://b/", "az://b/x/"] {
            assert!(Address::parse(text).unwrap().is_folder, "{text}");
        }
        assert_eq!(Address::parse("az://b/x/").unwrap().key.as_ref(), "x");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for (text, words) in [
            ("s3:///x", "not the name of a bucket"),
            ("s3://a b/x", "not the name of a bucket"),
            ("s3://user@host/x", "not the name of a bucket"),
            ("s3://b/a//b", "cannot be asked for"),
            ("s3://b/../x", "cannot be asked for"),
            ("s3://b/a\u{0}b", "cannot be asked for"),
            ("ftp://b/x", "no address of a store"),
            ("https://", "no address"),
            ("http://example.com/x", "plain http"),
            ("http://127.0.0.1.example.com/x", "plain http"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        for text in
            ["http://127.0.0.1:9000/a.tar", "http://[::1]/a", "http://localhost:80/a", "https://example.com/a?b=c"]
        {
            assert_eq!(Address::parse(text).unwrap().scheme, Scheme::Web, "{text}");
        }
    }
}
