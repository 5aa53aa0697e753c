//! The prints of a shard, in a file beside its output: copies can be in different shards, so only `merge` can find them.
//!
//! A line of text, then for each image its position (u64) and its print, then a zero-length mark and the CRC-32 of all.

use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use dtkc_files::Pending;
use flate2::Crc;

use super::print::Print;
use super::store::Store;
use crate::error::{LabelError, Result};
use crate::journal::with_suffix;

const MAGIC: &[u8] = b"dtkc-label prints 1\n";

/// No print comes near it; a longer one is noise.
const MAX_PRINT: u32 = 1 << 24;

/// Where the prints of an output are.
pub fn path_for(output: &Path) -> PathBuf {
    with_suffix(output, ".prints")
}

/// A file of prints that is being written.
pub struct SidecarWriter {
    pending: Pending,
    file: BufWriter<std::fs::File>,
    crc: Crc,
    record: Vec<u8>,
}

impl SidecarWriter {
    /// Starts beside `output`.
    pub fn start(output: &Path) -> Result<Self> {
        let pending = Pending::beside(&path_for(output))?;
        let file = BufWriter::with_capacity(1 << 18, pending.open()?);
        let mut new = Self { pending, file, crc: Crc::new(), record: MAGIC.to_vec() };
        new.put()?;
        Ok(new)
    }

    /// Writes a print.
    pub fn push(&mut self, index: u64, print: &Print) -> Result<()> {
        self.record.clear();
        self.record.extend([0; 4]);
        self.record.extend(index.to_le_bytes());
        print.encode(&mut self.record);
        let length = (self.record.len() - 4) as u32;
        self.record[..4].copy_from_slice(&length.to_le_bytes());
        self.put()
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> Result<()> {
        self.record.clear();
        self.record.extend([0; 4]);
        self.put()?;
        self.record = self.crc.sum().to_le_bytes().to_vec();
        self.put()?;
        self.file.flush().map_err(|error| self.pending.failed(&error))?;
        Ok(self.pending.commit()?)
    }

    fn put(&mut self) -> Result<()> {
        self.crc.update(&self.record);
        Ok(self.file.write_all(&self.record).map_err(|error| self.pending.failed(&error))?)
    }
}

/// Puts the prints of `output` into `store`.
pub fn read(output: &Path, store: &mut Store) -> Result<()> {
    let path = path_for(output);
    if !path.exists() {
        let reason = format!("{} is missing beside it, which --duplicates needs; copy it, too", path.display());
        return Err(LabelError::file(output, reason));
    }
    let mut file = std::io::BufReader::with_capacity(1 << 18, fs_err::File::open(&path)?);
    let damaged = |_| LabelError::file(&path, "it is damaged or no file of prints; label this part again");
    let whole = records(&mut file, &mut |index, print| store.push(index, &print)).map_err(damaged)?;
    if whole { Ok(()) } else { Err(damaged(LabelError::Internal(""))) }
}

/// Shows every record; says whether the file is whole.
fn records(file: &mut impl Read, seen: &mut dyn FnMut(u64, Print) -> Result<()>) -> Result<bool> {
    let mut crc = Crc::new();
    let mut bytes = vec![0; MAGIC.len()];
    file.read_exact(&mut bytes)?;
    crc.update(&bytes);
    if bytes != MAGIC {
        return Ok(false);
    }
    loop {
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        crc.update(&length);
        let length = u32::from_le_bytes(length);
        if length == 0 {
            break;
        }
        if length > MAX_PRINT {
            return Ok(false);
        }
        bytes.resize(length as usize, 0);
        file.read_exact(&mut bytes)?;
        crc.update(&bytes);
        let mut rest = bytes.as_slice();
        let Some((index, record)) = rest.split_first_chunk() else { return Ok(false) };
        rest = record;
        match Print::decode(&mut rest) {
            Some(print) if rest.is_empty() => seen(u64::from_le_bytes(*index), print)?,
            _ => return Ok(false),
        }
    }
    let mut sum = [0; 4];
    file.read_exact(&mut sum)?;
    Ok(u32::from_le_bytes(sum) == crc.sum() && file.read(&mut [0])? == 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_image::{Fingerprint, VIEWS};

    use super::*;

    fn print(number: u8) -> Print {
        let views = std::array::from_fn::<_, VIEWS, _>(|view| [view as u64, 1, 2, u64::from(number)]);
        let look = Fingerprint { width: 3, height: 4, bytes: 5, mean: number, flat: false, views };
        Print { look, embedding: vec![-1, 2, 3] }
    }

    #[test]
    fn prints_come_back_and_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("a.csv");
        let mut writer = SidecarWriter::start(&output).unwrap();
        (0..3).for_each(|number| writer.push(10 + u64::from(number), &print(number)).unwrap());
        writer.finish().unwrap();
        let mut store = Store::default();
        read(&output, &mut store).unwrap();
        assert_eq!((store.len(), store.index(2), store.look(2)), (3, 12, &print(2).look));
        let path = path_for(&output);
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let error = read(&output, &mut Store::default()).unwrap_err().to_string();
            assert!(
                error.ends_with("a.csv.prints: it is damaged or no file of prints; label this part again"),
                "{error}"
            );
        }
        for place in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.clone();
            changed[place] ^= 4;
            std::fs::write(&path, changed).unwrap();
            assert!(read(&output, &mut Store::default()).is_err(), "{place}");
        }
        std::fs::remove_file(&path).unwrap();
        let error = read(&output, &mut Store::default()).unwrap_err().to_string();
        assert!(error.contains("a.csv.prints is missing beside it"), "{error}");
    }
}
