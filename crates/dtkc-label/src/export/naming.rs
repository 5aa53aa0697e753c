//! How a tool finds the images: by their paths, by names below a folder, or by addresses.

use std::path::{Component, Path, PathBuf};

use super::text::percent;
use crate::error::{LabelError, Result};

/// What stands before paths in Label Studio, for files of its own machine.
const LOCAL_FILES: &str = "/data/local-files/?d=";

/// How images are named.
#[derive(Debug, Clone)]
pub struct Naming {
    /// The folder that names are below.
    root: PathBuf,
    /// Whether the user chose it.
    chosen: bool,
    /// Whether paths go from it, and not from the current folder.
    from_root: bool,
    /// What stands before names in addresses, where the user said it.
    url: Option<String>,
}

impl Naming {
    /// Names below `root`, or below what all of `places` have in common.
    pub fn new(root: Option<&Path>, url: Option<&str>, places: &[PathBuf]) -> Result<Self> {
        let chosen = root.is_some();
        let mut places = places.iter().map(|place| absolute(place)).collect::<Result<Vec<_>>>()?.into_iter();
        let root = match root {
            Some(root) => absolute(root)?,
            None => match places.next() {
                Some(first) => places.fold(first, |root, place| common(&root, &place)),
                None => absolute(Path::new("."))?,
            },
        };
        Ok(Self { root, chosen, from_root: false, url: url.map(str::to_owned) })
    }

    /// The same for paths that go from the root, as those in datasets.
    #[must_use]
    pub fn from_root(self) -> Self {
        Self { from_root: true, ..self }
    }

    /// The folder that names are below.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The whole path of an image.
    pub(super) fn path(&self, path: &str) -> Result<String> {
        Ok(self.whole(path)?.to_string_lossy().into_owned())
    }

    fn whole(&self, path: &str) -> Result<PathBuf> {
        if self.from_root { absolute(&self.root.join(path)) } else { absolute(Path::new(path)) }
    }

    /// The name of an image below the root, with `/` between its parts on every system.
    pub(super) fn name(&self, path: &str) -> Result<String> {
        below(&self.root, &self.whole(path)?)
    }

    /// Where a browser finds an image.
    pub(super) fn address(&self, path: &str) -> Result<String> {
        let local = || if self.chosen { self.name(path) } else { below(Path::new("/"), &self.whole(path)?) };
        match &self.url {
            Some(url) => Ok(format!("{url}{}", percent(&self.name(path)?))),
            None => Ok(format!("{LOCAL_FILES}{}", percent(&local()?))),
        }
    }

    /// Refuses places that do not lie below the root, before any work is done.
    pub fn check(&self, places: &[PathBuf]) -> Result<()> {
        places.iter().try_for_each(|place| match absolute(place)?.starts_with(&self.root) {
            true => Ok(()),
            false => Err(outside(&self.root, &place.to_string_lossy())),
        })
    }
}

fn below(root: &Path, whole: &Path) -> Result<String> {
    let name = whole.strip_prefix(root).map_err(|_| outside(root, &whole.to_string_lossy()))?;
    let parts = name.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_string_lossy()),
        _ => None,
    });
    Ok(parts.collect::<Vec<_>>().join("/"))
}

fn outside(root: &Path, path: &str) -> LabelError {
    LabelError::Usage(format!(
        "{path} does not lie below {}, so an export cannot name it; choose a folder that holds all images with --export-root",
        root.display()
    ))
}

/// From the root of the file system on, without `.` and `..`, by the words alone: the images may be elsewhere by now.
fn absolute(path: &Path) -> Result<PathBuf> {
    let mut clean = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    Ok(clean)
}

fn common(a: &Path, b: &Path) -> PathBuf {
    a.components().zip(b.components()).take_while(|(a, b)| a == b).map(|(part, _)| part).collect()
}

#[cfg(test)]
#[cfg(unix)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_lie_below_what_the_inputs_share() {
        let naming = Naming::new(None, None, &["/data/in/a".into(), "/data/x/../in/b".into()]).unwrap();
        assert_eq!(naming.root(), Path::new("/data/in"));
        assert_eq!(naming.name("/data/in/a/./1.png").unwrap(), "a/1.png");
        assert_eq!(naming.address("/data/in/a/1 2.png").unwrap(), "/data/local-files/?d=data/in/a/1%202.png");
        assert_eq!(naming.path("/data/in/../1.png").unwrap(), "/data/1.png");
        let error = naming.name("/data/1.png").unwrap_err().to_string();
        assert!(
            error.contains("/data/1.png does not lie below /data/in") && error.contains("--export-root"),
            "{error}"
        );
        let here = Naming::new(None, None, &[]).unwrap();
        assert_eq!(here.name("a/1.png").unwrap(), "a/1.png");
    }

    #[test]
    fn roots_and_addresses_are_the_users() {
        let places = ["/data/in".into()];
        let naming = Naming::new(Some(Path::new("/data")), None, &places).unwrap();
        assert_eq!(naming.address("/data/in/1.png").unwrap(), "/data/local-files/?d=in/1.png");
        naming.check(&places).unwrap();
        assert!(naming.check(&["/dat".into()]).is_err());
        let naming = naming.from_root();
        assert_eq!(naming.address("in/1.png").unwrap(), "/data/local-files/?d=in/1.png");
        assert_eq!(naming.path("in/1.png").unwrap(), "/data/in/1.png");
        assert!(naming.name("../1.png").is_err());
        let naming = Naming::new(None, Some("https://example.org/"), &places).unwrap();
        assert_eq!(naming.address("/data/in/a#b.png").unwrap(), "https://example.org/a%23b.png");
    }
}
