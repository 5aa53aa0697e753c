//! Data files out of a downloaded archive.

use std::io::{BufReader, Read};
use std::path::Path;

use zip::ZipArchive;

use crate::import::ImportError;

/// No known file is larger; an archive that holds more is not the one we want.
const MAX_BYTES: u64 = 1 << 30;

/// Unpacks the named entries of a zip beside it, whatever folder they have inside.
pub fn members(archive: &Path, names: &[&str]) -> Result<(), ImportError> {
    if names.is_empty() {
        return Ok(());
    }
    let damaged = |e: zip::result::ZipError| {
        ImportError::file(
            archive,
            format!("the zip archive is cut off or damaged ({e}); remove it and run the command again"),
        )
    };
    let mut zip = ZipArchive::new(BufReader::new(fs_err::File::open(archive)?)).map_err(damaged)?;
    for name in names {
        let target = archive.with_file_name(name);
        if target.exists() {
            continue;
        }
        let place = (0..zip.len()).find(|&i| {
            let entry = zip.by_index_data(i);
            entry.is_ok_and(|e| String::from_utf8_lossy(e.name_raw()).rsplit('/').next() == Some(name))
        });
        let Some(place) = place else {
            return Err(ImportError::file(archive, format!("there is no {name} in this archive")));
        };
        let entry = zip.by_index(place).map_err(damaged)?;
        let pending = dtkc_files::Pending::beside(&target)?;
        let mut file = pending.open()?;
        let copied = std::io::copy(&mut entry.take(MAX_BYTES), &mut file);
        let copied = copied.map_err(|e| ImportError::file(archive, format!("{name} cannot be unpacked ({e})")))?;
        if copied == MAX_BYTES {
            return Err(ImportError::file(archive, format!("{name} is too large to be the known file")));
        }
        drop(file);
        pending.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use dtkc_testing::files::zip;

    use super::*;

    #[test]
    fn entries_are_found_in_any_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        std::fs::write(&path, zip(&[("inner/A_TRAIN.ts", b"hello")])).unwrap();
        members(&path, &["A_TRAIN.ts"]).unwrap();
        assert_eq!(std::fs::read(folder.path().join("A_TRAIN.ts")).unwrap(), b"hello");
        let error = members(&path, &["A_TEST.ts"]).unwrap_err().to_string();
        assert!(error.contains("no A_TEST.ts"), "{error}");
    }
}
