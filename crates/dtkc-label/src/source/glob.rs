//! Patterns such as `photos/**/*.jpg`, for shells that do not expand them and for lists too long for a command line.

use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::folder::{self, Entry, Walk};
use super::{Visitor, visit_path};
use crate::error::{LabelError, Result};

const SPECIAL: [char; 4] = ['*', '?', '[', '{'];

/// True where the text is more than a plain path.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(SPECIAL)
}

/// A pattern, and the folder where its walk begins.
pub(super) struct Pattern {
    base: PathBuf,
    max_depth: usize,
    matcher: GlobMatcher,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self> {
        let path = Path::new(text);
        let plain = |part: &Component<'_>| !is_pattern(&part.as_os_str().to_string_lossy());
        let base: PathBuf = path.components().take_while(plain).collect();
        let rest = path.components().count() - base.components().count();
        let glob = GlobBuilder::new(text.trim_start_matches("./")).literal_separator(true).build();
        let glob = glob.map_err(|e| LabelError::input(text, format!("is not a valid pattern ({})", e.kind())))?;
        let base = if base.as_os_str().is_empty() { PathBuf::from(".") } else { base };
        if !base.is_dir() {
            return Err(LabelError::input(text, format!("matches nothing: {} is not a folder", base.display())));
        }
        let max_depth = if text.contains("**") { usize::MAX } else { rest.saturating_sub(1) };
        Ok(Self { base, max_depth, matcher: glob.compile_matcher() })
    }

    pub(super) fn base(&self) -> &Path {
        &self.base
    }

    /// Visits every file that matches; archives and datasets among them are opened.
    pub(super) fn visit(&self, visitor: &mut dyn Visitor) -> ControlFlow<()> {
        let walk = Walk { max_depth: self.max_depth, trail: vec![] };
        folder::walk(&self.base, &walk, &mut |entry| match entry {
            Entry::File(path) => {
                let path = path.strip_prefix(".").unwrap_or(&path);
                if self.matcher.is_match(path) { visit_path(path, visitor) } else { ControlFlow::Continue(()) }
            }
            Entry::Unreadable(path, error) => visitor.found(folder::unlistable(&path, &error)),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Found;
    use super::*;

    #[test]
    fn a_pattern_matches_below_its_base_only() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a/1.png", "a/2.jpg", "a/x/3.png", "b/4.png", "c.png"] {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        let names = |pattern: &str| {
            let text = root.path().join(pattern).to_string_lossy().into_owned();
            let mut names = Vec::new();
            let flow = Pattern::new(&text).unwrap().visit(&mut |found: Found| {
                names.push(Path::new(&found.path).strip_prefix(root.path()).unwrap().to_string_lossy().into_owned());
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue());
            names
        };
        assert_eq!(names("*/*.png"), ["a/1.png", "b/4.png"]);
        assert_eq!(names("**/*.png"), ["a/1.png", "a/x/3.png", "b/4.png", "c.png"]);
        assert_eq!(names("a/?.{png,jpg}"), ["a/1.png", "a/2.jpg"]);
        assert_eq!(names("*.bmp"), [""; 0]);
    }

    #[test]
    fn a_bad_pattern_says_why() {
        for (text, part) in [("a[", "not a valid pattern"), ("no/such/*.png", "not a folder")] {
            let error = Pattern::new(text).err().unwrap().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
