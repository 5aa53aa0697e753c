//! The lines of a text file.

use std::fmt;
use std::io::{BufRead, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ReadError;
use crate::stream::{self, Stream};

/// A line longer than this is not a sequence that anybody recorded.
const MAX_LINE: u64 = 256 << 20;

/// A text that can be read several times.
#[derive(Clone)]
pub struct Text {
    /// The file, or the name of what is in memory.
    path: PathBuf,
    memory: Option<Shared>,
}

/// Bytes that are somewhere else, and stay there.
#[derive(Clone)]
struct Shared(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Text {
    /// A file, packed or not.
    pub fn file(path: &Path) -> Self {
        Self { path: path.to_owned(), memory: None }
    }

    /// What is in memory; messages call it by that name.
    pub fn memory(name: &str, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self { path: PathBuf::from(name), memory: Some(Shared(Arc::new(bytes))) }
    }

    /// The file, or the name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its lines, from the first on.
    pub fn lines(&self) -> Result<Lines, ReadError> {
        let stream: Stream = match &self.memory {
            Some(bytes) => Box::new(Cursor::new(bytes.clone())),
            None => stream::open(&self.path)?,
        };
        Ok(Lines { path: self.path.clone(), stream, number: 0 })
    }
}

/// The lines of a text file, counted, none of them too long.
pub struct Lines {
    path: PathBuf,
    stream: Stream,
    /// The number of the line that was read last.
    pub number: usize,
}

impl Lines {
    /// Opens a text file, packed or not.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Text::file(path).lines()
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
    pub fn fault(&self, reason: &str) -> ReadError {
        ReadError::file(&self.path, format!("line {} {reason}", self.number))
    }

    /// The next line without its end.
    pub fn next_line(&mut self) -> Result<Option<String>, ReadError> {
        let mut bytes = Vec::new();
        let mut limited = (&mut self.stream).take(MAX_LINE);
        let read = limited.read_until(b'\n', &mut bytes).map_err(|e| ReadError::read(&self.path, e))?;
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
    pub fn next_data(&mut self) -> Result<Option<String>, ReadError> {
        while let Some(line) = self.next_line()? {
            if !line.trim().is_empty() && !line.starts_with('#') {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }
}
