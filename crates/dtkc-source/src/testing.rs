//! What the tests of this crate share: small archives, and a visitor that remembers.
#![allow(clippy::unwrap_used)]

use std::io::{Cursor, Write};
use std::ops::ControlFlow;
use std::path::Path;

use dtkc_item::ItemError;

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
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, ::zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// One entry of a tar: header and content in whole blocks.
pub fn tar_entry(name: &str, content: &[u8]) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    let mut header = ::tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, name, content).unwrap();
    let bytes = builder.into_inner().unwrap();
    bytes[..bytes.len() - 1024].to_vec()
}

pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let entries: Vec<Vec<u8>> = files.iter().map(|(name, content)| tar_entry(name, content)).collect();
    [entries.concat(), vec![0; 1024]].concat()
}

pub fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

pub fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}
