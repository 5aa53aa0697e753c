//! LIBSVM text: one image per line, `label index:value index:value ...`, indices from one, zeros left
//! out. USPS is published this way, with values from -1 to 1.

use std::path::{Path, PathBuf};

use super::ReadError;
use super::arrays::layout::{FlatShape, Layout, Order, resolve};
use super::arrays::numeric::{Block, whole};
use super::arrays::{ArrayReader, Part};
use super::sequences::lines::Lines;

/// More values per image than this are not pixels.
const MAX_INDEX: usize = 1 << 24;

/// Whether the first bytes look like LIBSVM text.
pub fn matches(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut entries = 0;
    for (number, line) in lines.iter().enumerate().take(8) {
        let mut words: Vec<&str> = line.split_whitespace().take_while(|w| !w.starts_with('#')).collect();
        // The last word may be cut by the end of the head.
        if number + 1 == lines.len() && !text.ends_with('\n') {
            words.pop();
        }
        match words[..] {
            [] => {}
            [label, ref rest @ ..] if label.parse::<f64>().is_ok() && rest.iter().all(|w| entry(w).is_some()) => {
                entries += rest.len();
            }
            _ => return false,
        }
    }
    entries >= 2
}

/// Opens a file: counts its images and their values. Zeros are left out, those at the end too, so an image may have
/// more values than the largest index says: as many as `flat`, or the square that is nearest. The note says which.
pub fn open(path: &Path, flat: Option<FlatShape>) -> Result<(Part, Option<String>), ReadError> {
    let mut lines = Lines::open(path)?;
    let mut labels = Vec::new();
    let mut largest = 0;
    while let Some(line) = lines.next_line()? {
        if line.trim().is_empty() {
            continue;
        }
        let row = Row::parse(&line).map_err(|e| ReadError::file(path, format!("line {} {e}", lines.number)))?;
        labels.push(row.label);
        largest = largest.max(row.entries.iter().map(|e| e.0).max().unwrap_or(0));
    }
    let width = width(largest, flat);
    let layout = resolve(&[labels.len(), width], Order::RowMajor, flat, None).map_err(|e| ReadError::file(path, e))?;
    let note = (width > largest && flat.is_none()).then(|| {
        let Layout { height, width, channels, .. } = layout;
        format!(
            "the largest index of {} is {largest}; the images are taken as {height}x{width}x{channels} with zeros at the \
             end (--shape if they are not)",
            path.display()
        )
    });
    let reader = Box::new(SparseReader { path: path.to_owned(), lines: None, width });
    Ok((Part { name: path.display().to_string(), layout, reader, labels: Some(labels) }, note))
}

/// Values of an image whose largest index is known.
fn width(largest: usize, flat: Option<FlatShape>) -> usize {
    if let Some(FlatShape { height, width, channels, .. }) = flat {
        // A shape that is too small is refused where it is compared with the array.
        return largest.max(height.saturating_mul(width).saturating_mul(channels));
    }
    let side = |n: usize| (n.max(2) - 1).isqrt() + 1;
    let (gray, rgb) = (side(largest), side(largest.div_ceil(3)));
    // Less than a row may be missing, or a part of the last coloured pixel: with more of them nobody knows how long a
    // row is.
    let squares = [(gray * gray, gray), (3 * rgb * rgb, 3)];
    let near = squares.into_iter().filter(|(n, most)| (largest..largest + most).contains(n));
    near.map(|(n, _)| n).min().unwrap_or(largest)
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
    /// `None` before the first value is read.
    lines: Option<Lines>,
    width: usize,
}

impl ArrayReader for SparseReader {
    fn read(&mut self, values: usize) -> Result<Block, ReadError> {
        let lines = match &mut self.lines {
            Some(lines) => lines,
            none => none.insert(Lines::open(&self.path)?),
        };
        let mut out = Vec::with_capacity(values.min(1 << 22));
        while out.len() + self.width <= values {
            let Some(line) = lines.next_line()? else { break };
            if line.trim().is_empty() {
                continue;
            }
            let row = Row::parse(&line).map_err(|e| ReadError::file(&self.path, e))?;
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

    fn rewind(&mut self) -> Result<(), ReadError> {
        self.lines = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_text(text: &str) -> (tempfile::TempDir, Result<Part, ReadError>) {
        let (folder, part) = open_flat(text, None);
        (folder, part.map(|(part, _)| part))
    }

    fn open_flat(
        text: &str,
        flat: Option<FlatShape>,
    ) -> (tempfile::TempDir, Result<(Part, Option<String>), ReadError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usps");
        std::fs::write(&path, text).unwrap();
        let part = open(&path, flat);
        (folder, part)
    }

    #[test]
    fn zeros_are_filled_in() {
        let (_folder, part) = open_text("7 1:-1 3:0.5\n+2 4:1 \n\n");
        let mut part = part.unwrap();
        assert_eq!(part.labels, Some(vec![7, 2]));
        assert_eq!((part.layout.count, part.layout.height, part.layout.width), (2, 2, 2));
        // Reading begins at the beginning, whatever opening has read.
        assert_eq!(part.reader.read(4).unwrap(), Block::Floats(vec![-1.0, 0.0, 0.5, 0.0]));
        assert_eq!(part.reader.read(400).unwrap(), Block::Floats(vec![0.0, 0.0, 0.0, 1.0]));
        part.reader.rewind().unwrap();
        assert_eq!(part.reader.read(400).unwrap().len(), 8);
    }

    #[test]
    fn zeros_at_the_end_may_be_left_out() {
        // 780 of 784 is what MNIST has, 256 is USPS, 3,072 is SVHN.
        for (largest, expected) in [(780, 784), (784, 784), (256, 256), (255, 256), (3072, 3072), (3071, 3072), (4, 4)]
        {
            assert_eq!(width(largest, None), expected, "{largest}");
        }
        // Nobody knows: as many as there are, which is refused where they are no square.
        assert_eq!((width(170, None), width(200, None)), (170, 200));
        let shape: FlatShape = "4x5".parse().unwrap();
        assert_eq!((width(3, Some(shape)), width(21, Some(shape))), (20, 21));
        let (_folder, part) = open_flat("1 1:0.5 7:1\n2 8:1\n", None);
        let (mut part, note) = part.unwrap();
        assert_eq!((part.layout.height, part.layout.width), (3, 3));
        assert!(note.unwrap().contains("is 8; the images are taken as 3x3x1"));
        let expected = [0.5, 0., 0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 0., 0., 0., 0., 1., 0.];
        assert_eq!(part.reader.read(400).unwrap(), Block::Floats(expected.to_vec()));
        let (_folder, part) = open_flat("1 1:0.5 7:1\n", Some(shape));
        let (part, note) = part.unwrap();
        assert_eq!((part.layout.height, part.layout.width, note), (4, 5, None));
        let (_folder, part) = open_flat("1 21:1\n", Some(shape));
        assert!(part.err().unwrap().to_string().contains("--shape 4x5x1"));
    }

    #[test]
    fn faults_name_the_line() {
        let (_folder, part) = open_text("7 1:-1 4:0.5\n7 x:1\n");
        assert!(part.err().unwrap().to_string().contains("line 2 holds something else"));
        assert!(matches(b"7 1:-1 2:0.5 3:-0.0") && matches(b"7 9:1\n3 4:1\n") && matches(b"1 1:1 2:1 # a\n2\n"));
        assert!(!matches(b"7 8 9") && !matches(b"7 1:1 2:1\nhello\n") && !matches(b"a 1:2 3:4 5:6") && !matches(b""));
    }
}
