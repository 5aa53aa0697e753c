//! LIBSVM text: one image per line, `label index:value index:value ...`, indices from one, zeros left
//! out. USPS is published this way, with values from -1 to 1.

use std::path::{Path, PathBuf};

use super::ImportError;
use super::arrays::layout::{FlatShape, Order, resolve};
use super::arrays::numeric::{Block, whole};
use super::arrays::{ArrayReader, Part};
use super::ts::Lines;

/// More values per image than this are not pixels.
const MAX_INDEX: usize = 1 << 24;

/// Whether the first bytes look like LIBSVM text.
pub fn matches(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let Some(line) = text.lines().next() else { return false };
    let mut words = line.split_whitespace();
    let label = words.next().is_some_and(|w| w.parse::<f64>().is_ok());
    // The last word may be cut by the end of the head.
    let words: Vec<&str> = words.take(3).collect();
    label && words.len() == 3 && words[..2].iter().all(|w| entry(w).is_some())
}

/// Opens a file: counts its images and their values.
pub fn open(path: &Path, flat: Option<FlatShape>) -> Result<Part, ImportError> {
    let mut lines = Lines::open(path)?;
    let mut labels = Vec::new();
    let mut width = 0;
    while let Some(line) = lines.next_line()? {
        if line.trim().is_empty() {
            continue;
        }
        let row = Row::parse(&line).map_err(|e| ImportError::file(path, format!("line {} {e}", lines.number)))?;
        labels.push(row.label);
        width = width.max(row.entries.iter().map(|e| e.0).max().unwrap_or(0));
    }
    let layout =
        resolve(&[labels.len(), width], Order::RowMajor, flat, None).map_err(|e| ImportError::file(path, e))?;
    let reader = Box::new(SparseReader { path: path.to_owned(), lines, width });
    Ok(Part { name: path.display().to_string(), layout, reader, labels: Some(labels) })
}

struct Row {
    label: i64,
    entries: Vec<(usize, f32)>,
}

impl Row {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let label = words.next().unwrap_or_default();
        let label = label
            .parse::<f64>()
            .ok()
            .and_then(whole)
            .ok_or_else(|| format!("has the label '{label}', not a whole number"))?;
        let entries: Option<Vec<_>> = words.take_while(|w| !w.starts_with('#')).map(entry).collect();
        Ok(Self { label, entries: entries.ok_or("holds something else than index:value")? })
    }
}

fn entry(word: &str) -> Option<(usize, f32)> {
    let (index, value) = word.split_once(':')?;
    let index = index.parse().ok().filter(|i| (1..=MAX_INDEX).contains(i))?;
    Some((index, value.parse().ok()?))
}

struct SparseReader {
    path: PathBuf,
    lines: Lines,
    width: usize,
}

impl ArrayReader for SparseReader {
    fn read(&mut self, values: usize) -> Result<Block, ImportError> {
        let mut out = Vec::with_capacity(values.min(1 << 22));
        while out.len() + self.width <= values {
            let Some(line) = self.lines.next_line()? else { break };
            if line.trim().is_empty() {
                continue;
            }
            let row = Row::parse(&line).map_err(|e| ImportError::file(&self.path, e))?;
            let start = out.len();
            out.resize(start + self.width, 0.0);
            for (index, value) in row.entries {
                if let Some(place) = out.get_mut(start + index - 1) {
                    *place = value;
                }
            }
        }
        Ok(Block::Floats(out))
    }

    fn rewind(&mut self) -> Result<(), ImportError> {
        self.lines = Lines::open(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_text(text: &str) -> (tempfile::TempDir, Result<Part, ImportError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usps");
        std::fs::write(&path, text).unwrap();
        let part = open(&path, None);
        (folder, part)
    }

    #[test]
    fn zeros_are_filled_in() {
        let (_folder, part) = open_text("7 1:-1 3:0.5\n+2 4:1 \n\n");
        let mut part = part.unwrap();
        assert_eq!(part.labels, Some(vec![7, 2]));
        assert_eq!((part.layout.count, part.layout.height, part.layout.width), (2, 2, 2));
        part.reader.rewind().unwrap();
        assert_eq!(part.reader.read(4).unwrap(), Block::Floats(vec![-1.0, 0.0, 0.5, 0.0]));
        assert_eq!(part.reader.read(400).unwrap(), Block::Floats(vec![0.0, 0.0, 0.0, 1.0]));
    }

    #[test]
    fn faults_name_the_line() {
        let (_folder, part) = open_text("7 1:-1 4:0.5\n7 x:1\n");
        assert!(part.err().unwrap().to_string().contains("line 2 holds something else"));
        assert!(matches(b"7 1:-1 2:0.5 3:-0.0"));
        assert!(!matches(b"7 8 9") && !matches(b"a 1:2 3:4 5:6") && !matches(b""));
    }
}
