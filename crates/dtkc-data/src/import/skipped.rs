//! The list of what was skipped, beside the dataset.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use dtkc_item::ItemError;

use super::ImportError;

/// What could not be imported, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The image's path below its source.
    pub path: String,
    /// Why.
    pub error: ItemError,
}

/// Where the list goes: `set.h5.skipped.csv` for `set.h5`.
pub fn list_path(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".skipped.csv");
    out.with_file_name(name)
}

/// Writes the list, or removes that of an earlier import where nothing was skipped this time.
pub fn write(out: &Path, skipped: &[Skipped]) -> Result<Option<PathBuf>, ImportError> {
    let path = list_path(out);
    if skipped.is_empty() {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(ImportError::read(&path, error)),
            _ => return Ok(None),
        }
    }
    let mut text = String::from("path,code,reason\n");
    for item in skipped {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{},{},{}", field(&item.path), item.error.code, field(&item.error.message));
    }
    dtkc_files::write(&path, text.as_bytes())?;
    Ok(Some(path))
}

/// A CSV field, quoted where it must be.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_csv_and_goes_away_again() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("a.h5");
        let error = ItemError::new("empty", "the file is empty");
        let skipped = [Skipped { path: "x, \"y\".png".into(), error }];
        let path = write(&out, &skipped).unwrap().unwrap();
        assert_eq!(path.file_name().unwrap(), "a.h5.skipped.csv");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "path,code,reason\n\"x, \"\"y\"\".png\",empty,the file is empty\n");
        assert_eq!(write(&out, &[]).unwrap(), None);
        assert!(!path.exists());
    }
}
