//! Downloads of the known sets, with resume and checks, and their import.

mod download;
mod local;
mod table;
mod unpack;
mod verify;

use std::path::{Path, PathBuf};

use dtkc_files::{Lock, LockError};
use dtkc_observe::Observer;

use self::download::{Downloader, Failure};
use self::local::Found;
use self::table::{KnownSet, Remote};
use crate::import::{ImportError, ImportOptions, Summary, Titles, check_new, import};

/// Where the files of a set come from.
#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    /// A folder that holds them already; nothing is downloaded then.
    pub from: Option<PathBuf>,
    /// A mirror: an address below which the files have their usual names.
    pub base_url: Option<String>,
    /// Where downloads are kept; by default below the user's cache folder.
    pub cache: Option<PathBuf>,
}

/// Names and titles of the known sets.
pub fn known_sets() -> Vec<(&'static str, &'static str)> {
    table::SETS.iter().map(|set| (set.name, set.title)).collect()
}

/// Downloads a known set where it is not there yet, and imports it.
pub fn fetch(
    name: &str,
    fetch: &FetchOptions,
    import_options: &ImportOptions,
    observer: &dyn Observer,
) -> Result<Summary, ImportError> {
    let Some(set) = table::find(name) else {
        let names: Vec<&str> = table::SETS.iter().map(|s| s.name).collect();
        return Err(ImportError::Usage(format!("there is no known set '{name}'; there are {}", names.join(", "))));
    };
    // Before anything is downloaded for it.
    check_new(&import_options.out, import_options.force)?;
    let found = match &fetch.from {
        Some(folder) => in_folder(set, folder)?,
        None => in_cache(set, fetch, observer)?,
    };
    let mut options = import_options.clone();
    options.name.get_or_insert_with(|| set.name.to_owned());
    options.source.get_or_insert_with(|| set.title.to_owned());
    let (first, names) = set.titles;
    if !names.is_empty() {
        options.known.titles = Some(Titles { first, names: names.iter().map(|&n| n.to_owned()).collect() });
    }
    options.known.digits = found.digits.to_vec();
    let mut summary = import(&found.files, &options, observer)?;
    summary.notes.extend(remarks(set, &found, &summary, &options));
    Ok(summary)
}

fn remarks(set: &KnownSet, found: &Found, summary: &Summary, options: &ImportOptions) -> Vec<String> {
    if !found.different.is_empty() {
        let (is, it) = if found.different.len() == 1 { ("is", "it") } else { ("are", "they") };
        return vec![format!("{} {is} not the publisher's own; imported as {it} {is}", found.different.join(", "))];
    }
    let whole = options.limit.is_none() && options.classes.is_empty();
    if whole && summary.count != set.count {
        return vec![format!("{} items were expected", set.count)];
    }
    Vec::new()
}

fn in_folder(set: &KnownSet, folder: &Path) -> Result<Found, ImportError> {
    fs_err::read_dir(folder)?;
    local::look(set, folder)?.ok_or_else(|| {
        let reason = format!("the files of {} are not in this folder (--from): {}", set.name, wanted(set));
        ImportError::file(folder, reason)
    })
}

/// Looks in the cache, and downloads what is missing there.
fn in_cache(set: &KnownSet, fetch: &FetchOptions, observer: &dyn Observer) -> Result<Found, ImportError> {
    let folder = fetch.cache.clone().map_or_else(default_cache, Ok)?.join(set.name);
    if let Some(found) = local::look(set, &folder)? {
        return Ok(found);
    }
    fs_err::create_dir_all(&folder)?;
    // Two downloads would write into each other's file.
    let _lock = match Lock::take_passing(&folder.join(".lock")) {
        Ok(lock) => Some(lock),
        Err(LockError::Held(holder)) => {
            let text = format!("{} is being downloaded already ({holder}); wait for that to end", set.name);
            return Err(ImportError::Fetch(text));
        }
        Err(LockError::Io(_)) => None,
    };
    let downloader = Downloader::new(observer);
    for remote in set.files {
        let target = folder.join(remote.name);
        if !target.exists() {
            let urls = urls(remote, fetch.base_url.as_deref());
            downloader.get(remote, &urls, &target).map_err(|failure| explain(set, &folder, remote, failure))?;
        }
        unpack::members(&target, remote.members)?;
    }
    local::look(set, &folder)?.ok_or_else(|| ImportError::file(&folder, "the downloaded files do not make up the set"))
}

fn urls(remote: &Remote, base: Option<&str>) -> Vec<String> {
    match base {
        Some(base) => vec![format!("{}/{}", base.trim_end_matches('/'), remote.name)],
        None => remote.urls.iter().map(|&u| u.to_owned()).collect(),
    }
}

/// One sentence: what is missing, why, and what to do about it.
fn explain(set: &KnownSet, folder: &Path, remote: &Remote, failure: Failure) -> ImportError {
    let by_hand =
        format!("place {} in {}, or name the folder that holds them with --from", wanted(set), folder.display());
    match failure {
        Failure::Network(reason) => ImportError::Fetch(format!(
            "{} cannot be downloaded ({reason}); try again later, or {by_hand}",
            remote.name
        )),
        Failure::Wrong(reason) => {
            ImportError::Fetch(format!("{reason}; it was removed: try again or another --base-url, or {by_hand}"))
        }
        Failure::Other(error) => error,
    }
}

/// The files that would do, for people to read.
fn wanted(set: &KnownSet) -> String {
    let names: Vec<&str> = set.files.iter().map(|f| f.name).collect();
    let other: String = set.also.iter().map(|(name, _)| format!(" (or {name})")).collect();
    format!("{}{other}", names.join(", "))
}

/// `DTKC_CACHE`, or `dtkc` below the user's cache folder.
fn default_cache() -> Result<PathBuf, ImportError> {
    let folder = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let found = folder("XDG_CACHE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .or_else(|| folder("LOCALAPPDATA"));
    found
        .map(|f| f.join("dtkc"))
        .ok_or_else(|| ImportError::Usage("there is no cache folder; name one with --cache".into()))
}

#[cfg(test)]
mod tests {
    use dtkc_observe::Silent;

    use super::*;

    #[test]
    fn a_mirror_keeps_the_names() {
        let remote = &table::find("mnist").unwrap().files[0];
        assert_eq!(urls(remote, Some("http://host/x/")), ["http://host/x/train-images-idx3-ubyte.gz"]);
        assert_eq!(urls(remote, None).len(), 2);
    }

    #[test]
    fn unknown_sets_are_refused_with_the_list() {
        let error = fetch("imagenet", &FetchOptions::default(), &ImportOptions::new("x.h5"), &Silent).unwrap_err();
        assert!(matches!(&error, ImportError::Usage(text) if text.contains("fashion-mnist")), "{error}");
    }

    #[test]
    fn a_failed_download_says_what_to_place_where() {
        let set = table::find("usps").unwrap();
        let error = explain(set, Path::new("/cache/usps"), &set.files[0], Failure::Network("host not found".into()));
        let text = error.to_string();
        for part in
            ["usps.bz2 cannot be downloaded", "host not found", "usps.t.bz2 (or usps.h5)", "/cache/usps", "--from"]
        {
            assert!(text.contains(part), "{text}");
        }
    }
}
