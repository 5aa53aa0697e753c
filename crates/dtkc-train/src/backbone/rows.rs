//! Rows of numbers on their way into a dataset: a plain file that a stopped program leaves behind, and the next goes on with.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use dtkc_files::{Lock, LockError};

use crate::error::TrainError;

/// Characters of the key that begins the file.
const KEY: usize = 64;

/// Rows of one length, written one after the other.
pub(super) struct Rows {
    path: PathBuf,
    file: File,
    /// Bytes of a row.
    bytes: usize,
    /// Rows that are there.
    pub(super) done: usize,
    _lock: Lock,
}

impl Rows {
    /// Opens the rows on their way to `target`; those of another key are thrown away, and so is half a row at the end.
    pub(super) fn open(target: &Path, key: &str, width: usize) -> Result<Self, TrainError> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(".rows");
        let path = target.with_file_name(name);
        let lock = Lock::beside(&path).map_err(|error| held(target, error))?;
        let named = |error: std::io::Error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(named)?;
        let bytes = width * size_of::<f32>();
        let mut found = vec![0; KEY];
        let is_same = file.read_exact(&mut found).is_ok() && found == key.as_bytes();
        if !is_same {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(key.as_bytes())?;
        }
        let done = (file.metadata()?.len() as usize).saturating_sub(KEY) / bytes.max(1);
        file.set_len((KEY + done * bytes) as u64)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self { path, file, bytes, done, _lock: lock })
    }

    /// Adds whole rows.
    pub(super) fn push(&mut self, values: &[f32]) -> Result<(), TrainError> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.file.write_all(&bytes).map_err(|error| {
            std::io::Error::new(error.kind(), format!("{}: {}", self.path.display(), dtkc_files::reason(&error)))
        })?;
        self.done += bytes.len() / self.bytes.max(1);
        Ok(())
    }

    /// Gives all rows in order.
    pub(super) fn each(
        &mut self,
        mut take: impl FnMut(usize, &[f32]) -> Result<(), TrainError>,
    ) -> Result<(), TrainError> {
        self.file.seek(SeekFrom::Start(KEY as u64))?;
        let mut reader = BufReader::with_capacity(1 << 20, &self.file);
        let mut row = vec![0; self.bytes];
        for number in 0..self.done {
            reader.read_exact(&mut row)?;
            let values: Vec<f32> = row.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            take(number, &values)?;
        }
        Ok(())
    }

    /// The rows are elsewhere now.
    pub(super) fn remove(self) -> Result<(), TrainError> {
        Ok(fs_err::remove_file(&self.path)?)
    }
}

fn held(target: &Path, error: LockError) -> TrainError {
    match error {
        LockError::Held(holder) => TrainError::Setting(format!(
            "another process ({holder}) is making {}; wait for it, or name another file",
            target.display()
        )),
        LockError::Io(source) => {
            let text = format!("cannot write {}: {}", target.display(), dtkc_files::reason(&source));
            std::io::Error::new(source.kind(), text).into()
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn all(rows: &mut Rows) -> Vec<Vec<f32>> {
        let mut all = Vec::new();
        rows.each(|_, row| {
            all.push(row.to_vec());
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn whole_rows_stay_and_half_ones_and_those_of_others_go() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.h5");
        let (key, other) = ("a".repeat(KEY), "b".repeat(KEY));
        let mut rows = Rows::open(&target, &key, 2).unwrap();
        rows.push(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!(Rows::open(&target, &key, 2).is_err_and(|error| error.to_string().contains("another process")));
        drop(rows);
        let path = folder.path().join("x.h5.rows");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend([9, 9, 9]);
        std::fs::write(&path, bytes).unwrap();
        let mut rows = Rows::open(&target, &key, 2).unwrap();
        assert_eq!(rows.done, 2);
        rows.push(&[5.0, 6.0]).unwrap();
        assert_eq!(all(&mut rows), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
        drop(rows);
        let rows = Rows::open(&target, &other, 2).unwrap();
        assert_eq!(rows.done, 0);
        rows.remove().unwrap();
        assert!(!path.exists());
    }
}
