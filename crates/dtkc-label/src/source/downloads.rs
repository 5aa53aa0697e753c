//! Files in stores that are read on the disk: datasets, and tables of sequences. They go when the run ends.

use std::path::PathBuf;

use dtkc_observe::Observer;
use dtkc_source::remote::Shown;
use dtkc_store::work;
use tempfile::TempDir;

use crate::error::{LabelError, Result};

/// Brings files, each into a folder of its own.
pub struct Downloads<'a> {
    observer: &'a dyn Observer,
    folder: Option<TempDir>,
    count: usize,
}

impl<'a> Downloads<'a> {
    /// None yet.
    pub fn new(observer: &'a dyn Observer) -> Self {
        Self { observer, folder: None, count: 0 }
    }

    /// Brings an object; says where it is now.
    pub fn bring(&mut self, url: &str) -> Result<PathBuf> {
        let folder = match &self.folder {
            Some(folder) => folder,
            None => self.folder.insert(work::temporary()?),
        };
        let folder = folder.path().join(self.count.to_string());
        fs_err::create_dir(&folder)?;
        self.count += 1;
        let target = folder.join(work::last_part(url));
        dtkc_store::download(url, &target, self.observer)
            .map_err(|error| LabelError::Settings(format!("{}: {error}", Shown(url))))?;
        Ok(target)
    }

    /// What must be kept as long as the files are read.
    pub fn keep(self) -> Option<TempDir> {
        self.folder
    }
}
