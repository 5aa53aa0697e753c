//! What the tests of this crate share: small archives, and a visitor that remembers.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::path::Path;

use dtkc_item::ItemError;
pub use dtkc_testing::files::{bz2, gz};

use crate::{Found, Passed, Reason, Visitor};

/// Enough of a PNG to be known as one.
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";

#[derive(Debug, Default)]
pub struct Log {
    pub found: Vec<Found>,
    pub passed: Vec<(String, Reason)>,
    pub damaged: usize,
    pub contents: Vec<Result<Vec<u8>, ItemError>>,
}

impl Visitor for Log {
    fn found(&mut self, found: Found) -> ControlFlow<()> {
        self.found.push(found);
        ControlFlow::Continue(())
    }

    fn passed(&mut self, passed: Passed<'_>) {
        self.passed.push((passed.path(), passed.reason));
    }

    fn damaged(&mut self, found: Found) -> ControlFlow<()> {
        self.damaged += 1;
        self.found(found)
    }
}

impl Log {
    pub fn names(&self) -> Vec<&str> {
        self.found.iter().map(Found::name).collect()
    }

    pub fn reasons(&self) -> Vec<Reason> {
        self.passed.iter().map(|(_, reason)| *reason).collect()
    }
}

/// Small files below a folder.
pub fn fill(root: &Path, names: &[&str]) {
    for name in names {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"x").unwrap();
    }
}

pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    dtkc_testing::files::zip(files)
}

pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    dtkc_testing::files::tar(files)
}

/// One entry of a tar: header and content in whole blocks, without the two empty blocks at the end.
pub fn tar_entry(name: &str, content: &[u8]) -> Vec<u8> {
    let bytes = tar(&[(name, content)]);
    bytes[..bytes.len() - 1024].to_vec()
}
