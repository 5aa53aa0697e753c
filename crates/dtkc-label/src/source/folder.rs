//! A folder and all below it, in the order of the names.

use dtkc_item::ItemError;
use std::ffi::OsString;
use std::fs::{DirEntry, FileType};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dtkc_image::looks_like_image;

use super::{Found, Visitor};

/// Visits the images of a folder and of all folders below it. Hidden files and folders are passed over; links are
/// followed, except into a folder that is being walked. Only the names of one folder per level are in memory.
pub(super) fn visit(root: &Path, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    let place = root.to_string_lossy().trim_end_matches(std::path::MAIN_SEPARATOR).len() + 1;
    walk(root, &Walk { max_depth: usize::MAX, trail: vec![] }, &mut |entry| match entry {
        Entry::File(path) if looks_like_image(&path) => visitor.found(Found::file(&path, place)),
        Entry::File(path) => {
            visitor.skipped(&path);
            ControlFlow::Continue(())
        }
        Entry::Unreadable(path, error) => visitor.found(unlistable(&path, &error)),
    })
}

/// A folder that cannot be listed, in place of its images.
pub(super) fn unlistable(path: &Path, error: &io::Error) -> Found {
    Found::broken(path, ItemError::new("unreadable", format!("the folder cannot be listed ({error})")))
}

/// What a walk meets.
pub(super) enum Entry {
    File(PathBuf),
    Unreadable(PathBuf, io::Error),
}

/// How far a walk goes, and where it is.
pub(super) struct Walk {
    /// Levels of folders below the first one.
    pub max_depth: usize,
    /// The folders that were entered through a link or from the start, resolved: a link back to one is a circle.
    pub trail: Vec<PathBuf>,
}

/// Walks `folder`, names in order. Ordering by bytes is the same on every machine, whatever its language.
pub(super) fn walk(folder: &Path, walk: &Walk, seen: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> ControlFlow<()> {
    let names = match list(folder) {
        Ok(names) => names,
        Err(error) => return seen(Entry::Unreadable(folder.to_owned(), error)),
    };
    let mut trail = walk.trail.clone();
    trail.extend(folder.canonicalize());
    for (name, is_folder) in names {
        let path = folder.join(&*name);
        if !is_folder {
            seen(Entry::File(path))?;
        } else if walk.max_depth > 0 && !is_circle(&path, &trail) {
            let below = Walk { max_depth: walk.max_depth - 1, trail: trail.clone() };
            self::walk(&path, &below, seen)?;
        }
    }
    ControlFlow::Continue(())
}

fn is_circle(path: &Path, trail: &[PathBuf]) -> bool {
    path.is_symlink() && path.canonicalize().is_ok_and(|real| trail.contains(&real))
}

/// The names in a folder that count, sorted, each with whether it is a folder.
fn list(folder: &Path) -> io::Result<Vec<(Box<std::ffi::OsStr>, bool)>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name: OsString = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if let Some(is_folder) = is_folder(&entry, entry.file_type()?) {
            names.push((name.into_boxed_os_str(), is_folder));
        }
    }
    names.sort_unstable_by(|a, b| a.0.as_encoded_bytes().cmp(b.0.as_encoded_bytes()));
    Ok(names)
}

/// `None` for what is neither file nor folder (pipes, devices). A dangling link counts as a file, which then fails
/// with a reason instead of vanishing.
fn is_folder(entry: &DirEntry, kind: FileType) -> Option<bool> {
    if kind.is_dir() {
        Some(true)
    } else if kind.is_file() {
        Some(false)
    } else if kind.is_symlink() {
        match std::fs::metadata(entry.path()) {
            Ok(meta) if meta.is_dir() => Some(true),
            Ok(meta) => meta.is_file().then_some(false),
            Err(_) => Some(false),
        }
    } else {
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn paths(root: &Path) -> Vec<String> {
        let mut paths = Vec::new();
        let flow = visit(root, &mut |found: Found| {
            paths.push(found.place().to_owned());
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        paths
    }

    #[test]
    fn a_tree_is_walked_in_the_order_of_names() {
        let root = tempfile::tempdir().unwrap();
        for name in ["b/2.png", "b/10.png", "a.jpg", "c/d/e.PNG", "notes.txt", ".hidden/x.png", ".x.png", "z.webp"] {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        assert_eq!(paths(root.path()), ["a.jpg", "b/10.png", "b/2.png", "c/d/e.PNG", "z.webp"]);
        let slash = PathBuf::from(format!("{}/", root.path().display()));
        assert_eq!(paths(&slash)[1], "b/10.png");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_but_not_in_circles() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a")).unwrap();
        std::fs::write(root.path().join("a/1.png"), b"x").unwrap();
        symlink(root.path(), root.path().join("a/up")).unwrap();
        symlink(root.path().join("a"), root.path().join("b")).unwrap();
        symlink(root.path().join("gone.png"), root.path().join("c.png")).unwrap();
        assert_eq!(paths(root.path()), ["a/1.png", "b/1.png", "c.png"]);
    }
}
