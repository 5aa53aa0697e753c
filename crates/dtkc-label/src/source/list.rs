//! A list of paths on standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;

use super::{Visitor, visit_path};
use crate::error::{LabelError, Result};

/// Paths, one per line. Standard input can be read once, so the first visit keeps a copy on the disk for a second
/// one (the gallery reads its images again); memory stays small and the work begins with the first line.
pub(super) struct List {
    copy: Mutex<Option<File>>,
}

impl List {
    pub(super) fn stdin() -> Self {
        Self { copy: Mutex::new(None) }
    }

    pub(super) fn visit(&self, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>> {
        let mut copy = self.copy.lock().map_err(|_| LabelError::Internal("the list of paths is locked"))?;
        match copy.as_mut() {
            Some(file) => {
                file.seek(SeekFrom::Start(0))?;
                visit_lines(&mut BufReader::new(file), &mut io::sink(), visitor)
            }
            None => {
                let file = copy.insert(tempfile::tempfile()?);
                let mut writer = io::BufWriter::new(file);
                let flow = visit_lines(&mut io::stdin().lock(), &mut writer, visitor)?;
                writer.flush()?;
                Ok(flow)
            }
        }
    }
}

fn visit_lines(input: &mut dyn BufRead, copy: &mut dyn Write, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line is a path: what is longer than any path is no list of paths.
        if input.take(65_536).read_until(b'\n', &mut line)? == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        copy.write_all(&line)?;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() >= 65_535 || text.contains(&0) {
            return Err(LabelError::input("-", "is not a list of paths; write one path per line"));
        }
        if !text.is_empty() && visit_path(&to_path(text), visitor).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
}

#[cfg(unix)]
fn to_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Found;
    use super::*;

    #[test]
    fn lines_are_paths_and_empty_ones_are_passed_over() {
        let mut paths = Vec::new();
        let mut copy = Vec::new();
        let text = b"a.png\r\n\nb c.png\nlast.jpg";
        let mut seen = |found: Found| {
            paths.push(found.path);
            ControlFlow::Continue(())
        };
        assert!(visit_lines(&mut text.as_slice(), &mut copy, &mut seen).unwrap().is_continue());
        assert_eq!(paths, ["a.png", "b c.png", "last.jpg"]);
        assert_eq!(copy, text);
    }

    #[test]
    fn an_image_on_standard_input_is_no_list() {
        let mut seen = |_: Found| ControlFlow::Continue(());
        let error = visit_lines(&mut b"\x89PNG\0\0\0".as_slice(), &mut io::sink(), &mut seen).unwrap_err();
        assert!(error.to_string().contains("one path per line"), "{error}");
    }
}
