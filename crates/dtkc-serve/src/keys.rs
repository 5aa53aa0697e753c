//! Keys that clients must send, compared without telling by the time it takes how close a guess was.

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use anyhow::Context;
use dtkc_cli::Usage;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::config::{ServeConfig, check_key};
use crate::error::ApiError;

/// The keys of this service, as digests: of equal length, and not readable in a memory dump.
#[derive(Debug, Default)]
pub struct Keys {
    digests: Vec<[u8; 32]>,
}

impl Keys {
    /// The keys of the flags and of the key file.
    pub fn load(config: &ServeConfig) -> anyhow::Result<Self> {
        let mut digests: Vec<[u8; 32]> = config.api_key.iter().map(|key| digest(key)).collect();
        if let Some(path) = &config.api_key_file {
            let text = fs_err::read_to_string(path).context("--api-key-file cannot be read")?;
            let keys = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            for key in keys {
                check_key(key, &path.display().to_string())?;
                digests.push(digest(key));
            }
            // An empty file must not open the service to everybody.
            if digests.is_empty() {
                return Err(Usage(format!("{} holds no key; write one key per line", path.display())).into());
            }
        }
        Ok(Self { digests })
    }

    /// True where clients need a key.
    pub fn required(&self) -> bool {
        !self.digests.is_empty()
    }

    /// Checks the key of a request; gives a number that stands for the key, for counting its requests.
    pub fn check(&self, headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
        if !self.required() {
            return Ok(None);
        }
        let sent = digest(sent_key(headers).ok_or(ApiError::NoKey)?);
        // Every key is compared, whichever matches.
        let found = self.digests.iter().fold(Choice::from(0), |found, known| found | known.ct_eq(&sent));
        if !bool::from(found) {
            return Err(ApiError::WrongKey);
        }
        let [a, b, c, d, e, f, g, h, ..] = sent;
        Ok(Some(u64::from_le_bytes([a, b, c, d, e, f, g, h])))
    }
}

fn sent_key(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| key.trim());
    }
    headers.get("x-api-key")?.to_str().ok().map(str::trim)
}

fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use actix_web::http::header::{HeaderName, HeaderValue};
    use clap::Parser;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        headers
    }

    fn keys(args: &[&str]) -> anyhow::Result<Keys> {
        Keys::load(&ServeConfig::try_parse_from(std::iter::once(&"dtkc-serve").chain(args)).unwrap())
    }

    #[test]
    fn either_header_works_and_nothing_else() {
        let keys = keys(&["--api-key", "first", "--api-key", "second"]).unwrap();
        assert!(keys.check(&headers("authorization", "Bearer second")).is_ok());
        assert!(keys.check(&headers("authorization", "bearer first")).is_ok());
        assert!(keys.check(&headers("x-api-key", "first")).is_ok());
        assert_eq!(keys.check(&headers("x-api-key", "firs")), Err(ApiError::WrongKey));
        assert_eq!(keys.check(&headers("authorization", "Basic first")), Err(ApiError::NoKey));
        assert_eq!(keys.check(&HeaderMap::new()), Err(ApiError::NoKey));
    }

    #[test]
    fn without_keys_everybody_may_come() {
        assert_eq!(keys(&[]).unwrap().check(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn a_key_file_is_read_and_an_empty_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, "# team\nalpha\n\n  beta\n").unwrap();
        let found = keys(&["--api-key-file", path.to_str().unwrap()]).unwrap();
        assert!(found.check(&headers("x-api-key", "beta")).is_ok());
        std::fs::write(&path, "# nothing\n").unwrap();
        let error = keys(&["--api-key-file", path.to_str().unwrap()]).unwrap_err().to_string();
        assert!(error.contains("holds no key"), "{error}");
    }
}
