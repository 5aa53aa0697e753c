//! The UCI Spoken Arabic Digits: text files of blocks, an empty line before each, 13 cepstral
//! coefficients per line. The digit is not written down; it follows from the order: the training file has
//! 660 blocks of each digit from 0 to 9, the test file 220. A file with another number of blocks has no labels.

use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::{MAX_VALUES, number};
use crate::ReadError;
use crate::record::{Classes, Content, ContentForm, Description, Importer, Record, Sink};

/// Coefficients per line.
const DIM: usize = 13;
/// Classes.
const DIGITS: u64 = 10;
/// Blocks of each digit in the files that are published.
const PER_DIGIT: [u64; 2] = [660, 220];

/// Whether the first bytes look like such a file: an empty line, then 13 numbers.
pub fn matches(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let blank = lines.next().is_some_and(|l| l.trim().is_empty());
    blank && lines.next().is_some_and(|l| parse(l).is_ok())
}

/// One such file.
pub struct ArabicImporter {
    path: PathBuf,
    /// `None` where it is not known.
    per_digit: Option<u64>,
    description: Description,
}

impl ArabicImporter {
    /// Counts the blocks, which says how many belong to each digit.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let mut blocks = 0;
        let mut reader = Blocks::open(path)?;
        while reader.next_block(false)?.is_some() {
            blocks += 1;
        }
        if blocks == 0 {
            return Err(ReadError::file(path, "there are no blocks of numbers"));
        }
        let per_digit = PER_DIGIT.into_iter().find(|per_digit| per_digit * DIGITS == blocks);
        let (classes, notes) = match per_digit {
            Some(_) => (Classes::Numbers((0..DIGITS as i64).collect()), Vec::new()),
            None => {
                let note = "not the 6,600 or 2,200 of the Arabic Digits, so the digits are not known";
                (Classes::None, vec![format!("{} has {blocks} sequences, {note}", path.display())])
            }
        };
        let description = Description {
            count: Some(blocks),
            classes,
            notes,
            origin: path.file_name().map(|name| name.to_string_lossy().into_owned()),
            ..Description::new("UCI Arabic Digits", ContentForm::Sequences { dim: DIM })
        };
        Ok(Self { path: path.to_owned(), per_digit, description })
    }
}

impl Importer for ArabicImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let mut reader = Blocks::open(&self.path)?;
        let mut index = 0;
        while let Some(values) = reader.next_block(true)? {
            let label = self.per_digit.map(|per_digit| (index / per_digit) as i64);
            if sink(Record { content: Content::Sequence(values), label, path: None }).is_break() {
                break;
            }
            index += 1;
        }
        Ok(())
    }
}

struct Blocks {
    lines: Lines,
}

impl Blocks {
    fn open(path: &Path) -> Result<Self, ReadError> {
        Ok(Self { lines: Lines::open(path)? })
    }

    /// The values of the next block; with `parsed` false they are only counted over.
    fn next_block(&mut self, parsed: bool) -> Result<Option<Vec<f32>>, ReadError> {
        let mut values = Vec::new();
        let mut seen = false;
        while let Some(line) = self.lines.next_line()? {
            let blank = line.trim().is_empty();
            if blank && seen {
                return Ok(Some(values));
            }
            if blank {
                continue;
            }
            seen = true;
            if parsed {
                if values.len() + DIM > MAX_VALUES {
                    return Err(self.lines.fault(&format!("is of a sequence of more than {MAX_VALUES} values")));
                }
                values.extend(parse(&line).map_err(|e| self.lines.fault(&e))?);
            }
        }
        Ok(seen.then_some(values))
    }
}

fn parse(line: &str) -> Result<[f32; DIM], String> {
    let mut row = [0.0; DIM];
    let mut words = line.split_whitespace();
    for (place, value) in row.iter_mut().enumerate() {
        let word = words.next().ok_or_else(|| format!("has {place} values instead of {DIM}"))?;
        *value = number(word)?;
    }
    if words.next().is_some() { Err(format!("has more than the {DIM} values of a step")) } else { Ok(row) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::records;

    /// Blocks of the values 0, 1 and so on, all of one step but the first, which has two.
    fn text(blocks: usize) -> String {
        let row = |k: usize| format!("{}\n", [k.to_string().as_str(); DIM].join(" "));
        let block = |k: usize| format!("            \n{}", row(k).repeat(if k == 0 { 2 } else { 1 }));
        (0..blocks).map(block).collect()
    }

    fn open(text: &str) -> (tempfile::TempDir, Result<ArabicImporter, ReadError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Train_Arabic_Digit.txt");
        std::fs::write(&path, text).unwrap();
        let source = ArabicImporter::open(&path);
        (folder, source)
    }

    #[test]
    fn the_digit_follows_from_the_order_in_the_published_files() {
        for per_digit in PER_DIGIT {
            let (_folder, source) = open(&text(10 * per_digit as usize));
            let mut source = source.unwrap();
            assert_eq!(source.describe().count, Some(10 * per_digit));
            let records = records(&mut source).unwrap();
            let labels: Vec<i64> = records.iter().map(|record| record.label.unwrap()).collect();
            let digits = (0..10).flat_map(|digit| std::iter::repeat_n(digit, per_digit as usize));
            assert!(labels.into_iter().eq(digits));
            assert_eq!(records[0].content, Content::Sequence(vec![0.0; 2 * DIM]));
        }
    }

    #[test]
    fn other_sizes_have_no_labels_and_a_remark() {
        let (_folder, source) = open(&text(30));
        let mut source = source.unwrap();
        assert_eq!(source.describe().classes, Classes::None);
        assert!(source.describe().notes[0].contains("has 30 sequences, not the 6,600"));
        assert!(records(&mut source).unwrap().iter().all(|record| record.label.is_none()));
    }

    #[test]
    fn faults_are_found() {
        let error = |text: &str| {
            let (_folder, source) = open(text);
            source.and_then(|mut source| records(&mut source)).unwrap_err().to_string()
        };
        assert!(error(&text(10).replacen("5 5", "5 x", 1)).contains("holds 'x'"));
        assert!(error(&text(10).replacen("5 5", "5", 1)).contains("has 12 values instead of 13"));
        assert!(error(&text(10).replacen("5 5", "5 5 5", 1)).contains("more than the 13 values"));
        assert!(error("\n \n").contains("no blocks"));
    }

    #[test]
    fn heads_are_told_apart() {
        assert!(matches(text(1).as_bytes()));
        assert!(!matches(b"1 2 3\n") && !matches(b"\n1 2 3\n") && !matches(b""));
    }
}
