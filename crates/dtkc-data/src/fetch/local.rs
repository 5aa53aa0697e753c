//! Files that are there already.

use std::path::{Path, PathBuf};

use super::table::{Check, Digits, KnownSet, Local};
use super::verify;
use crate::import::ImportError;

/// Files that make up a set, and whether they are the publisher's own.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The files, in the order of the table.
    pub files: Vec<PathBuf>,
    /// Names of those that differ from the publisher's.
    pub different: Vec<String>,
    /// What these files mean by some of their labels.
    pub digits: Digits,
}

/// Looks for the files of a set in a folder.
pub fn look(set: &KnownSet, folder: &Path) -> Result<Option<Found>, ImportError> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(None) };
    let mut names: Vec<String> = entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    // Of several that fit the shortest is the plainest.
    names.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    names.retain(|name| !name.ends_with(".part"));
    for Local { files, digits } in set.local {
        let found: Option<Vec<PathBuf>> =
            files.iter().map(|p| names.iter().find(|n| fits(p, n)).map(|n| folder.join(n))).collect();
        if let Some(files) = found {
            let different = differing(set, &files)?;
            return Ok(Some(Found { files, different, digits }));
        }
    }
    Ok(None)
}

/// The files that are not what the table says; those that it does not know are passed over.
fn differing(set: &KnownSet, files: &[PathBuf]) -> Result<Vec<String>, ImportError> {
    let mut different = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let plain = |n: &str| n.trim_end_matches(".gz").to_owned();
        let mut checks = set.files.iter().map(|r| (r.name, r.check)).chain(set.also.iter().copied());
        let same = match checks.find(|(known, _)| plain(known) == plain(&name)) {
            Some((_, check)) => verify::matches(file, check)?,
            // A file of another name is not the published one, unless nothing is known about that either.
            None => set.files.iter().all(|r| matches!(r.check, Check::AtLeast(_))),
        };
        if !same {
            different.push(name);
        }
    }
    Ok(different)
}

/// Whether a name fits a pattern in which `*` stands for anything.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::super::table::find;
    use super::*;

    #[test]
    fn patterns_fit_names() {
        assert!(fits("a.h5", "a.h5") && !fits("a.h5", "a.h5x") && !fits("a.h5", "xa.h5"));
        assert!(
            fits("train*.mat", "train.mat") && fits("train*.mat", "train_10k.mat") && !fits("train*.mat", "train.npy")
        );
        assert!(fits("t-images*idx3*", "t-images-idx3-ubyte.gz") && !fits("t-images*idx3*", "t-images-idx1"));
    }

    #[test]
    fn the_plainest_file_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let set = find("character-trajectories").unwrap();
        assert_eq!(look(set, folder.path()).unwrap(), None);
        for name in
            ["CharacterTrajectoriesTrimmed.ts.gz", "CharacterTrajectories.ts.gz", "CharacterTrajectories.zip.part"]
        {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let found = look(set, folder.path()).unwrap().unwrap();
        assert_eq!(found.files, [folder.path().join("CharacterTrajectories.ts.gz")]);
    }

    #[test]
    fn other_content_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["Train_Arabic_Digit.txt", "Test_Arabic_Digit.txt.gz"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let found = look(find("arabic-digits").unwrap(), folder.path()).unwrap().unwrap();
        assert_eq!(found.different, ["Train_Arabic_Digit.txt", "Test_Arabic_Digit.txt.gz"]);
    }
}
