//! Patterns such as `photos/**/*.jpg`, for shells that do not expand them and for lists too long for a command line.

use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::folder::{self, Met};
use crate::input::visit_named;
use crate::rules::is_hidden;
use crate::{Found, SourceError, Visitor, remote};

const SPECIAL: [char; 4] = ['*', '?', '[', '{'];

/// True where the text is more than a plain path.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(SPECIAL)
}

/// A pattern, and the folder where its walk begins.
#[derive(Debug)]
pub struct Pattern {
    base: PathBuf,
    max_depth: usize,
    matcher: GlobMatcher,
}

impl Pattern {
    /// Reads a pattern; the folder before its first special character must be there.
    pub fn new(text: &str) -> Result<Self, SourceError> {
        if remote::is_text(text) {
            return Self::of_objects(text);
        }
        let path = Path::new(text);
        let plain = |part: &Component<'_>| !is_pattern(&part.as_os_str().to_string_lossy());
        let base: PathBuf = path.components().take_while(plain).collect();
        let rest = path.components().count() - base.components().count();
        let glob = GlobBuilder::new(text.trim_start_matches("./")).literal_separator(true).build();
        let glob = glob.map_err(|e| SourceError::input(text, format!("is not a valid pattern ({})", e.kind())))?;
        let base = if base.as_os_str().is_empty() { PathBuf::from(".") } else { base };
        if !base.is_dir() {
            return Err(SourceError::input(text, format!("matches nothing: {} is not a folder", base.display())));
        }
        let max_depth = if text.contains("**") { usize::MAX } else { rest.saturating_sub(1) };
        Ok(Self { base, max_depth, matcher: glob.compile_matcher() })
    }

    /// A pattern of addresses: the folder is the part before the first special character, up to a `/`.
    fn of_objects(text: &str) -> Result<Self, SourceError> {
        let special = text.find(SPECIAL).unwrap_or(text.len());
        let slash = text[..special].rfind('/').unwrap_or(0);
        let start = text.find("://").map_or(0, |colon| colon + 3);
        if slash < start {
            let reason =
                "has its special characters in the name of the bucket; name the bucket, and a pattern below it";
            return Err(SourceError::input(text, reason));
        }
        let (base, rest) = (PathBuf::from(&text[..slash]), &text[slash + 1..]);
        let glob = GlobBuilder::new(text).literal_separator(true).build();
        let glob = glob.map_err(|e| SourceError::input(text, format!("is not a valid pattern ({})", e.kind())))?;
        let max_depth = if text.contains("**") { usize::MAX } else { rest.matches('/').count() };
        Ok(Self { base, max_depth, matcher: glob.compile_matcher() })
    }

    /// The folder where the walk begins.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The first file that matches.
    pub fn first(&self) -> Option<PathBuf> {
        let mut first = None;
        // It stops at the first one; a folder that cannot be read is told when it is visited.
        let _ = self.each(&mut |path| {
            first = path.ok().map(Path::to_owned);
            if first.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        first
    }

    /// Whether the pattern names this file, which need not be there yet, however it is spelled.
    pub fn names(&self, path: &Path) -> bool {
        if remote::is(path) || remote::is(&self.base) {
            return self.matcher.is_match(path);
        }
        let (path, base) = (dtkc_files::real(path), dtkc_files::real(&self.base));
        let Ok(below) = path.strip_prefix(&base) else { return false };
        let path = self.base.join(below);
        self.matcher.is_match(path.strip_prefix(".").unwrap_or(&path))
    }

    /// Shows every file that matches to `seen`, and every folder that could not be read. What does not match is not
    /// passed over: nobody asked for it.
    pub(crate) fn each(&self, seen: &mut dyn FnMut(Result<&Path, Found>) -> ControlFlow<()>) -> ControlFlow<()> {
        if remote::is(&self.base) {
            let listed = remote::each_object(&self.base, self.max_depth > 0, &mut |_, url, _| {
                let hidden = url[self.base.as_os_str().len()..].split('/').any(|part| is_hidden(part.as_bytes()));
                match !hidden && self.matcher.is_match(url) {
                    true => seen(Ok(Path::new(url))),
                    false => ControlFlow::Continue(()),
                }
            });
            return listed.unwrap_or_else(|error| seen(Err(folder::unlistable(&self.base, "", &error))));
        }
        folder::walk(&self.base, self.max_depth, &mut |met| match met {
            Met::File(path, _) => {
                let path = path.strip_prefix(".").unwrap_or(&path);
                if self.matcher.is_match(path) { seen(Ok(path)) } else { ControlFlow::Continue(()) }
            }
            Met::Passed(..) => ControlFlow::Continue(()),
            Met::Unreadable(below, error) => seen(Err(folder::unlistable(&self.base, below, &error))),
        })
    }

    /// Visits every file that matches; archives among them are opened.
    pub(crate) fn visit(&self, max_bytes: u64, visitor: &mut dyn Visitor) -> ControlFlow<()> {
        self.each(&mut |path| match path {
            Ok(path) => visit_named(path, max_bytes, visitor),
            Err(unreadable) => visitor.found(unreadable),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{Log, PNG, fill, zip};

    #[test]
    fn a_pattern_matches_below_its_base_only() {
        let root = tempfile::tempdir().unwrap();
        fill(root.path(), &["a/10.png", "a/2.jpg", "a/x/3.png", "b/4.png", "c.png", "b/.5.png", "d/notes.txt"]);
        std::fs::write(root.path().join("d/e.dat"), zip(&[("in/6.png", PNG)])).unwrap();
        let names = |pattern: &str| {
            let text = root.path().join(pattern).to_string_lossy().into_owned();
            let mut log = Log::default();
            assert!(Pattern::new(&text).unwrap().visit(1000, &mut log).is_continue());
            assert!(log.passed.is_empty());
            let start = root.path().to_string_lossy().len() + 1;
            log.found.iter().map(|found| found.path[start..].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("*/*.png"), ["a/10.png", "b/4.png"]);
        assert_eq!(names("**/*.png"), ["a/10.png", "a/x/3.png", "b/4.png", "c.png"]);
        assert_eq!(names("a/{?,??}.{png,jpg}"), ["a/2.jpg", "a/10.png"]);
        assert_eq!(names("*.bmp"), [""; 0]);
        // What a pattern names is meant, whatever its name says.
        assert_eq!(names("d/*"), ["d/e.dat/in/6.png", "d/notes.txt"]);
    }

    #[test]
    fn a_pattern_knows_a_file_before_it_is_there() {
        let root = tempfile::tempdir().unwrap();
        fill(root.path(), &["a/1.png"]);
        let pattern = Pattern::new(&root.path().join("a/*").to_string_lossy()).unwrap();
        for (name, expected) in
            [("a/new.csv", true), ("a/../a/new.csv", true), ("a/b/new.csv", false), ("new.csv", false)]
        {
            assert_eq!(pattern.names(&root.path().join(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_bad_pattern_says_why() {
        for (text, part) in [("a[", "not a valid pattern"), ("no/such/*.png", "not a folder")] {
            let error = Pattern::new(text).err().unwrap().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
