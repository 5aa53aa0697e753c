//! One input, as a person names it.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dtkc_item::ItemError;

use crate::archive::{FileKind, kind_of, tar, zip};
use crate::glob::{self, Pattern};
use crate::list::List;
use crate::remote::{self, At, Shown};
use crate::rules::has_image_extension;
use crate::{Body, Found, SourceError, Visitor, folder, parquet, ranges};

/// One input: where items are looked for. It can be visited as often as needed, always with the same result while
/// nothing changes on the disk: positions, shards and resuming rest on that.
#[derive(Debug)]
pub enum Input {
    /// A folder and all below it.
    Folder(PathBuf),
    /// A file that is an item itself.
    File(PathBuf),
    /// A zip archive.
    Zip(PathBuf),
    /// A tar archive, packed or not.
    Tar(PathBuf),
    /// A Parquet file with an image in every row.
    Parquet(PathBuf),
    /// Files that match a pattern.
    Glob(Pattern),
    /// Files, folders and archives that standard input names.
    List(List),
}

impl Input {
    /// Finds out what an input is, by looking at it, and refuses what is not there or cannot be opened. What is in a
    /// Parquet file is looked at when it is visited.
    pub fn open(text: &str) -> Result<Self, SourceError> {
        if text == "-" {
            return Ok(Self::List(List::default()));
        }
        let path = Path::new(text);
        if remote::is_text(text) {
            return Self::of_address(text);
        }
        match fs_err::metadata(path) {
            Ok(meta) if meta.is_dir() => Ok(Self::Folder(path.to_owned())),
            Ok(meta) if meta.is_file() => Self::of_file(path),
            Ok(_) => {
                Err(SourceError::input(text, "is a pipe, a socket or a device; name a file, or - for a list of files"))
            }
            Err(_) if glob::is_pattern(text) => Ok(Self::Glob(Pattern::new(text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SourceError::input(text, "does not exist; check the path"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// An address. A pattern is one unless an object is called so.
    fn of_address(text: &str) -> Result<Self, SourceError> {
        let path = Path::new(text);
        match remote::at(path) {
            Ok(At::Folder) => Ok(Self::Folder(path.to_owned())),
            Ok(At::File(_) | At::Other) => Self::of_file(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound && remote::is_pattern(text) => {
                Ok(Self::Glob(Pattern::new(text)?))
            }
            Err(error) => Err(SourceError::Store(format!("{}: {error}", Shown(text)))),
        }
    }

    /// A file that exists. Archives are opened once, so that a wrong one is reported at the start.
    fn of_file(path: &Path) -> Result<Self, SourceError> {
        let unreadable = |e: io::Error| SourceError::file(path, format!("it cannot be read ({e})"));
        match kind_of(path).map_err(unreadable)? {
            FileKind::Zip => {
                zip::check(path)?;
                Ok(Self::Zip(path.to_owned()))
            }
            FileKind::Tar => {
                tar::check(path)?;
                Ok(Self::Tar(path.to_owned()))
            }
            FileKind::Parquet => Ok(Self::Parquet(path.to_owned())),
            FileKind::Image | FileKind::Other => Ok(Self::File(path.to_owned())),
        }
    }

    /// Shows every item to `visitor`, in order, until it has seen enough. Finding reads no items, except those of a
    /// packed tar, of which none larger than `max_bytes` is read.
    pub fn visit(&self, max_bytes: u64, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>, SourceError> {
        Ok(match self {
            Self::Folder(path) => folder::visit(path, visitor),
            Self::File(path) => visitor.found(Found::file(path)),
            Self::Zip(path) => zip::visit(path, visitor),
            Self::Tar(path) => tar::visit(path, max_bytes, visitor),
            Self::Parquet(path) => parquet::visit(path, visitor),
            Self::Glob(pattern) => pattern.visit(max_bytes, visitor),
            Self::List(list) => return list.visit(max_bytes, visitor),
        })
    }

    /// The folder on the disk that is walked, if one is: nothing should be written into it meanwhile.
    pub fn folder(&self) -> Option<&Path> {
        let folder = match self {
            Self::Folder(path) => Some(path.as_path()),
            Self::Glob(pattern) => Some(pattern.base()),
            _ => None,
        };
        folder.filter(|folder| !remote::is(folder))
    }
}

/// The texts that one with ranges of numbers such as `{000..099}` stands for, unless a file is called so; else itself.
pub fn expand_ranges(text: &str) -> Result<Vec<String>, SourceError> {
    match ranges::expand(text).filter(|_| remote::is_text(text) || !Path::new(text).exists()) {
        Some(texts) => texts,
        None => Ok(vec![text.to_owned()]),
    }
}

/// The paths that an argument stands for: those on standard input for `-`, those that match for a pattern that is not
/// itself a file, otherwise itself. For whoever decides by himself what to do with each.
pub fn expand(text: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let mut paths = Vec::new();
    let mut keep = |path: &Path| {
        paths.push(path.to_owned());
        ControlFlow::Continue(())
    };
    let shown = text.to_string_lossy();
    let texts = expand_ranges(&shown)?;
    if texts.len() > 1 || texts[0] != shown {
        let all = texts.iter().map(|text| expand(Path::new(text))).collect::<Result<Vec<_>, _>>()?;
        return Ok(all.concat());
    }
    if shown == "-" {
        // Nobody stops it.
        let _ = List::default().each(&mut keep)?;
        if paths.is_empty() {
            return Err(SourceError::input("-", "names no files; write one path per line"));
        }
    } else if is_open_pattern(text, &shown)? {
        let mut unreadable = None;
        let _ = Pattern::new(&shown)?.each(&mut |path| match path {
            Ok(path) => keep(path),
            Err(found) => {
                unreadable = Some(found);
                ControlFlow::Break(())
            }
        });
        if let Some(Found { path, body: Body::Broken(error), .. }) = unreadable {
            return Err(SourceError::file(Path::new(&path), error.message));
        }
        if paths.is_empty() {
            return Err(SourceError::input(shown, "matches no file; check the pattern"));
        }
    } else {
        paths.push(text.to_owned());
    }
    Ok(paths)
}

/// Whether a text is a pattern, and not the name of something that is there.
fn is_open_pattern(path: &Path, text: &str) -> Result<bool, SourceError> {
    if !remote::is_text(text) {
        return Ok(glob::is_pattern(text) && !path.exists());
    }
    if !remote::is_pattern(text) {
        return Ok(false);
    }
    match remote::at(path) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(SourceError::Store(format!("{}: {error}", Shown(text)))),
    }
}

/// Visits one path that a pattern or a list names: an archive is opened, a folder is walked, any other file counts as an
/// item. What cannot be opened fails alone. A file with the name of an image is left to whoever reads it.
pub(crate) fn visit_named(path: &Path, max_bytes: u64, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    // What has the name of an image in a store is not asked for twice.
    if remote::is(path) && has_image_extension(path) {
        return visitor.found(Found::file(path));
    }
    let kind = match remote::at(path) {
        Ok(At::Folder) => return folder::visit(path, visitor),
        Ok(At::Other) => return visitor.found(Found::broken(path, ItemError::not_a_file())),
        Ok(_) if !has_image_extension(path) => match visitor.named(path) {
            Some(flow) => return flow,
            None => kind_of(path).unwrap_or(FileKind::Other),
        },
        _ => FileKind::Image,
    };
    match kind {
        FileKind::Zip => zip::visit(path, visitor),
        FileKind::Tar => tar::visit(path, max_bytes, visitor),
        FileKind::Parquet => parquet::visit(path, visitor),
        FileKind::Image | FileKind::Other => visitor.found(Found::file(path)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Reason;
    use crate::testing::{Log, PNG, bz2, fill, tar as tar_of, zip as zip_of};

    #[test]
    fn inputs_are_known_by_what_they_are() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name).to_string_lossy().into_owned();
        let write = |name: &str, bytes: &[u8]| std::fs::write(path(name), bytes).unwrap();
        fill(root.path(), &["photos/1.png", "odd[name].png"]);
        write("a", &zip_of(&[("1.png", PNG)]));
        write("b", &bz2(&tar_of(&[("1.png", PNG)])));
        write("c.tar.gz", b"no tar");
        write("d.zip", b"no zip");
        write("e.dat", b"anything");
        assert!(matches!(Input::open("-").unwrap(), Input::List(_)));
        assert!(matches!(Input::open(&path("photos")).unwrap(), Input::Folder(_)));
        assert!(matches!(Input::open(&path("odd[name].png")).unwrap(), Input::File(_)));
        assert!(matches!(Input::open(&path("p*")).unwrap(), Input::Glob(_)));
        assert!(matches!(Input::open(&path("a")).unwrap(), Input::Zip(_)));
        assert!(matches!(Input::open(&path("b")).unwrap(), Input::Tar(_)));
        assert!(matches!(Input::open(&path("e.dat")).unwrap(), Input::File(_)));
        let error = |text: &str| Input::open(text).unwrap_err().to_string();
        assert!(error(&path("c.tar.gz")).contains("cut off"), "{}", error(&path("c.tar.gz")));
        assert!(error(&path("d.zip")).contains("not a readable zip"));
        assert!(error(&path("gone")).contains("does not exist"));
        #[cfg(unix)]
        assert!(error("/dev/zero").contains("a device"));
    }

    #[test]
    fn every_container_gives_the_same_items() {
        let root = tempfile::tempdir().unwrap();
        let entries: &[(&str, &[u8])] = &[
            ("cat/2.png", b"2"),
            ("cat/10.png", b"10"),
            ("cat/photo", PNG),
            ("dog/README", b"no"),
            ("dog/notes.txt", b"no"),
            ("dog/._1.png", b"no"),
        ];
        for (name, bytes) in entries {
            let path = root.path().join("folder").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        std::fs::write(root.path().join("a.zip"), zip_of(entries)).unwrap();
        std::fs::write(root.path().join("a.tar"), tar_of(entries)).unwrap();
        std::fs::write(root.path().join("a.tar.bz2"), bz2(&tar_of(entries))).unwrap();
        for name in ["folder", "a.zip", "a.tar", "a.tar.bz2"] {
            let input = Input::open(&root.path().join(name).to_string_lossy()).unwrap();
            for _ in 0..2 {
                let mut log = Log::default();
                assert!(input.visit(1000, &mut log).unwrap().is_continue());
                assert_eq!(log.names(), ["cat/2.png", "cat/10.png", "cat/photo"], "{name}");
                let mut reasons = log.reasons();
                reasons.sort();
                assert_eq!(reasons, [Reason::Hidden, Reason::OtherExtension, Reason::OtherContent], "{name}");
                let mut reader = crate::BodyReader::new(1000);
                let contents: Vec<_> = log.found.iter_mut().map(|f| reader.read(&mut f.body).unwrap()).collect();
                assert_eq!(contents, [b"2".as_slice(), b"10", PNG], "{name}");
            }
        }
    }

    #[test]
    fn patterns_stand_for_what_they_match() {
        let root = tempfile::tempdir().unwrap();
        fill(root.path(), &["a/2.png", "a/10.png", "odd[1].png"]);
        let paths = |text: &str| expand(&root.path().join(text));
        assert_eq!(paths("a/*").unwrap(), [root.path().join("a/2.png"), root.path().join("a/10.png")]);
        assert_eq!(paths("odd[1].png").unwrap(), [root.path().join("odd[1].png")]);
        assert_eq!(paths("gone").unwrap(), [root.path().join("gone")]);
        assert_eq!(paths("a/{2..1}.jpg").unwrap(), [root.path().join("a/2.jpg"), root.path().join("a/1.jpg")]);
        assert_eq!(paths("a/{10..10}.*").unwrap(), [root.path().join("a/10.png")]);
        assert_eq!(expand_ranges("x{1..2}").unwrap(), ["x1", "x2"]);
        for (text, words) in [("a/*.jpg", "matches no file"), ("gone/*.jpg", "not a folder"), ("a[", "not a valid")] {
            let error = paths(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn what_is_named_is_tried_and_fails_alone() {
        struct Datasets(Log, usize);
        impl Visitor for Datasets {
            fn found(&mut self, found: Found) -> ControlFlow<()> {
                self.0.found(found)
            }
            fn named(&mut self, path: &Path) -> Option<ControlFlow<()>> {
                (path.extension()? == "h5").then(|| {
                    self.1 += 1;
                    ControlFlow::Continue(())
                })
            }
        }
        let root = tempfile::tempdir().unwrap();
        fill(root.path(), &["a.txt", "set.h5", "folder/1.png", "bad.zip"]);
        let mut log = Datasets(Log::default(), 0);
        for name in ["a.txt", "set.h5", "folder", "gone.dat", "bad.zip"] {
            assert!(visit_named(&root.path().join(name), 1000, &mut log).is_continue());
        }
        #[cfg(unix)]
        assert!(visit_named(Path::new("/dev/zero"), 1000, &mut log).is_continue());
        let Datasets(log, datasets) = log;
        assert_eq!(datasets, 1);
        let kinds: Vec<bool> = log.found.iter().map(|f| matches!(f.body, Body::File(_))).collect();
        assert_eq!(kinds[..4], [true, true, true, false]);
        assert_eq!(log.found[1].name(), "1.png");
        #[cfg(unix)]
        assert!(matches!(&log.found[4].body, Body::Broken(e) if e.message.contains("device")));
    }
}
