//! Zip archives. The directory is read entry by entry: a million entries cost no more memory than ten.

use dtkc_item::ItemError;
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use ::zip::read::{Config, ZipFileEntry};
use ::zip::unstable::read::ZipIterable;

use super::{Body, Found, Visitor, is_archived_image};
use crate::error::{LabelError, Result};

fn open(path: &Path) -> Result<ZipIterable<BufReader<File>>, String> {
    let file = File::open(path).map_err(|e| format!("it cannot be opened ({e})"))?;
    let archive = ZipIterable::try_new(BufReader::new(file), Config::default());
    archive.map_err(|e| format!("it is not a readable zip archive ({e}); copy or download it again"))
}

/// Opens an archive only to see whether that works.
pub(super) fn check(path: &Path) -> Result<()> {
    open(path).map(|_| ()).map_err(|reason| LabelError::file(path, reason))
}

/// Visits the images of an archive in the order of its directory.
pub(super) fn visit(path: &Path, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    let damaged = |reason: String| Found::broken(path, ItemError::new("damaged_archive", reason));
    let mut archive = match open(path) {
        Ok(archive) => archive,
        Err(reason) => return visitor.found(damaged(reason)),
    };
    let entries = match archive.files() {
        Ok(entries) => entries,
        Err(error) => return visitor.found(damaged(format!("its directory cannot be read ({error})"))),
    };
    let shared: Arc<Path> = path.into();
    for entry in entries {
        match entry {
            Ok(entry) => visit_entry(&shared, entry, visitor)?,
            Err(error) => visitor.found(damaged(format!("its directory is damaged ({error})")))?,
        }
    }
    ControlFlow::Continue(())
}

fn visit_entry(archive: &Arc<Path>, entry: ZipFileEntry<'static>, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    if entry.is_dir() {
        return ControlFlow::Continue(());
    }
    let name = match entry.name() {
        Ok(name) => name.into_owned(),
        Err(_) => String::from_utf8_lossy(entry.name_raw()).into_owned(),
    };
    if entry.is_file() && is_archived_image(&name) {
        let body = Body::Zip { archive: archive.clone(), entry: Some(Box::new(entry)) };
        return visitor.found(Found::entry(archive, &name, body));
    }
    visitor.skipped(&archive.join(name));
    ControlFlow::Continue(())
}
