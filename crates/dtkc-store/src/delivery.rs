//! An output of a program that goes to a store: it is made on the disk, and sent when it is whole.

use std::path::{Path, PathBuf};

use dtkc_observe::Observer;

use crate::{StoreError, check_output, remove, upload, work};

/// An output on its way to a store, with the small files that lie beside it.
#[derive(Debug)]
pub struct Delivery {
    url: String,
    folder: PathBuf,
    force: bool,
}

impl Delivery {
    /// An output that is made in `folder`. Refuses what cannot be written, or may not be replaced, before any work is done.
    pub fn prepare(url: &str, folder: &Path, force: bool) -> Result<Self, StoreError> {
        check_output(url, force)?;
        Ok(Self { url: url.to_owned(), folder: folder.to_owned(), force })
    }

    /// The same, without a look: for what is known to be replaced.
    pub fn known(url: &str, folder: &Path) -> Self {
        Self { url: url.to_owned(), folder: folder.to_owned(), force: true }
    }

    /// Where it is made.
    pub fn target(&self) -> PathBuf {
        self.folder.join(work::last_part(&self.url))
    }

    /// The name under which people know a file that is made beside it.
    pub fn given(&self, path: &Path) -> PathBuf {
        let (path_text, target) = (path.to_string_lossy(), self.target());
        match path_text.strip_prefix(&*target.to_string_lossy()) {
            Some(ending) => format!("{}{ending}", self.url).into(),
            None => path.to_owned(),
        }
    }

    /// Sends it, after the files beside it: whoever sees it sees them, too. `beside` are endings of their names; what was left
    /// of an earlier output, and has no successor, goes.
    pub fn send(&self, beside: &[&str], observer: &dyn Observer) -> Result<(), StoreError> {
        let target = self.target();
        for ending in beside {
            let file = PathBuf::from(format!("{}{ending}", target.display()));
            let url = format!("{}{ending}", self.url);
            match file.exists() {
                true => upload(&file, &url, true, observer)?,
                false if self.force => remove(&url)?,
                false => {}
            }
        }
        upload(&target, &self.url, self.force, observer)
    }
}
