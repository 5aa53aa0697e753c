//! Inputs that turn up only while they are read.

use std::path::Path;

use dtkc_files::Sources;

use crate::error::{LabelError, Result};
use crate::source::Origin;

/// Files that a run replaces at its end. Lists, and links in folders, lead to inputs that nobody knows beforehand.
#[derive(Debug, Default)]
pub struct Replaced {
    files: Option<Sources>,
}

impl Replaced {
    /// Files that are there now.
    pub fn new(files: Sources) -> Self {
        Self { files: Some(files).filter(|files| !files.is_empty()) }
    }

    /// Refuses an image that is read from one of them. `last` is the file that was looked at before: an archive holds
    /// many images.
    pub fn check(&self, origin: &Origin, last: &mut Option<Box<Path>>) -> Result<()> {
        let (Some(files), Some(file)) = (&self.files, origin.file()) else { return Ok(()) };
        if last.as_deref() == Some(file) {
            return Ok(());
        }
        *last = Some(file.into());
        // The other way round than elsewhere: the outputs are known, and here comes an input.
        match files.has_file(file) {
            true => Err(LabelError::Usage(format!(
                "{} is one of the inputs and one of the outputs, and would be replaced; choose another name for the output",
                file.display()
            ))),
            false => Ok(()),
        }
    }
}
