//! What `dtkc-source` asks of stores.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dtkc_source::remote::{self, FetchError, Object as Listed, ObjectFile, Seen};

use crate::StoreError;
use crate::address::{Address, Scheme};
use crate::error::Kind;
use crate::fetch::{self, Unfetched};
use crate::listing;
use crate::object::{Object, Shared};
use crate::reader::Reader;
use crate::runtime;
use crate::whole::{self, WholeFile};

/// Objects that were looked at, with what was read of them last: so many are remembered, with 2 MiB each.
const KNOWN: usize = 64;

/// All stores that an address can name.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stores;

/// Lets `dtkc-source` read addresses. Who waits for a store asks `stop` whether to go on.
pub fn install(stop: fn() -> bool) {
    runtime::set_stop(stop);
    remote::install(Box::new(Stores));
}

/// The bytes of one small object, no more than so many.
pub fn read(url: &str, max_bytes: u64) -> Result<Vec<u8>, StoreError> {
    match runtime::run(fetch::one(url.to_owned(), max_bytes))? {
        Ok(bytes) => Ok(bytes.into()),
        Err(Unfetched::Failed(error)) => Err(error),
        Err(Unfetched::TooLarge(size)) => Err(StoreError::other(format!(
            "it has {}, more than the {} that are read",
            dtkc_human::bytes(size),
            dtkc_human::bytes(max_bytes)
        ))),
    }
}

/// What was looked at.
#[derive(Clone)]
enum Known {
    Ranged(Shared),
    Whole(WholeFile),
}

impl Known {
    fn size(&self) -> u64 {
        match self {
            Self::Ranged(object) => object.size,
            Self::Whole(file) => file.size(),
        }
    }
}

type Map<T> = Mutex<Option<HashMap<String, T>>>;
static KNOWN_OBJECTS: Map<Known> = Mutex::new(None);
/// A folder is listed once: positions, shards and classes rest on a list that does not change.
static LISTINGS: Map<Arc<[Listed]>> = Mutex::new(None);

fn lock<T>(map: &'static Map<T>) -> MutexGuard<'static, Option<HashMap<String, T>>> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at an object, or remembers it.
fn known(url: &str) -> Result<Known, StoreError> {
    if let Some(known) = lock(&KNOWN_OBJECTS).get_or_insert_default().get(url) {
        return Ok(known.clone());
    }
    let address = Address::parse(url)?;
    let looked = runtime::run(Object::look(address.clone()))?;
    let known = match looked {
        Ok(object) => Known::Ranged(Arc::new(object)),
        Err(error) if error.kind() == Kind::NoRanges && address.scheme == Scheme::Web => {
            let (file, size) = runtime::run(whole::fetch(address))??;
            Known::Whole(WholeFile::new(file, size))
        }
        Err(error) => return Err(error),
    };
    let mut all = lock(&KNOWN_OBJECTS);
    let all = all.get_or_insert_default();
    if all.len() >= KNOWN {
        // What has been fetched as a whole is dearer than a look.
        all.retain(|_, known| matches!(known, Known::Whole(_)));
    }
    all.insert(url.to_owned(), known.clone());
    Ok(known)
}

impl remote::Stores for Stores {
    fn look(&self, url: &str) -> io::Result<Seen> {
        let address = Address::parse(url)?;
        if !address.is_folder {
            match known(url) {
                Ok(known) => return Ok(Seen::Object(known.size())),
                Err(error) if error.kind() != Kind::Missing => return Err(error.into()),
                Err(_) => {}
            }
        }
        if address.scheme == Scheme::Web {
            return Ok(Seen::Nothing);
        }
        let folder = runtime::run(async move { listing::is_folder(&address).await })??;
        Ok(if folder { Seen::Folder } else { Seen::Nothing })
    }

    fn list(&self, folder: &str, deep: bool) -> io::Result<Arc<[Listed]>> {
        let key = format!("{}{}", if deep { "deep " } else { "" }, folder.trim_end_matches('/'));
        if let Some(listed) = lock(&LISTINGS).get_or_insert_default().get(&key) {
            return Ok(listed.clone());
        }
        let address = Address::parse(folder)?;
        let listed: Arc<[Listed]> = runtime::run(listing::list(address, deep))??.into();
        lock(&LISTINGS).get_or_insert_default().insert(key, listed.clone());
        Ok(listed)
    }

    fn open(&self, url: &str) -> io::Result<Box<dyn ObjectFile>> {
        Ok(match known(url)? {
            Known::Ranged(object) => Box::new(Reader::new(object)),
            Known::Whole(file) => Box::new(file.reader()),
        })
    }

    fn fetch(&self, urls: &[&str], max_bytes: u64) -> Vec<Result<Vec<u8>, FetchError>> {
        let owned = urls.iter().map(|url| (*url).to_owned()).collect();
        match runtime::run(fetch::all(owned, max_bytes)) {
            Ok(fetched) => fetched.into_iter().map(|one| one.map(Vec::from).map_err(FetchError::from)).collect(),
            Err(error) => urls.iter().map(|_| Err(FetchError::Io(io::Error::other(error.to_string())))).collect(),
        }
    }
}
