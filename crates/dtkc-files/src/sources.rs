//! What a program reads, so that it does not write over it.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::{Identity, folder_of};

/// Files and folders that a program reads, known by what they are and not by how they are spelled.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: HashMap<Identity, PathBuf>,
    folders: HashMap<Identity, PathBuf>,
}

/// Why an output is refused, in one sentence with the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl Sources {
    /// What these paths lead to.
    pub fn of<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        let mut sources = Self::default();
        paths.into_iter().for_each(|path| sources.add(path.as_ref()));
        sources
    }

    /// Adds a file, or a folder with all that is below it. What is not there cannot be written over.
    pub fn add(&mut self, path: &Path) {
        let Ok(identity) = Identity::of(path) else { return };
        let of_kind = if path.is_dir() { &mut self.folders } else { &mut self.files };
        of_kind.entry(identity).or_insert_with(|| path.to_owned());
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folders.is_empty()
    }

    /// Whether a path leads to one of the files.
    pub fn has_file(&self, path: &Path) -> bool {
        Identity::of(path).is_ok_and(|identity| self.files.contains_key(&identity))
    }

    /// Refuses an output that is, or lies among, what is read, and one that is there already unless `force` says that it
    /// may be replaced.
    pub fn check(&self, out: &Path, force: bool) -> Result<(), Refused> {
        self.refuse(out).and_then(|()| refuse_existing(out, force))
    }

    /// Refuses an output that is one of these files or lies in one of these folders.
    pub fn refuse(&self, out: &Path) -> Result<(), Refused> {
        if let Some(input) = Identity::of(out).ok().and_then(|identity| self.files.get(&identity)) {
            let (out, input) = (out.display().to_string(), input.display().to_string());
            let which = if out == input { String::new() } else { format!(" ({input})") };
            return Err(Refused(format!(
                "{out} is one of the inputs{which}, which would be replaced; choose another name for the output"
            )));
        }
        for place in [real(folder_of(out)), real(out)] {
            let identities = place.ancestors().filter_map(|folder| Identity::of(folder).ok());
            if let Some(folder) = identities.into_iter().find_map(|identity| self.folders.get(&identity)) {
                return Err(Refused(format!(
                    "{} lies in {}, which is read; choose a place for the output outside of it",
                    out.display(),
                    folder.display()
                )));
            }
        }
        Ok(())
    }
}

/// Refuses an output that is there already, unless the user said that it may be replaced.
pub fn refuse_existing(out: &Path, force: bool) -> Result<(), Refused> {
    match !force && out.symlink_metadata().is_ok() {
        true => {
            Err(Refused(format!("{} exists already; add --force to replace it, or choose another name", out.display())))
        }
        false => Ok(()),
    }
}

/// Refuses outputs of which two are the same file: one would replace the other.
pub fn refuse_twins(outs: &[&Path]) -> Result<(), Refused> {
    let mut seen = HashMap::new();
    for out in outs {
        if let Some(twin) = seen.insert(real(out), out) {
            let (out, twin) = (out.display(), twin.display());
            return Err(Refused(format!(
                "two outputs would be the same file ({twin} and {out}); give each its own name"
            )));
        }
    }
    Ok(())
}

/// The path with links resolved, as far as it exists.
pub fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = path.ancestors().find_map(|a| Some((a, a.canonicalize().ok()?)));
    match existing {
        Some((ancestor, real)) => match path.strip_prefix(ancestor) {
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        },
        None => path,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("photos/deep")).unwrap();
        for name in ["set.h5", "photos/1.png", "other.h5"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        folder
    }

    fn said(result: Result<(), Refused>) -> String {
        result.map_or_else(|refused| refused.to_string(), |()| "fine".into())
    }

    #[test]
    fn an_output_is_not_an_input_however_it_is_spelled() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        let sources = Sources::of([path("set.h5"), path("photos"), path("gone.h5")]);
        let mut among = vec!["set.h5", "./set.h5", "photos/../set.h5"];
        let mut within =
            vec!["photos/1.png", "photos/new.h5", "photos/deep/new.h5", "photos/deep/../new.h5", "photos/no/x"];
        #[cfg(unix)]
        {
            std::fs::hard_link(path("set.h5"), path("hard.h5")).unwrap();
            std::os::unix::fs::symlink("set.h5", path("soft.h5")).unwrap();
            std::os::unix::fs::symlink("photos/deep", path("way")).unwrap();
            std::os::unix::fs::symlink("../photos/1.png", path("photos/deep/loop.png")).unwrap();
            among.extend(["hard.h5", "soft.h5"]);
            within.extend(["way/new.h5", "photos/deep/loop.png"]);
        }
        for name in among.drain(..) {
            let text = said(sources.check(&path(name), true));
            assert!(text.contains("is one of the inputs"), "{name}: {text}");
        }
        for name in within.drain(..) {
            let text = said(sources.check(&path(name), true));
            assert!(text.contains("which is read"), "{name}: {text}");
        }
        for name in ["new.h5", "photos.h5", "photos-2/x.h5", "gone.h5"] {
            assert_eq!(said(sources.check(&path(name), false)), "fine", "{name}");
        }
    }

    #[test]
    fn an_existing_output_needs_to_be_asked_for() {
        let folder = folder();
        let out = folder.path().join("other.h5");
        let text = said(Sources::default().check(&out, false));
        assert!(text.contains("other.h5 exists already; add --force"), "{text}");
        assert_eq!(said(Sources::default().check(&out, true)), "fine");
        #[cfg(unix)]
        {
            let dangling = folder.path().join("dangling");
            std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
            assert!(said(refuse_existing(&dangling, false)).contains("exists already"));
        }
    }

    #[test]
    fn two_outputs_are_two_files() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        assert_eq!(said(refuse_twins(&[&path("a.csv"), &path("b.csv")])), "fine");
        let text = said(refuse_twins(&[&path("a.csv"), &path("b.csv"), &path("photos/../a.csv")]));
        assert!(text.contains("two outputs would be the same file"), "{text}");
    }
}
