//! A list of paths on standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::input::visit_named;
use crate::{SourceError, Visitor};

/// A line is a path: what is longer than any path is no list of paths.
const MAX_LINE: u64 = 65_536;

/// Paths, one per line. Standard input can be read once, so a copy is kept on the disk for further visits; memory stays
/// small and the work begins with the first line.
#[derive(Debug, Default)]
pub struct List {
    read: Mutex<Option<Copy>>,
}

#[derive(Debug)]
struct Copy {
    file: File,
    /// Whether all of standard input is in it.
    whole: bool,
}

impl List {
    pub(crate) fn visit(&self, max_bytes: u64, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>, SourceError> {
        self.each(&mut |path| visit_named(path, max_bytes, visitor))
    }

    /// Shows every path to `seen`.
    pub(crate) fn each(&self, seen: &mut dyn FnMut(&Path) -> ControlFlow<()>) -> Result<ControlFlow<()>, SourceError> {
        self.replay(&mut || Box::new(io::stdin().lock()), seen)
    }

    /// What was read before, from the copy, and then the rest.
    fn replay<'a>(
        &self,
        input: &mut dyn FnMut() -> Box<dyn BufRead + 'a>,
        seen: &mut dyn FnMut(&Path) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SourceError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = match read.take() {
            Some(copy) => read.insert(copy),
            None => read.insert(Copy { file: tempfile::tempfile()?, whole: false }),
        };
        copy.file.seek(SeekFrom::Start(0))?;
        let flow = each_line(&mut BufReader::new(&copy.file), &mut io::sink(), seen)?;
        if copy.whole || flow.is_break() {
            return Ok(flow);
        }
        copy.file.seek(SeekFrom::End(0))?;
        let mut writer = io::BufWriter::new(&copy.file);
        let flow = each_line(&mut input(), &mut writer, seen)?;
        writer.flush()?;
        drop(writer);
        copy.whole = flow.is_continue();
        Ok(flow)
    }
}

fn each_line(
    input: &mut dyn BufRead,
    copy: &mut dyn Write,
    seen: &mut dyn FnMut(&Path) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, SourceError> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        copy.write_all(&line)?;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() as u64 >= MAX_LINE - 1 || text.contains(&0) {
            return Err(SourceError::input("-", "is not a list of paths; write one path per line"));
        }
        if !text.is_empty() && seen(&to_path(text)).is_break() {
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
    use super::*;

    /// Visits a list; takes at most `most` paths. Standard input is `input`, which is read on where it was left.
    fn visit(list: &List, input: &mut &[u8], most: usize) -> Vec<String> {
        let mut paths = Vec::new();
        let rest = std::cell::RefCell::new(input);
        let flow = list.replay(&mut || Box::new(BufReader::with_capacity(1, Shared(&rest))), &mut |path| {
            paths.push(path.to_string_lossy().into_owned());
            if paths.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(flow.unwrap().is_break(), paths.len() == most);
        paths
    }

    struct Shared<'a, 'b, 'c>(&'a std::cell::RefCell<&'b mut &'c [u8]>);

    impl Read for Shared<'_, '_, '_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.borrow_mut().read(buffer)
        }
    }

    #[test]
    fn lines_are_paths_and_can_be_read_again() {
        let list = List::default();
        let mut input = b"a.png\r\n\nb c.png\nd.png\nlast.jpg".as_slice();
        assert_eq!(visit(&list, &mut input, 2), ["a.png", "b c.png"]);
        for _ in 0..2 {
            assert_eq!(visit(&list, &mut input, 9), ["a.png", "b c.png", "d.png", "last.jpg"]);
        }
    }

    #[test]
    fn an_image_on_standard_input_is_no_list() {
        let mut seen = |_: &Path| ControlFlow::Continue(());
        for bytes in [b"\x89PNG\0\0\0".to_vec(), vec![b'x'; 70_000]] {
            let error = each_line(&mut bytes.as_slice(), &mut io::sink(), &mut seen).unwrap_err();
            assert!(error.to_string().contains("one path per line"), "{error}");
        }
    }
}
