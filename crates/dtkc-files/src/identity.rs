//! What a file is, whatever it is called.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// One file or folder on the disk: two paths with the same identity lead to the same thing, through links of either
/// kind, `..`, other letters or a second mount. Where the system does not number its files it is the resolved path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity(Inner);

#[cfg(unix)]
type Inner = (u64, u64);
#[cfg(not(unix))]
type Inner = std::path::PathBuf;

impl Identity {
    /// That of what `path` leads to; an error where it leads nowhere.
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::from_parts(path, &std::fs::metadata(path)?)
    }

    /// That of the name itself: a link is not followed.
    pub fn of_name(path: &Path) -> io::Result<Self> {
        Self::from_parts(path, &std::fs::symlink_metadata(path)?)
    }

    /// That of an open file, which was opened as `path`.
    pub fn of_file(file: &File, path: &Path) -> io::Result<Self> {
        Self::from_parts(path, &file.metadata()?)
    }

    #[cfg(unix)]
    fn from_parts(_path: &Path, meta: &Metadata) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        Ok(Self((meta.dev(), meta.ino())))
    }

    #[cfg(not(unix))]
    fn from_parts(path: &Path, _meta: &Metadata) -> io::Result<Self> {
        path.canonicalize().map(Self)
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn links_and_spellings_lead_to_one_identity() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a"), "x").unwrap();
        std::fs::write(path("b"), "x").unwrap();
        std::fs::create_dir(path("sub")).unwrap();
        std::fs::hard_link(path("a"), path("hard")).unwrap();
        std::os::unix::fs::symlink("a", path("soft")).unwrap();
        let id = |name: &str| Identity::of(&path(name)).unwrap();
        for name in ["hard", "soft", "sub/../a", "./a"] {
            assert_eq!(id(name), id("a"), "{name}");
        }
        assert_ne!(id("b"), id("a"));
        assert_ne!(Identity::of_name(&path("soft")).unwrap(), id("a"));
        assert_eq!(Identity::of_file(&File::open(path("soft")).unwrap(), &path("soft")).unwrap(), id("a"));
        assert!(Identity::of(&path("none")).is_err());
    }
}
