//! Objects in stores (`s3://`, `gs://`, `az://`, `https://`) beside files on the disk.
//!
//! This crate knows how an address begins and what it must be able to ask, not how a store is spoken to: a program that
//! wants stores [`install`]s something that does (`dtkc-store`). Without it an address is refused in one sentence, and
//! nothing of a network is linked.
//!
//! An address travels as a path, so that everything that names files names objects, too. It is never opened as a file:
//! [`File::open`], [`at`] and [`crate::Body::Object`] are the only ways to its bytes. Names of objects become names in tables,
//! never paths to write to.

mod file;
mod folder;

use std::fmt;
use std::io::{self, BufRead, Seek};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use file::File;
pub(crate) use file::{Chunks, chunks};
pub(crate) use folder::{each_object, visit};

use crate::{SourceError, glob};

/// How addresses begin. Patterns and folders are for the first three: a web server lists nothing.
const LISTING: [&str; 3] = ["s3://", "gs://", "az://"];
const PLAIN: [&str; 2] = ["https://", "http://"];

/// What a program must be able to ask of stores. Errors are sentences without the address; one of the kind
/// [`io::ErrorKind::NotFound`] concerns one object, every other one means that it makes no sense to go on.
pub trait Stores: Send + Sync {
    /// What is there.
    fn look(&self, url: &str) -> io::Result<Seen>;

    /// The objects below a folder, in any order; only those directly in it where `deep` is false. The same answer however often
    /// it is asked.
    fn list(&self, folder: &str, deep: bool) -> io::Result<Arc<[Object]>>;

    /// Opens an object.
    fn open(&self, url: &str) -> io::Result<Box<dyn ObjectFile>>;

    /// The whole of several objects, side by side. None of more than `max_bytes` is read.
    fn fetch(&self, urls: &[&str], max_bytes: u64) -> Vec<Result<Vec<u8>, FetchError>>;
}

/// What an address leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// An object of so many bytes.
    Object(u64),
    /// A folder: the beginning of some names.
    Folder,
    /// Nothing.
    Nothing,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name below the folder that was listed.
    pub name: Box<str>,
    /// Its bytes.
    pub size: u64,
}

/// An object that is read like a file.
pub trait ObjectFile: BufRead + Seek + Send {
    /// Its bytes.
    fn size(&self) -> u64;

    /// Whether what lies at `place` is here already.
    fn holds(&self, place: u64) -> bool;

    /// The same object once more, at another place.
    fn fork(&self) -> Box<dyn ObjectFile>;
}

/// Why an object was not fetched.
#[derive(Debug)]
pub enum FetchError {
    /// It has so many bytes.
    TooLarge(u64),
    /// What the store said.
    Io(io::Error),
}

static STORES: OnceLock<Box<dyn Stores>> = OnceLock::new();
/// The first failure that is not that of one object: the address, and what was said.
static TROUBLE: Mutex<Option<(String, String)>> = Mutex::new(None);

/// From now on addresses are read through these stores.
pub fn install(stores: Box<dyn Stores>) {
    // The first ones stay.
    let _ = STORES.set(stores);
}

/// Whether a path is the address of an object or a folder in a store.
pub fn is(path: &Path) -> bool {
    // An address is text; what cannot be text is a path.
    path.to_str().is_some_and(is_text)
}

/// The same for a text.
pub fn is_text(text: &str) -> bool {
    LISTING.iter().chain(&PLAIN).any(|scheme| starts_with(text, scheme))
}

/// Whether the store of an address can list names.
pub(crate) fn lists(text: &str) -> bool {
    LISTING.iter().any(|scheme| starts_with(text, scheme))
}

/// Whether an address is a pattern. In that of a web server `?` and `*` mean what the server says.
pub(crate) fn is_pattern(text: &str) -> bool {
    lists(text) && glob::is_pattern(text)
}

fn starts_with(text: &str, scheme: &str) -> bool {
    text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// The stores, unless one of them was in trouble: then nothing is asked any more, or every item would wait in vain.
pub(crate) fn stores() -> io::Result<&'static dyn Stores> {
    if let Some((_, said)) = &*TROUBLE.lock().unwrap_or_else(PoisonError::into_inner) {
        return Err(io::Error::other(said.clone()));
    }
    let none = "this program reads no object stores; download it first, or import it with dtkc-data";
    STORES.get().map(|stores| &**stores).ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, none))
}

/// What lies at a path or an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A folder.
    Folder,
    /// A file or an object of so many bytes.
    File(u64),
    /// Something that is no file: a pipe, a socket, a device.
    Other,
}

/// What lies at a path or an address. [`io::ErrorKind::NotFound`] where there is nothing.
pub fn at(path: &Path) -> io::Result<At> {
    let Some(url) = path.to_str().filter(|text| is_text(text)) else {
        let meta = std::fs::metadata(path)?;
        return Ok(if meta.is_dir() {
            At::Folder
        } else if meta.is_file() {
            At::File(meta.len())
        } else {
            At::Other
        });
    };
    match stores()?.look(url).map_err(|error| noted(url, error))? {
        Seen::Folder => Ok(At::Folder),
        Seen::Object(size) => Ok(At::File(size)),
        Seen::Nothing => {
            let text = if lists(url) { "there is no such object and no such folder" } else { "there is no such file" };
            Err(io::Error::new(io::ErrorKind::NotFound, format!("{text}; check the address")))
        }
    }
}

/// Remembers an error that is not that of one object: whoever reads an archive takes it for damage, and must be told better.
pub(crate) fn noted(url: &str, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        let mut trouble = TROUBLE.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert_with(|| (Shown(url).to_string(), error.to_string()));
    }
    error
}

/// Why a store could not be read on, where that happened: it is no fault of the items, and nothing that was found since counts.
pub fn trouble() -> Option<SourceError> {
    let trouble = TROUBLE.lock().unwrap_or_else(PoisonError::into_inner);
    trouble.as_ref().map(|(url, said)| SourceError::Store(format!("{url}: {said}")))
}

/// Whether an input, as given, stands for the object at `output`, or for a folder that it lies in.
pub fn reads(input: &str, output: &str) -> Result<bool, SourceError> {
    if !is_text(input) || !is_text(output) {
        return Ok(false);
    }
    let below =
        |folder: &str| output.strip_prefix(folder.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'));
    Ok(input == output || below(input) || (is_pattern(input) && glob::Pattern::new(input)?.names(Path::new(output))))
}

/// An address without what only its owner should know: whatever is behind a question mark may be a signature.
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = PLAIN.iter().any(|scheme| starts_with(self.0, scheme));
        let text = if plain { self.0.split(['?', '#']).next().unwrap_or_default() } else { self.0 };
        // Before the host there may be a password.
        match text.split_once("://").filter(|_| plain) {
            Some((scheme, rest)) => {
                let host = rest.find('/').unwrap_or(rest.len());
                let start = rest[..host].rfind('@').map_or(0, |at| at + 1);
                write!(f, "{scheme}://{}", &rest[start..])
            }
            None => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_by_their_beginning() {
        for text in ["s3://b/x", "S3://b", "gs://b/", "az://c/x", "https://h/x?y", "http://127.0.0.1/x"] {
            assert!(is_text(text) && is(Path::new(text)), "{text}");
        }
        for text in ["s3:/b", "s3", "ftp://h/x", "/s3://b", "./s3://b", "C:\\x", "", "ß://", "file:///etc/passwd"] {
            assert!(!is_text(text), "{text}");
        }
        assert!(is_pattern("s3://b/*.png") && !is_pattern("https://h/*.png") && !is_pattern("s3://b/a.png"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = |text: &str| Shown(text).to_string();
        assert_eq!(shown("https://h/a.tar?X-Amz-Signature=abc"), "https://h/a.tar");
        assert_eq!(shown("https://user:pass@h/a.tar"), "https://h/a.tar");
        assert_eq!(shown("https://h/a@b"), "https://h/a@b");
        assert_eq!(shown("s3://b/a?b#c@d"), "s3://b/a?b#c@d");
    }

    #[test]
    fn outputs_among_inputs_are_known_by_their_names() {
        for (input, expected) in [
            ("s3://b/photos/labels.csv", true),
            ("s3://b/photos", true),
            ("s3://b/photos/", true),
            ("s3://b", true),
            ("s3://b/photos/*.csv", true),
            ("s3://b/**/*.csv", true),
            ("s3://b/photo", false),
            ("s3://b/photos/*.png", false),
            ("s3://c", false),
            ("photos", false),
        ] {
            assert_eq!(reads(input, "s3://b/photos/labels.csv").ok(), Some(expected), "{input}");
        }
    }

    #[test]
    fn without_stores_an_address_is_refused_in_one_sentence() {
        let error = at(Path::new("s3://bucket/x")).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("reads no object stores")));
    }
}
