//! One file over HTTP: resumed where it was cut, checked, and only then given its name.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dtkc_human as human;
use dtkc_observe::Observer;
use ureq::Agent;
use ureq::http::{Response, StatusCode};

use super::table::{Check, Remote};
use super::verify;
use crate::import::ImportError;

/// Attempts in a row that bring no new byte, before an address is given up.
const ATTEMPTS: u32 = 3;
/// No known set has a larger file; a server that sends more is not sending it.
const MAX_BYTES: u64 = 4 << 30;

/// Why a file could not be downloaded.
#[derive(Debug)]
pub enum Failure {
    /// Nobody answered, or not with the file; what was said.
    Network(String),
    /// It arrived and is not what it should be.
    Wrong(String),
    /// Something else, which is final.
    Other(ImportError),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.into())
    }
}

/// How downloads are done.
pub struct Downloader<'a> {
    agent: Agent,
    /// The pause before the second attempt; it doubles with each further one.
    pause: Duration,
    observer: &'a dyn Observer,
}

/// What one attempt came to.
enum Attempt {
    Complete,
    /// Cut after some new bytes, for the reason given.
    Cut(u64, String),
}

impl<'a> Downloader<'a> {
    /// A downloader with time limits on everything that can hang.
    pub fn new(observer: &'a dyn Observer) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(15)))
            .timeout_resolve(Some(Duration::from_secs(15)))
            .timeout_recv_response(Some(Duration::from_secs(30)))
            .timeout_per_read(Some(Duration::from_secs(30)))
            .accept_encoding("identity")
            .user_agent(concat!("dtkc-data/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.new_agent(), pause: Duration::from_millis(500), observer }
    }

    /// Downloads a file to `target` from the first of `urls` that gives it. A partial file stays for the
    /// next try.
    pub fn get(&self, remote: &Remote, urls: &[String], target: &Path) -> Result<(), Failure> {
        let part = part_path(target);
        let mut said = Vec::new();
        for url in urls {
            match self.get_from(remote, url, &part) {
                Ok(()) => {
                    fs_err::rename(&part, target)?;
                    return Ok(());
                }
                Err(Failure::Network(reason)) => said.push(reason),
                Err(other) => return Err(other),
            }
        }
        said.dedup();
        Err(Failure::Network(said.join("; ")))
    }

    fn get_from(&self, remote: &Remote, url: &str, part: &Path) -> Result<(), Failure> {
        let mut resumed = length(part) > 0;
        loop {
            self.fill(remote, url, part)?;
            if verify::matches(part, remote.check).map_err(Failure::Other)? {
                return Ok(());
            }
            fs_err::remove_file(part)?;
            if !resumed {
                let known = match remote.check {
                    Check::AtLeast(bytes) => format!("is shorter than {bytes} bytes"),
                    _ => "has another SHA-256 than the published one".to_owned(),
                };
                return Err(Failure::Wrong(format!("what {} sends as {} {known}", host(url), remote.name)));
            }
            // The beginning may have come from another version of the file.
            resumed = false;
        }
    }

    /// Fills the partial file until it is complete, as long as bytes keep coming.
    fn fill(&self, remote: &Remote, url: &str, part: &Path) -> Result<(), Failure> {
        let mut fruitless = 0;
        loop {
            match self.attempt(remote, url, part)? {
                Attempt::Complete => return Ok(()),
                Attempt::Cut(new, reason) => {
                    fruitless = if new > 0 { 1 } else { fruitless + 1 };
                    if fruitless >= ATTEMPTS {
                        return Err(Failure::Network(format!("{}: {reason}", host(url))));
                    }
                    std::thread::sleep(self.pause * (1 << (fruitless - 1)));
                    self.stop_if_asked(part)?;
                }
            }
        }
    }

    fn attempt(&self, remote: &Remote, url: &str, part: &Path) -> Result<Attempt, Failure> {
        let there = length(part);
        let mut request = self.agent.get(url);
        if there > 0 {
            request = request.header("Range", format!("bytes={there}-"));
        }
        let response = match request.call() {
            Ok(response) => response,
            // These will not get better by trying again at once.
            Err(error @ (ureq::Error::BadUri(_) | ureq::Error::TooManyRedirects)) => {
                return Err(Failure::Network(format!("{}: {error}", host(url))));
            }
            Err(error) if is_unknown_host(&error) => {
                return Err(Failure::Network(format!("{} is not found, or there is no network", host(url))));
            }
            Err(ureq::Error::Io(error)) => return Ok(Attempt::Cut(0, plain(&error))),
            Err(error) => return Ok(Attempt::Cut(0, error.to_string())),
        };
        let append = match response.status() {
            StatusCode::PARTIAL_CONTENT if starts_at(&response, there) => true,
            StatusCode::OK => false,
            // Nothing lies behind what we have: it is complete, or wrong, which the check will tell.
            StatusCode::RANGE_NOT_SATISFIABLE if there > 0 => return Ok(Attempt::Complete),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Ok(Attempt::Cut(0, format!("the server answers {status}")));
            }
            status => return Err(Failure::Network(format!("{}: the server answers {status}", host(url)))),
        };
        self.receive(remote, response, part, append)
    }

    fn receive(
        &self,
        remote: &Remote,
        response: Response<ureq::Body>,
        part: &Path,
        append: bool,
    ) -> Result<Attempt, Failure> {
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .append(append)
            .truncate(!append)
            .open(part)
            .map_err(|e| std::io::Error::new(e.kind(), format!("cannot write {}: {e}", part.display())))?;
        let there = if append { length(part) } else { 0 };
        let total = response.body().content_length().map(|n| (n + there) >> 10);
        self.observer.begin(remote.name, "KiB", total);
        self.observer.skip(there >> 10);
        let mut body = response.into_body().into_with_config().limit(MAX_BYTES).reader();
        let mut buffer = vec![0; 64 << 10];
        let (mut new, mut shown) = (0u64, 0u64);
        let result = loop {
            self.stop_if_asked(part)?;
            match body.read(&mut buffer) {
                Ok(0) => break Attempt::Complete,
                Ok(n) => {
                    file.write_all(&buffer[..n])
                        .map_err(|e| std::io::Error::new(e.kind(), format!("cannot write {}: {e}", part.display())))?;
                    new += n as u64;
                    self.observer.advance((new >> 10) - shown);
                    shown = new >> 10;
                }
                Err(error) => {
                    break Attempt::Cut(
                        new,
                        format!("the connection broke after {} ({error})", human::bytes(there + new)),
                    );
                }
            }
        };
        self.observer.end();
        if matches!(result, Attempt::Complete) {
            file.sync_all()?;
        }
        Ok(result)
    }

    fn stop_if_asked(&self, part: &Path) -> Result<(), Failure> {
        if !self.observer.stop() {
            return Ok(());
        }
        let text = format!("the download goes on from {} when the command is run again", part.display());
        Err(Failure::Other(ImportError::Interrupted(text)))
    }
}

/// Where a file is until it is complete.
pub fn part_path(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    target.with_file_name(name)
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

/// Whether the answer begins where we are: `Content-Range: bytes 500-999/1000`.
fn starts_at(response: &Response<ureq::Body>, there: u64) -> bool {
    let range = response.headers().get("content-range").and_then(|v| v.to_str().ok()).unwrap_or_default();
    let start = range.trim_start_matches("bytes").trim().split('-').next().and_then(|s| s.parse().ok());
    start == Some(there)
}

fn host(url: &str) -> &str {
    url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or(url)
}

/// Name resolution fails with an error of its own kind on no platform.
fn is_unknown_host(error: &ureq::Error) -> bool {
    matches!(error, ureq::Error::HostNotFound)
        || matches!(error, ureq::Error::Io(e) if e.to_string().contains("lookup address"))
}

/// The system's words without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_cut_out_of_addresses() {
        assert_eq!(host("https://example.org/a/b"), "example.org");
        assert_eq!(host("http://127.0.0.1:80"), "127.0.0.1:80");
        assert_eq!(part_path(Path::new("x/a.gz")), Path::new("x/a.gz.part"));
    }
}
