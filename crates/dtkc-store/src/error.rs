//! What a store says, as one sentence without the address: whoever asked knows that.

use std::error::Error;
use std::io;

use object_store::client::{HttpError, HttpErrorKind};

use crate::address::{Address, Scheme};

/// Why a store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct StoreError {
    kind: Kind,
    text: String,
}

/// What follows from an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// That object cannot be had; others can.
    Missing,
    /// The bytes broke off, or the server had a bad moment: it may work next time.
    Passing,
    /// A part of an object cannot be had from this server, only the whole.
    NoRanges,
    /// There is something at that place already.
    Exists,
    /// Nothing of the rest.
    Other,
}

impl StoreError {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    pub(crate) fn address(text: impl Into<String>) -> Self {
        Self::new(Kind::Other, text)
    }

    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self::new(Kind::Other, text)
    }

    /// The same after the library has tried often enough: it is not tried again.
    pub(crate) fn tried(self) -> Self {
        Self { kind: if self.kind == Kind::Passing { Kind::Other } else { self.kind }, ..self }
    }

    /// The same for what broke off on its way: it is worth another try, whatever came of the library's own.
    pub(crate) fn broken_off(self) -> Self {
        Self { kind: if self.kind == Kind::NoRanges { Kind::Passing } else { self.kind }, ..self }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether somebody asked to stop.
    pub(crate) fn stopped() -> Self {
        Self::other("stopped before the store had answered")
    }

    /// What the library says about an address.
    pub(crate) fn of(address: &Address, error: &object_store::Error) -> Self {
        use object_store::Error as E;
        let text = whole(error);
        let code = between(&text, "<Code>", "</Code>").unwrap_or_default();
        let bucket = if address.scheme == Scheme::Azure { "container" } else { "bucket" };
        let place = if address.scheme == Scheme::Web { "server" } else { "store" };
        if let Some(credentials) = credentials(address.scheme, &text, code) {
            return Self::other(credentials);
        }
        if ["NoSuchBucket", "ContainerNotFound", "InvalidBucketName"].contains(&code) {
            return Self::other(format!("there is no {bucket} '{}'; check its name and the endpoint", address.bucket));
        }
        match error {
            E::NotFound { .. } => Self::new(Kind::Missing, format!("the {place} has no such object; check the name")),
            E::AlreadyExists { .. } => Self::new(Kind::Exists, "it exists already; add --force to replace it"),
            E::Precondition { .. } | E::NotModified { .. } => Self::other(CHANGED),
            E::NotSupported { .. } => Self::new(Kind::NoRanges, "the server gives no parts of a file"),
            E::InvalidPath { source } => Self::other(format!(
                "it holds a name that cannot be read ({source}); rename that object, or name folders beside it"
            )),
            E::PermissionDenied { .. } | E::Unauthenticated { .. } if code == "InvalidObjectState" => {
                Self::new(Kind::Missing, "it lies in an archive of the store; restore it first")
            }
            E::PermissionDenied { .. } | E::Unauthenticated { .. } => Self::other(format!(
                "access is denied{}; check that {} may read and write there",
                noted(code),
                if address.scheme == Scheme::Web { "everybody" } else { "these credentials" }
            )),
            _ => Self::network(error, &text, code, place),
        }
    }

    /// What did not come from the store itself, or not in a form that is known.
    fn network(error: &object_store::Error, text: &str, code: &str, place: &str) -> Self {
        if text.contains("Received redirect") || ["PermanentRedirect", "AuthorizationHeaderMalformed"].contains(&code) {
            return Self::other("the bucket is in another region; set AWS_REGION to that one");
        }
        if text.contains("URL scheme is not allowed") {
            return Self::other(
                "plain http is not allowed there; use https, or set AWS_ALLOW_HTTP=true for an S3 endpoint",
            );
        }
        if text.contains("too many redirects") {
            return Self::other("the server sends on and on; check the address");
        }
        if text.contains("Range request not supported") {
            return Self::new(
                Kind::NoRanges,
                "the connection broke off, and the server gives no parts of a file; try again",
            );
        }
        if text.contains("416 Range Not Satisfiable") || text.contains("non-partial response") {
            return Self::new(Kind::NoRanges, "the server gives no such part of it");
        }
        if text.contains("Content-Length") || text.contains("Content Length") {
            return Self::other("the server does not say how large it is; download it first");
        }
        let Some(kind) = http_kind(error) else {
            let passing =
                ["500 ", "502 ", "503 ", "504 ", "429 "].iter().any(|s| text.contains(&format!("status code: {s}")));
            let (kind, remedy) = if passing { (Kind::Passing, "; try again later") } else { (Kind::Other, "") };
            return Self::new(kind, format!("the {place} does not answer as it should ({}){remedy}", short(text)));
        };
        let cause = cause(error);
        Self::new(
            Kind::Passing,
            match kind {
                HttpErrorKind::Connect => {
                    format!(
                        "the {place} cannot be reached ({cause}); check the network and the address of the endpoint"
                    )
                }
                HttpErrorKind::Timeout => {
                    let seconds = crate::settings::silence().as_secs();
                    format!(
                        "the {place} said nothing for {seconds} seconds, several times; check the network, and try again"
                    )
                }
                _ => format!("the connection to the {place} broke off ({cause}); check the network, and try again"),
            },
        )
    }
}

/// What is said of an object that is another now.
pub(crate) const CHANGED: &str = "it was changed while it was read; start again when nobody writes it";

/// What to set, where it is about who is asking.
fn credentials(scheme: Scheme, text: &str, code: &str) -> Option<String> {
    let asked =
        ["169.254.169.254", "169.254.170.2", "metadata.google.internal", "metadata/instance", "latest/api/token"];
    if asked.iter().any(|place| text.contains(place)) {
        return Some(no_credentials(scheme));
    }
    let refused = [
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "InvalidToken",
        "InvalidClientTokenId",
        "AuthenticationFailed",
        "AuthFailure",
    ];
    refused.contains(&code).then(|| format!("the credentials are refused ({code}); check {}", variables(scheme)))
}

/// That there are none.
pub(crate) fn no_credentials(scheme: Scheme) -> String {
    let public = match scheme {
        Scheme::S3 => "; AWS_SKIP_SIGNATURE=true reads a public bucket",
        Scheme::Google => "; GOOGLE_SKIP_SIGNATURE=true reads a public bucket",
        Scheme::Azure => "; AZURE_SKIP_SIGNATURE=true reads a public container",
        Scheme::Web => "",
    };
    format!("there are no credentials for it; set {}{public}", variables(scheme))
}

fn variables(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        Scheme::Google => "GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`",
        Scheme::Azure => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY (or AZURE_STORAGE_SAS_TOKEN)",
        Scheme::Web => "a signed address",
    }
}

/// An error with all that it stands on.
fn whole(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = error.source();
    }
    text
}

/// What an error stands on in the end.
fn cause(error: &dyn Error) -> String {
    let mut last: &dyn Error = error;
    while let Some(next) = last.source() {
        last = next;
    }
    short(&last.to_string())
}

fn http_kind(error: &(dyn Error + 'static)) -> Option<HttpErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return Some(http.kind());
        }
        next = error.source();
    }
    None
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let from = text.find(start)? + start.len();
    let length = text[from..].find(end)?;
    Some(&text[from..from + length]).filter(|code| code.len() < 64 && code.chars().all(|c| c.is_ascii_alphanumeric()))
}

fn noted(code: &str) -> String {
    if code.is_empty() { String::new() } else { format!(" ({code})") }
}

/// The beginning of a text of a stranger, in one line that speaks to no terminal.
fn short(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() > 200 { words.chars().take(199).chain(['…']).collect() } else { words }
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        let kind = match error.kind {
            Kind::Missing => io::ErrorKind::NotFound,
            Kind::Exists => io::ErrorKind::AlreadyExists,
            Kind::Passing | Kind::NoRanges | Kind::Other => io::ErrorKind::Other,
        };
        Self::new(kind, error.text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(text: &str, error: object_store::Error) -> StoreError {
        StoreError::of(&Address::parse(text).unwrap(), &error)
    }

    fn source(text: &str) -> Box<dyn Error + Send + Sync> {
        text.to_owned().into()
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = |body: &str| object_store::Error::NotFound { path: "x".into(), source: source(body) };
        let bucket = of("s3://b/x", error("<Error><Code>NoSuchBucket</Code></Error>"));
        assert_eq!(bucket.to_string(), "there is no bucket 'b'; check its name and the endpoint");
        assert_eq!(bucket.kind(), Kind::Other);
        let object = of("s3://b/x", error("<Error><Code>NoSuchKey</Code></Error>"));
        assert_eq!(
            (object.kind(), object.to_string().as_str()),
            (Kind::Missing, "the store has no such object; check the name")
        );
        let container = of("az://c/x", error("<Code>ContainerNotFound</Code>"));
        assert!(container.to_string().contains("no container 'c'"));
    }

    #[test]
    fn who_asks_is_told_what_to_set() {
        let denied = |body: &str| object_store::Error::PermissionDenied { path: "x".into(), source: source(body) };
        for (text, body, words) in [
            ("s3://b/x", "<Code>InvalidAccessKeyId</Code>", "refused (InvalidAccessKeyId); check AWS_ACCESS_KEY_ID"),
            ("s3://b/x", "<Code>AccessDenied</Code>", "access is denied (AccessDenied)"),
            ("s3://b/x", "<Code>InvalidObjectState</Code>", "restore it first"),
            ("gs://b/x", "http://169.254.169.254/x", "set GOOGLE_APPLICATION_CREDENTIALS"),
            ("az://b/x", "<Code>AuthenticationFailed</Code>", "AZURE_STORAGE_ACCOUNT_KEY"),
            ("https://h/x", "403", "access is denied; check that everybody"),
        ] {
            let error = of(text, denied(body)).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn strangers_do_not_speak_to_the_terminal() {
        let body = format!("status code: 500 x: \u{1b}[31m\r\n{}", "y".repeat(1000));
        let error = of("s3://b/x", object_store::Error::Generic { store: "S3", source: source(&body) });
        assert_eq!(error.kind(), Kind::Passing);
        assert!(!error.to_string().contains(char::is_control) && error.to_string().len() < 400, "{error}");
    }
}
