//! Names that people gave to clusters, kept in a side file across restarts.
//!
//! There is one file per model content, not per model name: after a retrained model has taken the place of an
//! old one its clusters mean something else, and the old names must not stick to them. The file has the form
//! that `dtkc-label --names` reads.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use dtkc_files::Lock;
use dtkc_infer::{ModelFile, Names};

/// The side file of one model file.
#[derive(Debug, Clone)]
pub struct SideFile {
    path: PathBuf,
    k: usize,
}

impl SideFile {
    /// The side file of `model`, served as `name`: in `state_dir`, or beside the model.
    pub fn of(name: &str, model: &ModelFile, state_dir: Option<&Path>) -> Self {
        let beside = model.path().and_then(Path::parent);
        let folder = state_dir.or(beside).unwrap_or(Path::new("."));
        let fingerprint = model.fingerprint();
        let short = fingerprint.get(..12).unwrap_or(&fingerprint);
        Self { path: folder.join(format!("{name}-{short}.names.json")), k: model.clusters() }
    }

    /// The names given so far; none where the file does not exist.
    pub fn read(&self) -> Result<BTreeMap<usize, String>> {
        let text = match fs_err::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        let names = Names::parse(&text, self.k).map_err(|reason| {
            let path = self.path.display();
            let text = format!("{path} is not a file of cluster names ({reason}); move it away to start without names");
            Error::new(ErrorKind::InvalidData, text)
        })?;
        Ok(names.iter().map(|(id, name)| (id, name.to_owned())).collect())
    }

    /// Gives a cluster a name, or takes it away; returns all names once they are on the disk.
    pub fn set(&self, id: usize, name: Option<&str>) -> Result<BTreeMap<usize, String>> {
        // Another server may serve the same model: one at a time, each adding to what the others wrote.
        // The lock's file stays: were it removed, somebody could wait for one while another makes a new one.
        let _lock = Lock::wait(&self.path.with_extension("lock")).map_err(Error::other)?;
        let mut names = self.read()?;
        match name {
            Some(name) => names.insert(id, name.to_owned()),
            None => names.remove(&id),
        };
        let text = serde_json::to_string_pretty(&names)? + "\n";
        dtkc_files::write(&self.path, text.as_bytes())?;
        Ok(names)
    }
}

/// A name as it is kept: trimmed, short, one line. `Ok(None)` takes the name away.
pub fn clean(name: &str) -> std::result::Result<Option<&str>, String> {
    let name = name.trim();
    if name.is_empty() {
        return Ok(None);
    }
    Names::default().set(0, name, 1).map_err(|_| "it must have at most 100 characters and be one line".to_owned())?;
    Ok(Some(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn side_file(folder: &tempfile::TempDir) -> SideFile {
        SideFile { path: folder.path().join("mnist-0123.names.json"), k: 10 }
    }

    #[test]
    fn names_survive() {
        let folder = tempfile::tempdir().unwrap();
        assert!(side_file(&folder).read().unwrap().is_empty());
        side_file(&folder).set(3, Some("sevens")).unwrap();
        side_file(&folder).set(1, Some("a, \"b\"")).unwrap();
        let expected = BTreeMap::from([(3, "sevens".to_owned()), (1, "a, \"b\"".to_owned())]);
        assert_eq!(side_file(&folder).read().unwrap(), expected);
    }

    #[test]
    fn two_servers_do_not_undo_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (side_file(&folder), side_file(&folder));
        first.set(0, Some("zero")).unwrap();
        assert_eq!(second.set(1, Some("one")).unwrap().len(), 2);
    }

    #[test]
    fn names_given_at_the_same_moment_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for id in 0..10 {
                let file = side_file(&folder);
                scope.spawn(move || (0..20).for_each(|n| drop(file.set(id, Some(&format!("name {n}"))).unwrap())));
            }
        });
        let names = side_file(&folder).read().unwrap();
        assert_eq!(names.len(), 10, "{names:?}");
        assert!(names.values().all(|name| name == "name 19"), "{names:?}");
    }

    #[test]
    fn a_name_can_be_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        side_file(&folder).set(0, Some("zero")).unwrap();
        assert!(side_file(&folder).set(0, None).unwrap().is_empty());
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for content in ["{", "{\"10\": \"no such cluster\"}"] {
            std::fs::write(folder.path().join("mnist-0123.names.json"), content).unwrap();
            let error = side_file(&folder).read().unwrap_err().to_string();
            assert!(error.contains("mnist-0123.names.json") && error.contains("move it away"), "{error}");
        }
    }

    #[test]
    fn names_are_cleaned() {
        assert_eq!(clean("  sevens \n"), Ok(Some("sevens")));
        assert_eq!(clean(" "), Ok(None));
        assert!(clean("two\nlines").is_err());
        assert!(clean(&"x".repeat(101)).is_err());
        assert!(clean(&"é".repeat(100)).is_ok());
    }
}
