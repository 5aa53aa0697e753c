//! The lines of a text file.

use std::io::{BufRead, Cursor, Read};
use std::path::{Path, PathBuf};

use crate::import::ImportError;
use crate::import::stream::{self, Stream};

/// A line longer than this is not a sequence that anybody recorded.
const MAX_LINE: u64 = 256 << 20;

/// The lines of a text file, counted, none of them too long.
pub struct Lines {
    path: PathBuf,
    stream: Stream,
    /// The number of the line that was read last.
    pub number: usize,
}

impl Lines {
    /// Opens a text file, packed or not.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        Ok(Self { path: path.to_owned(), stream: stream::open(path)?, number: 0 })
    }

    /// The lines of a text that is in memory; messages call it by that name.
    pub fn of(name: &str, bytes: Vec<u8>) -> Self {
        Self { path: PathBuf::from(name), stream: Box::new(Cursor::new(bytes)), number: 0 }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with the line that was read last.
    pub fn fault(&self, reason: &str) -> ImportError {
        ImportError::file(&self.path, format!("line {} {reason}", self.number))
    }

    /// The next line without its end.
    pub fn next_line(&mut self) -> Result<Option<String>, ImportError> {
        let mut bytes = Vec::new();
        let mut limited = (&mut self.stream).take(MAX_LINE);
        let read = limited.read_until(b'\n', &mut bytes).map_err(|e| ImportError::read(&self.path, e))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if read as u64 == MAX_LINE {
            return Err(self.fault("is too long; this is not a text file of sequences"));
        }
        let text = String::from_utf8(bytes).map_err(|_| self.fault("is not text"))?;
        Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
    }

    /// The next line that is neither empty nor a comment.
    pub fn next_data(&mut self) -> Result<Option<String>, ImportError> {
        while let Some(line) = self.next_line()? {
            if !line.trim().is_empty() && !line.starts_with('#') {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }
}
