//! A folder of images, or image files named one by one.

use std::io::Read;
use std::path::{Path, PathBuf};

use dtkc_image::Limits;
use dtkc_item::ItemError;
use walkdir::WalkDir;

use super::super::record::{Content, ContentForm, Description, Importer, Record, Sample, Sink};
use super::super::{ImportError, natural};
use super::names::{self, Labels, LabelsFrom};
use super::{is_wanted, sample, spread};

/// Enough of a file for nearly every header.
const HEAD: u64 = 64 << 10;

/// Images of a folder in natural order, whatever order the disk has them in.
pub struct FolderSource {
    files: Vec<PathBuf>,
    shown: Vec<String>,
    labels: Vec<Option<i64>>,
    unreadable: Vec<(String, String)>,
    description: Description,
}

/// What was found below a folder.
#[derive(Debug, Default)]
pub struct Listing {
    /// The folder's name.
    pub name: Option<String>,
    /// Images, with their paths below the folder.
    pub files: Vec<(PathBuf, String)>,
    /// Folders that could not be opened, and why.
    pub unreadable: Vec<(String, String)>,
    /// Files that are no images by their names.
    pub others: usize,
}

/// Lists the images below a folder. Links are followed; a link back to a folder above is not.
pub fn list(root: &Path) -> Result<Listing, ImportError> {
    let name = std::path::absolute(root).ok().and_then(|p| Some(p.file_name()?.to_string_lossy().into_owned()));
    let mut listing = Listing { name, ..Listing::default() };
    let mut bare = Vec::new();
    let hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".") || name == "__MACOSX";
    let walk = WalkDir::new(root).follow_links(true).into_iter();
    for entry in walk.filter_entry(|e| e.depth() == 0 || !hidden(e.file_name())) {
        let entry = match entry {
            Ok(entry) => entry,
            // The folder is walked already, from above.
            Err(error) if error.loop_ancestor().is_some() => continue,
            Err(error) if error.depth() == 0 => return Err(unreadable_root(root, error)),
            Err(error) => {
                let path = error.path().map_or_else(String::new, |p| relative(root, p));
                let reason = error.into_io_error().map_or_else(|| "cannot be read".to_owned(), |e| e.to_string());
                listing.unreadable.push((path, reason));
                continue;
            }
        };
        if !entry.file_type().is_file() {
            continue;
        }
        let shown = relative(root, entry.path());
        if is_wanted(&shown) {
            listing.files.push((entry.into_path(), shown));
        } else {
            listing.others += 1;
            if Path::new(&shown).extension().is_none() {
                bare.push((entry.into_path(), shown));
            }
        }
    }
    if listing.files.is_empty() {
        // Collections without extensions exist; their first bytes tell.
        bare.retain(|(path, _)| head(path).is_some_and(|h| super::matches(&h)));
        listing.files = bare;
    }
    listing.files.sort_by(|a, b| natural::compare(&a.1, &b.1).then_with(|| a.0.cmp(&b.0)));
    listing.unreadable.sort();
    Ok(listing)
}

fn unreadable_root(root: &Path, error: walkdir::Error) -> ImportError {
    match error.into_io_error() {
        Some(error) => ImportError::file(root, format!("the folder cannot be read: {error}")),
        None => ImportError::file(root, "the folder cannot be read"),
    }
}

fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = below.components().map(|c| c.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(HEAD).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

impl FolderSource {
    /// A source of what [`list`] found.
    pub fn new(listing: Listing, from: LabelsFrom) -> Self {
        let (files, shown): (Vec<PathBuf>, Vec<String>) = listing.files.into_iter().unzip();
        let Labels { classes, labels, coil, notes } = names::label(&shown, from);
        let description = Description {
            format: if coil { "COIL folder" } else { "folder of images" },
            form: ContentForm::Encoded,
            count: Some((files.len() + listing.unreadable.len()) as u64),
            classes,
            paths: true,
            origin: listing.name,
            notes,
        };
        Self { files, shown, labels, unreadable: listing.unreadable, description }
    }

    /// A source of files that the user named one by one, in that order.
    pub fn of_files(files: Vec<PathBuf>, from: LabelsFrom) -> Self {
        let shown = |f: &PathBuf| f.to_string_lossy().into_owned();
        let files = files.into_iter().map(|f| (f.clone(), shown(&f))).collect();
        Self::new(Listing { files, ..Listing::default() }, from)
    }
}

impl Importer for FolderSource {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn samples(&mut self, wanted: usize) -> Result<Vec<Sample>, ImportError> {
        let limits = Limits::default();
        let one = |path: &PathBuf| {
            let whole =
                || std::fs::metadata(path).is_ok_and(|m| m.len() <= limits.max_bytes).then(|| std::fs::read(path).ok());
            sample(&head(path)?, &limits).or_else(|| sample(&whole()??, &limits))
        };
        Ok(spread(self.files.len(), wanted).filter_map(|i| one(&self.files[i])).collect())
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ImportError> {
        for (path, reason) in &self.unreadable {
            let content = Content::Unreadable(ItemError::new("unreadable_folder", reason));
            if sink(Record { content, label: None, path: Some(path.clone()) })?.is_break() {
                return Ok(());
            }
        }
        for ((file, shown), label) in self.files.iter().zip(&self.shown).zip(&self.labels) {
            let content = Content::File(file.clone());
            if sink(Record { content, label: *label, path: Some(shown.clone()) })?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &Path, names: &[&str]) {
        for name in names {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
    }

    fn shown(root: &Path) -> Vec<String> {
        list(root).unwrap().files.into_iter().map(|f| f.1).collect()
    }

    #[test]
    fn images_are_listed_in_natural_order() {
        let folder = tempfile::tempdir().unwrap();
        touch(folder.path(), &["b/img10.png", "b/img9.png", "a.jpg", ".hidden/c.png", "._a.jpg", "notes.txt"]);
        assert_eq!(shown(folder.path()), ["a.jpg", "b/img9.png", "b/img10.png"]);
        assert_eq!(list(folder.path()).unwrap().others, 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_loops_survive() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        touch(folder.path(), &["a/1.png"]);
        touch(other.path(), &["2.png"]);
        std::os::unix::fs::symlink(folder.path(), folder.path().join("a/loop")).unwrap();
        std::os::unix::fs::symlink(other.path(), folder.path().join("b")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("gone"), folder.path().join("dangling.png")).unwrap();
        let listing = list(folder.path()).unwrap();
        let names: Vec<_> = listing.files.iter().map(|f| f.1.as_str()).collect();
        assert_eq!(names, ["a/1.png", "b/2.png"]);
        assert_eq!(listing.unreadable.len(), 1, "{:?}", listing.unreadable);
    }

    #[test]
    fn without_extensions_the_content_tells() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("photo"), b"\x89PNG\r\n\x1a\n").unwrap();
        std::fs::write(folder.path().join("README"), b"hello").unwrap();
        assert_eq!(shown(folder.path()), ["photo"]);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = list(&folder.path().join("gone")).unwrap_err().to_string();
        assert!(error.contains("gone") && error.contains("cannot be read"), "{error}");
    }
}
