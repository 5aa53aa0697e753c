//! A folder and all below it, in natural order of the whole names, with the names of one folder per level in memory.
//!
//! Folders whose names differ only in leading zeros (`1` and `01`) are walked together: in natural order of the whole
//! names their files are mixed.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::io;
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use dtkc_item::ItemError;

use crate::reader::read_head;
use crate::rules::{self, Sought, Verdict};
use crate::{Body, Found, Passed, Reason, Visitor, order, remote};

/// How often one folder is entered through links. Folders that link to the next one twice, and so on, would otherwise
/// have two to the power of their number ways.
const MAX_LINKS: usize = 100;

/// Visits the items of a folder and of all folders below it. Links are followed, except back into a folder that is
/// being walked.
pub(crate) fn visit(root: &Path, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    if remote::is(root) {
        return remote::visit(root, visitor);
    }
    let sought = visitor.sought();
    walk(root, usize::MAX, &mut |met| match met {
        Met::File(path, below) => match judge(&path, below, sought) {
            None => visitor.found(Found::below(root, below, Body::File(path))),
            Some(reason) => pass(root, below, reason, visitor),
        },
        Met::Passed(below, reason) => pass(root, below, reason, visitor),
        Met::Unreadable(below, error) => visitor.found(unlistable(root, below, &error)),
    })
}

/// Why a file is passed over, if it is.
fn judge(path: &Path, below: &str, sought: Sought) -> Option<Reason> {
    match rules::judge_last(below, sought) {
        Verdict::Take => None,
        Verdict::Pass(reason) => Some(reason),
        Verdict::Look => match read_head(path, rules::HEAD) {
            Ok(head) => (!sought.is_head(&head)).then_some(Reason::OtherContent),
            Err(_) => Some(Reason::Unreadable),
        },
    }
}

fn pass(root: &Path, below: &str, reason: Reason, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    visitor.passed(Passed { root, name: below, reason });
    ControlFlow::Continue(())
}

/// A folder that cannot be listed, in place of its items.
pub(crate) fn unlistable(root: &Path, below: &str, error: &io::Error) -> Found {
    let error = ItemError::new("unreadable_folder", format!("the folder cannot be read: {error}"));
    if below.is_empty() { Found::broken(root, error) } else { Found::below(root, below, Body::Broken(error)) }
}

/// What a walk meets. Names are those below the root; that of a folder ends with `/`.
pub(crate) enum Met<'a> {
    File(PathBuf, &'a str),
    Passed(&'a str, Reason),
    Unreadable(&'a str, io::Error),
}

/// Folders that were entered through links, and how often.
type Linked = HashMap<PathBuf, usize>;
type Seen<'a> = dyn FnMut(Met<'_>) -> ControlFlow<()> + 'a;

/// Walks a folder, at most `max_depth` folders down.
pub(crate) fn walk(root: &Path, max_depth: usize, seen: &mut Seen<'_>) -> ControlFlow<()> {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let trail = Rc::new(Trail { real, up: None });
    let root = Folder { path: root.to_owned(), below: String::new(), trail };
    let mut linked = HashMap::new();
    let mut levels = vec![Level::list(vec![root], seen)?];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.names.next() else {
            levels.pop();
            continue;
        };
        let below = level.below(&name);
        match name.kind {
            Kind::File => seen(Met::File(level.path(&name), &below))?,
            Kind::Passed(reason) => seen(Met::Passed(&below, reason))?,
            Kind::Folder { .. } => {
                let folders = level.enter(name, &mut linked, seen)?;
                if levels.len() <= max_depth && !folders.is_empty() {
                    levels.push(Level::list(folders, seen)?);
                }
            }
        }
    }
    ControlFlow::Continue(())
}

/// Folders that are walked together, nearly always one.
struct Level {
    folders: Vec<Folder>,
    names: Peekable<std::vec::IntoIter<Name>>,
}

struct Folder {
    path: PathBuf,
    /// Its name below the root, with a `/` at the end; empty for the root.
    below: String,
    trail: Rc<Trail>,
}

/// The way to a folder, with links resolved.
struct Trail {
    real: PathBuf,
    up: Option<Rc<Trail>>,
}

struct Name {
    /// As it is compared and shown: text, with a `/` at the end of a folder's.
    shown: Box<str>,
    /// Where the text is not the name itself.
    exact: Option<Box<OsStr>>,
    /// Which of the level's folders it lies in.
    folder: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder { link: bool },
    Passed(Reason),
}

impl Level {
    fn list(folders: Vec<Folder>, seen: &mut Seen<'_>) -> ControlFlow<(), Self> {
        let mut names = Vec::new();
        for (index, folder) in folders.iter().enumerate() {
            if let Err(error) = list(folder, index, &mut names) {
                seen(Met::Unreadable(&folder.below, error))?;
            }
        }
        let below = |name: &Name| folders[name.folder].below.bytes();
        let whole = |a: &Name, b: &Name| -> Ordering {
            below(a).chain(a.shown.bytes()).cmp(below(b).chain(b.shown.bytes())).then_with(|| a.exact.cmp(&b.exact))
        };
        names.sort_unstable_by(|a, b| order::by_value(&a.shown, &b.shown).then_with(|| whole(a, b)));
        ControlFlow::Continue(Self { folders, names: names.into_iter().peekable() })
    }

    fn below(&self, name: &Name) -> String {
        format!("{}{}", self.folders[name.folder].below, name.shown)
    }

    fn path(&self, name: &Name) -> PathBuf {
        let exact = name.exact.as_deref().unwrap_or(OsStr::new(name.shown.trim_end_matches('/')));
        self.folders[name.folder].path.join(exact)
    }

    /// A folder, and those after it that belong to it.
    fn enter(&mut self, first: Name, linked: &mut Linked, seen: &mut Seen<'_>) -> ControlFlow<(), Vec<Folder>> {
        let mut folders = Vec::new();
        let mut next = Some(first);
        while let Some(name) = next {
            let below = self.below(&name);
            match self.follow(&name, linked) {
                Some(trail) => folders.push(Folder { path: self.path(&name), below, trail: Rc::new(trail) }),
                None => seen(Met::Passed(&below, Reason::Circle))?,
            }
            let same = |n: &Name| {
                matches!(n.kind, Kind::Folder { .. }) && order::by_value(&n.shown, &name.shown) == Ordering::Equal
            };
            next = self.names.next_if(same);
        }
        ControlFlow::Continue(folders)
    }

    /// The way into a folder; `None` where it leads in a circle, or was gone too often.
    fn follow(&self, name: &Name, linked: &mut Linked) -> Option<Trail> {
        let up = self.folders[name.folder].trail.clone();
        let path = self.path(name);
        if name.kind != (Kind::Folder { link: true }) {
            let real = up.real.join(path.file_name()?);
            return Some(Trail { real, up: Some(up) });
        }
        // A link that cannot be resolved cannot be listed either, and is told then.
        let real = path.canonicalize().unwrap_or(path);
        let mut way = Some(&up);
        while let Some(trail) = way {
            if trail.real == real {
                return None;
            }
            way = trail.up.as_ref();
        }
        let times = linked.entry(real.clone()).or_default();
        *times += 1;
        (*times <= MAX_LINKS).then_some(Trail { real, up: Some(up) })
    }
}

/// Adds the names in a folder; those before an error stay.
fn list(folder: &Folder, index: usize, names: &mut Vec<Name>) -> io::Result<()> {
    for entry in std::fs::read_dir(&folder.path)? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = match rules::is_hidden(name.as_encoded_bytes()) {
            true => Kind::Passed(Reason::Hidden),
            false => kind_of(&entry)?,
        };
        let end = if matches!(kind, Kind::Folder { .. }) { "/" } else { "" };
        let shown = format!("{}{end}", name.to_string_lossy()).into();
        let exact = if name.to_str().is_none() { Some(name.into_boxed_os_str()) } else { None };
        names.push(Name { shown, exact, folder: index, kind });
    }
    Ok(())
}

/// A dangling link counts as a file, which then fails with a reason instead of vanishing.
fn kind_of(entry: &DirEntry) -> io::Result<Kind> {
    let kind = entry.file_type()?;
    if !kind.is_symlink() {
        return Ok(match () {
            () if kind.is_dir() => Kind::Folder { link: false },
            () if kind.is_file() => Kind::File,
            () => Kind::Passed(Reason::NotAFile),
        });
    }
    Ok(match std::fs::metadata(entry.path()) {
        Ok(meta) if meta.is_dir() => Kind::Folder { link: true },
        Ok(meta) if !meta.is_file() => Kind::Passed(Reason::NotAFile),
        _ => Kind::File,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{Log, PNG, fill};

    fn log(root: &Path) -> Log {
        let mut log = Log::default();
        assert!(visit(root, &mut log).is_continue());
        log
    }

    #[test]
    fn a_tree_is_walked_in_natural_order_of_the_whole_names() {
        let root = tempfile::tempdir().unwrap();
        fill(
            root.path(),
            &["b/2.png", "b/10.png", "a.jpg", "a-b/1.png", "a/1.png", "c/d/e.PNG", "notes.txt", "z.webp"],
        );
        fill(root.path(), &[".hidden/x.png", ".x.png", "b/__MACOSX/1.png"]);
        let log = log(root.path());
        let expected = ["a-b/1.png", "a.jpg", "a/1.png", "b/2.png", "b/10.png", "c/d/e.PNG", "z.webp"];
        assert_eq!(log.names(), expected);
        let mut sorted = expected.to_vec();
        sorted.sort_by(|a, b| order::natural(a, b));
        assert_eq!(sorted, expected);
        let passed: Vec<(&str, Reason)> = log.passed.iter().map(|(path, reason)| (path.as_str(), *reason)).collect();
        let path = |name: &str| format!("{}/{name}", root.path().display());
        let expected = [
            (path(".hidden"), Reason::Hidden),
            (path(".x.png"), Reason::Hidden),
            (path("b/__MACOSX"), Reason::Hidden),
            (path("notes.txt"), Reason::OtherExtension),
        ];
        assert_eq!(passed, expected.each_ref().map(|(path, reason)| (path.as_str(), *reason)));
        let slash = PathBuf::from(format!("{}/", root.path().display()));
        assert_eq!(self::log(&slash).found[1].path, path("a.jpg"));
    }

    /// Names that are equal but for zeros, files beside folders of the same value, at every level.
    #[test]
    fn level_by_level_is_the_same_as_all_at_once() {
        let root = tempfile::tempdir().unwrap();
        let parts = ["1", "01", "001", "a1", "a01", "a", "a-1", "2"];
        let mut expected = Vec::new();
        for (i, a) in parts.iter().enumerate() {
            for (j, b) in parts.iter().enumerate() {
                expected.push(format!("{a}/{b}.png"));
                if (i + j) % 2 == 0 {
                    expected.extend(parts.iter().map(|c| format!("{a}/{b}/{c}.png")));
                }
            }
        }
        expected.extend(parts.iter().map(|a| format!("{a}.png")));
        fill(root.path(), &expected.iter().map(String::as_str).collect::<Vec<_>>());
        expected.sort_by(|a, b| order::natural(a, b));
        assert_eq!(log(root.path()).names(), expected);
    }

    #[test]
    fn without_extension_the_content_tells() {
        let root = tempfile::tempdir().unwrap();
        fill(root.path(), &["a.png", "README"]);
        std::fs::write(root.path().join("photo"), PNG).unwrap();
        std::fs::write(root.path().join("table.csv"), PNG).unwrap();
        let log = log(root.path());
        assert_eq!(log.names(), ["a.png", "photo"]);
        assert_eq!(log.reasons(), [Reason::OtherContent, Reason::OtherExtension]);
    }

    #[test]
    fn archives_in_folders_are_not_opened() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a.zip"), crate::testing::zip(&[("1.png", PNG)])).unwrap();
        std::fs::write(root.path().join("b"), crate::testing::tar(&[("1.png", PNG)])).unwrap();
        assert_eq!(log(root.path()).reasons(), [Reason::OtherExtension, Reason::OtherContent]);
    }

    #[test]
    fn a_visitor_can_stop() {
        let root = tempfile::tempdir().unwrap();
        fill(root.path(), &["1.png", "2.png", "a/3.png"]);
        let mut count = 0;
        let flow = visit(root.path(), &mut |_: Found| {
            count += 1;
            if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(flow.is_break() && count == 2);
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let root = tempfile::tempdir().unwrap();
        let log = log(&root.path().join("gone"));
        let Body::Broken(error) = &log.found[0].body else { panic!("{log:?}") };
        assert_eq!((&*error.code, log.found[0].root()), ("unreadable_folder", None));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_but_not_in_circles() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        fill(root.path(), &["a/1.png"]);
        fill(other.path(), &["2.png"]);
        symlink(root.path(), root.path().join("a/up")).unwrap();
        symlink(root.path().join("a"), root.path().join("b")).unwrap();
        symlink(root.path().join("gone.png"), root.path().join("c.png")).unwrap();
        symlink(root.path().join("gone"), root.path().join("bare")).unwrap();
        symlink(other.path(), root.path().join("d")).unwrap();
        symlink("/dev/zero", root.path().join("zero.png")).unwrap();
        let log = log(root.path());
        assert_eq!(log.names(), ["a/1.png", "b/1.png", "c.png", "d/2.png"]);
        let expected = [Reason::Circle, Reason::Circle, Reason::Unreadable, Reason::NotAFile];
        assert_eq!(log.reasons(), expected);
        assert_eq!(dtkc_item::read_file(Path::new(&log.found[2].path), 9).unwrap_err().code, "unreadable");
    }

    /// Each folder links twice to the next: two to the power of twenty ways.
    #[cfg(unix)]
    #[test]
    fn links_that_multiply_come_to_an_end() {
        let root = tempfile::tempdir().unwrap();
        for i in 0..20 {
            std::fs::create_dir(root.path().join(format!("{i}"))).unwrap();
            let next = root.path().join(format!("{}", i + 1));
            for name in ["x", "y"] {
                std::os::unix::fs::symlink(&next, root.path().join(format!("{i}/{name}"))).unwrap();
            }
        }
        fill(root.path(), &["20/1.png"]);
        assert_eq!(log(&root.path().join("17")).found.len(), 8);
        let log = log(&root.path().join("0"));
        assert_eq!(log.found.len(), MAX_LINKS);
        assert!(!log.passed.is_empty() && log.passed.iter().all(|(_, reason)| *reason == Reason::Circle));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn names_that_are_not_text_are_read_all_the_same() {
        use std::os::unix::ffi::OsStrExt;
        let root = tempfile::tempdir().unwrap();
        for name in [&b"b\xff.png"[..], b"a\xfe/1.png"] {
            let path = root.path().join(OsStr::from_bytes(name));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        let log = log(root.path());
        assert_eq!(log.names(), ["a\u{fffd}/1.png", "b\u{fffd}.png"]);
        for found in &log.found {
            let Body::File(path) = &found.body else { panic!("{found:?}") };
            assert_eq!(std::fs::read(path).unwrap(), b"x");
        }
    }

    /// Deeper than a recursive walk would have stack for.
    #[cfg(target_os = "linux")]
    #[test]
    fn deep_folders_need_no_stack() {
        let root = tempfile::tempdir().unwrap();
        let mut path = root.path().to_owned();
        path.extend(["a"; 400]);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("1.png"), b"x").unwrap();
        let start = root.path().to_owned();
        let walked = std::thread::Builder::new().stack_size(32 << 10).spawn(move || log(&start).found.len());
        assert_eq!(walked.unwrap().join().unwrap(), 1);
    }
}
