//! The lists beside the dataset: images that were skipped, and files that were passed over.

use std::path::{Path, PathBuf};

use dtkc_item::ItemError;
use dtkc_source::{ListFile, Reason};

use super::ImportError;

/// What could not be imported, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The image's path below its source.
    pub path: String,
    /// Why.
    pub error: ItemError,
}

/// Writes `set.h5.skipped.csv` for `set.h5`, or removes that of an earlier import where nothing was skipped this time.
pub fn write(out: &Path, skipped: &[Skipped]) -> Result<Option<PathBuf>, ImportError> {
    let lines = skipped.iter().map(|item| (item.path.as_str(), &*item.error.code, item.error.message.as_str()));
    list(out, ".skipped.csv", lines)
}

/// The same for `set.h5.passed-over.csv`: files that are no images, and were left where they are.
pub fn write_passed(out: &Path, passed: &[(String, Reason)]) -> Result<Option<PathBuf>, ImportError> {
    list(out, ".passed-over.csv", passed.iter().map(|(path, reason)| (path.as_str(), reason.code(), reason.text())))
}

fn list<'a>(
    out: &Path,
    ending: &str,
    lines: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
) -> Result<Option<PathBuf>, ImportError> {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    let mut list = ListFile::new(&out.with_file_name(name));
    for (path, code, reason) in lines {
        list.add(path, code, reason)?;
    }
    Ok(list.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_lies_beside_the_dataset_and_goes_away_again() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("a.h5");
        let error = ItemError::new("empty", "the file is empty");
        let path = write(&out, &[Skipped { path: "y.png".into(), error }]).unwrap().unwrap();
        assert_eq!(path.file_name().unwrap(), "a.h5.skipped.csv");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "path,code,reason\ny.png,empty,the file is empty\n");
        let path = write_passed(&out, &[(".x".into(), Reason::Hidden)]).unwrap().unwrap();
        assert_eq!(path.file_name().unwrap(), "a.h5.passed-over.csv");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "path,code,reason\n.x,hidden,it is hidden\n");
        assert_eq!((write(&out, &[]).unwrap(), write_passed(&out, &[]).unwrap()), (None, None));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
