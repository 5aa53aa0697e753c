//! Where an import may write.

use std::path::{Path, PathBuf};

use dtkc_files::{Refused, Sources, refuse_existing};

use dtkc_formats::detect::{Format, Input};
use dtkc_formats::{idx, npy};
use dtkc_source::remote;

use super::ImportError;

impl From<Refused> for ImportError {
    fn from(refused: Refused) -> Self {
        Self::Usage(refused.to_string())
    }
}

/// A folder that is not there is better found now than after the sources were read.
pub fn check_place(out: &Path) -> Result<(), ImportError> {
    let folder = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let reason = format!("the folder {} does not exist; make it first or choose another --out", folder.display());
        return Err(ImportError::file(out, reason));
    }
    if out.is_dir() {
        return Err(ImportError::Usage(format!("{} is a folder; --out names a file", out.display())));
    }
    Ok(())
}

/// What can be said against an output as soon as the command line is known.
pub fn check_given(sources: &[PathBuf], out: &Path, force: bool) -> Result<(), ImportError> {
    Ok(local(sources).check(out, force)?)
}

/// The sources that are on the disk; what lies in a store is no file that could be replaced.
fn local(sources: &[PathBuf]) -> Sources {
    Sources::of(sources.iter().filter(|source| !remote::is(source)))
}

/// The paths that patterns and lists stand for.
pub fn expand(sources: &[PathBuf]) -> Result<Vec<PathBuf>, ImportError> {
    Ok(sources.iter().map(|source| dtkc_source::expand(source)).collect::<Result<Vec<_>, _>>()?.concat())
}

/// What can be said against an output when everything that will be read is known: files that a pattern or a list names,
/// labels that lie beside images, and what links in a folder lead to.
pub fn check_found(paths: &[PathBuf], inputs: &[Input], out: &Path) -> Result<(), ImportError> {
    let mut sources = local(paths);
    for input in inputs {
        match input {
            // An output that is not there yet is none of them.
            Input::Folder(_, listing) if out.exists() => listing.files().for_each(|file| sources.add(file)),
            Input::Folder(..) => {}
            Input::File(path, _) if remote::is(path) => {}
            Input::File(path, format) => {
                sources.add(path);
                let labels = match format {
                    Format::Idx => idx::labels_beside(path),
                    Format::Npy => npy::labels_beside(path),
                    _ => None,
                };
                labels.iter().for_each(|labels| sources.add(labels));
            }
        }
    }
    Ok(sources.refuse(out)?)
}

/// Refuses an output that is there already.
pub fn check_new(out: &Path, force: bool) -> Result<(), ImportError> {
    check_place(out)?;
    Ok(refuse_existing(out, force)?)
}
