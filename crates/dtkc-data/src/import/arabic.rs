//! The UCI Spoken Arabic Digits: text files of blocks, an empty line before each, 13 cepstral
//! coefficients per line. The digit is not written down; it follows from the order: a tenth of the blocks
//! for each digit from 0 to 9 (660 each in the training file, 220 in the test file).

use std::path::{Path, PathBuf};

use super::ImportError;
use super::record::{Classes, Content, ContentForm, Description, Importer, Record, Sink};
use super::ts::Lines;

/// Coefficients per line.
const DIM: usize = 13;
/// Classes.
const DIGITS: u64 = 10;

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
    blocks: u64,
    description: Description,
}

impl ArabicImporter {
    /// Counts the blocks, which says how many belong to each digit.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let mut blocks = 0;
        let mut reader = Blocks::open(path)?;
        while reader.next_block(false)?.is_some() {
            blocks += 1;
        }
        if blocks == 0 || blocks % DIGITS != 0 {
            let reason = format!(
                "{blocks} blocks cannot be shared among ten digits; the file is cut off or not the Arabic Digits"
            );
            return Err(ImportError::file(path, reason));
        }
        let description = Description {
            count: Some(blocks),
            classes: Classes::Numbers((0..DIGITS as i64).collect()),
            ..Description::new("UCI Arabic Digits", ContentForm::Sequences { dim: DIM })
        };
        Ok(Self { path: path.to_owned(), blocks, description })
    }
}

impl Importer for ArabicImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ImportError> {
        let per_digit = self.blocks / DIGITS;
        let mut reader = Blocks::open(&self.path)?;
        let mut index = 0;
        while let Some(values) = reader.next_block(true)? {
            let label = Some((index / per_digit) as i64);
            if sink(Record { content: Content::Sequence(values), label, path: None })?.is_break() {
                break;
            }
            index += 1;
        }
        Ok(())
    }
}

struct Blocks {
    path: PathBuf,
    lines: Lines,
}

impl Blocks {
    fn open(path: &Path) -> Result<Self, ImportError> {
        Ok(Self { path: path.to_owned(), lines: Lines::open(path)? })
    }

    /// The values of the next block; with `parsed` false they are only counted over.
    fn next_block(&mut self, parsed: bool) -> Result<Option<Vec<f32>>, ImportError> {
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
                let row = parse(&line)
                    .map_err(|e| ImportError::file(&self.path, format!("line {} {e}", self.lines.number)))?;
                values.extend(row);
            }
        }
        Ok(seen.then_some(values))
    }
}

fn parse(line: &str) -> Result<[f32; DIM], String> {
    let mut row = [0.0; DIM];
    let mut words = line.split_whitespace();
    for value in &mut row {
        let word = words.next().ok_or_else(|| format!("has fewer than {DIM} values"))?;
        let number = word.parse::<f32>().ok().filter(|v| v.is_finite());
        *value = number
            .ok_or_else(|| format!("holds '{}', which is not a number", word.chars().take(20).collect::<String>()))?;
    }
    if words.next().is_some() { Err(format!("has more than {DIM} values")) } else { Ok(row) }
}

#[cfg(test)]
mod tests {
    use super::super::record::records;
    use super::*;

    /// `per_digit` blocks for each digit; block k has k + 1 lines of the value k.
    fn text(per_digit: usize) -> String {
        let block = |k: usize| {
            format!("            \n{}", format!("{}\n", [k.to_string().as_str(); DIM].join(" ")).repeat(k + 1))
        };
        (0..10 * per_digit).map(block).collect()
    }

    fn open(text: &str) -> (tempfile::TempDir, Result<ArabicImporter, ImportError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Train_Arabic_Digit.txt");
        std::fs::write(&path, text).unwrap();
        let source = ArabicImporter::open(&path);
        (folder, source)
    }

    #[test]
    fn the_digit_follows_from_the_order() {
        let (_folder, source) = open(&text(3));
        let mut source = source.unwrap();
        assert_eq!(source.describe().count, Some(30));
        let records = records(&mut source).unwrap();
        assert_eq!(records.len(), 30);
        assert_eq!(records[29].label, Some(9));
        assert_eq!(records[2].label, Some(0));
        assert_eq!(records[3].label, Some(1));
        assert_eq!(records[3].content, Content::Sequence(vec![3.0; 4 * DIM]));
    }

    #[test]
    fn faults_are_found() {
        let (_a, cut) = open(&text(3).lines().take(40).map(|l| format!("{l}\n")).collect::<String>());
        assert!(cut.err().unwrap().to_string().contains("ten digits"));
        let (_b, bad) = open(&text(1).replacen("5 5", "5 x", 1));
        let error = records(&mut bad.unwrap()).unwrap_err();
        assert!(error.to_string().contains("holds 'x'"), "{error}");
    }

    #[test]
    fn heads_are_told_apart() {
        assert!(matches(text(1).as_bytes()));
        assert!(!matches(b"1 2 3\n") && !matches(b"\n1 2 3\n") && !matches(b""));
    }
}
