//! UEA/UCR .ts files: sequences of several dimensions. After `@data` every line is one sequence, its
//! dimensions separated by `:`, values by `,`, the class last.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::ImportError;
use super::record::{Classes, Content, ContentForm, Description, Importer, Record, Sink};
use super::stream::{self, Stream};

/// A line longer than this is not a sequence that anybody recorded.
const MAX_LINE: u64 = 256 << 20;

/// Whether the first bytes look like a .ts file: its header words.
pub fn matches(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    text.lines().map(str::trim_start).any(|l| l.starts_with("@problemname") || l.starts_with("@timestamps"))
}

/// What stands before `@data`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Header {
    timestamps: bool,
    labelled: bool,
    classes: Vec<String>,
}

/// One .ts file.
pub struct TsImporter {
    path: PathBuf,
    header: Header,
    dim: usize,
    labels: Vec<i64>,
    description: Description,
}

impl TsImporter {
    /// Reads the header, and the first sequence for the number of dimensions.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let mut lines = Lines::open(path)?;
        let header = read_header(&mut lines)?;
        if header.timestamps {
            return Err(ImportError::file(path, "sequences with time stamps are not supported; export them without"));
        }
        let (classes, labels) = match header.labelled {
            true => Classes::from_names(header.classes.clone()),
            false => (Classes::None, Vec::new()),
        };
        let Some(line) = lines.next_data()? else {
            return Err(ImportError::file(path, "there are no sequences after @data"));
        };
        let dim = line.split(':').count() - usize::from(header.labelled);
        if dim == 0 {
            return Err(ImportError::file(path, format!("line {} holds no values", lines.number)));
        }
        let description = Description { classes, ..Description::new("UEA .ts", ContentForm::Sequences { dim }) };
        Ok(Self { path: path.to_owned(), header, dim, labels, description })
    }

    fn record(&self, line: &str) -> Result<Record, String> {
        let mut parts: Vec<&str> = line.split(':').collect();
        let label = match self.header.labelled {
            true => Some(self.label(parts.pop().unwrap_or_default().trim())?),
            false => None,
        };
        if parts.len() != self.dim {
            return Err(format!("has {} dimensions instead of {}", parts.len(), self.dim));
        }
        let mut columns = Vec::with_capacity(self.dim);
        for part in parts {
            let column: Result<Vec<f32>, String> = part.split(',').map(number).collect();
            columns.push(column?);
        }
        let length = columns.iter().map(Vec::len).max().unwrap_or(0);
        if columns.iter().any(|c| c.len() != length) {
            return Err("has dimensions of different lengths".to_owned());
        }
        let values = (0..length).flat_map(|t| columns.iter().map(move |c| c[t])).collect();
        Ok(Record { content: Content::Sequence(values), label, path: None })
    }

    fn label(&self, name: &str) -> Result<i64, String> {
        let place = self.header.classes.iter().position(|c| c == name);
        let label = place.and_then(|i| self.labels.get(i)).copied();
        label.ok_or_else(|| format!("has the class '{name}', which @classLabel does not list"))
    }
}

fn number(text: &str) -> Result<f32, String> {
    let text = text.trim();
    match text.parse::<f32>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ if text == "?" || text.eq_ignore_ascii_case("nan") => {
            Err("has missing values; fill them before the import".to_owned())
        }
        _ => Err(format!("holds '{}', which is not a number", text.chars().take(20).collect::<String>())),
    }
}

impl Importer for TsImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ImportError> {
        let mut lines = Lines::open(&self.path)?;
        read_header(&mut lines)?;
        while let Some(line) = lines.next_data()? {
            let record = self.record(&line);
            let record = record.map_err(|e| ImportError::file(&self.path, format!("line {} {e}", lines.number)))?;
            if sink(record)?.is_break() {
                break;
            }
        }
        Ok(())
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
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        Ok(Self { path: path.to_owned(), stream: stream::open(path)?, number: 0 })
    }

    /// The next line without its end.
    pub fn next_line(&mut self) -> Result<Option<String>, ImportError> {
        let mut bytes = Vec::new();
        let mut limited = std::io::Read::take(&mut self.stream, MAX_LINE);
        let read = limited.read_until(b'\n', &mut bytes).map_err(|e| ImportError::read(&self.path, e))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if read as u64 == MAX_LINE {
            return Err(ImportError::file(
                &self.path,
                format!("line {} is too long; this is not a text file of sequences", self.number),
            ));
        }
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| ImportError::file(&self.path, format!("line {} is not text", self.number)))?;
        Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
    }

    /// The next line that is neither empty nor a comment.
    fn next_data(&mut self) -> Result<Option<String>, ImportError> {
        while let Some(line) = self.next_line()? {
            if !line.trim().is_empty() && !line.starts_with('#') {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }
}

fn read_header(lines: &mut Lines) -> Result<Header, ImportError> {
    let mut header = Header::default();
    while let Some(line) = lines.next_data()? {
        let mut words = line.split_whitespace();
        let key = words.next().unwrap_or_default().to_ascii_lowercase();
        let mut is_true = || words.next().is_some_and(|w| w.eq_ignore_ascii_case("true"));
        match key.as_str() {
            "@data" => return Ok(header),
            "@timestamps" => header.timestamps = is_true(),
            "@classlabel" => {
                header.labelled = is_true();
                header.classes = words.map(str::to_owned).collect();
            }
            key if key.starts_with('@') => {}
            _ => return Err(ImportError::file(&lines.path, format!("line {} stands before @data", lines.number))),
        }
    }
    Err(ImportError::file(&lines.path, "there is no @data; the file is cut off or not a .ts file"))
}

#[cfg(test)]
mod tests {
    use super::super::record;
    use super::*;

    const TEXT: &str = "# a comment\n@problemName Test\n@timeStamps false\n@univariate false\n\
        @classLabel true up down\n@data\n1,2,3:4,5,6:down\r\n7:8:up\n";

    fn source(text: &str) -> (tempfile::TempDir, Result<TsImporter, ImportError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ts");
        std::fs::write(&path, text).unwrap();
        let source = TsImporter::open(&path);
        (folder, source)
    }

    fn records(text: &str) -> Result<Vec<Record>, ImportError> {
        let (_folder, source) = source(text);
        record::records(&mut source?)
    }

    #[test]
    fn steps_come_out_one_after_the_other() {
        let sequence = |values: &[f32], label| Record {
            content: Content::Sequence(values.to_vec()),
            label: Some(label),
            path: None,
        };
        let expected = [sequence(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0], 1), sequence(&[7.0, 8.0], 0)];
        assert_eq!(records(TEXT).unwrap(), expected);
        let (_folder, source) = source(TEXT);
        let source = source.unwrap();
        assert_eq!(source.describe().form, ContentForm::Sequences { dim: 2 });
        assert_eq!(source.describe().classes, Classes::Names(vec!["up".into(), "down".into()]));
    }

    #[test]
    fn numeric_classes_keep_their_numbers() {
        let text = TEXT.replace("up", "3").replace("down", "7");
        assert_eq!(records(&text).unwrap()[0].label, Some(7));
    }

    #[test]
    fn faults_name_the_line() {
        let error = |text: &str| records(text).unwrap_err().to_string();
        assert!(error(&TEXT.replace("7:8:up", "7:8:left")).contains("line 8 has the class 'left'"));
        assert!(error(&TEXT.replace("7:8:up", "7:up")).contains("line 8 has 1 dimensions instead of 2"));
        assert!(error(&TEXT.replace("7:8:up", "7:x:up")).contains("line 8 holds 'x'"));
        assert!(error(&TEXT.replace("7:8:up", "7:?:up")).contains("missing values"));
        assert!(error(&TEXT.replace("7:8:up", "7:8,9:up")).contains("different lengths"));
        assert!(error("@problemName x\n").contains("no @data"));
        assert!(error("@problemName x\n@data\n").contains("no sequences"));
    }

    #[test]
    fn heads_are_told_apart() {
        assert!(matches(TEXT.as_bytes()));
        assert!(!matches(b"1 2 3\n"));
    }
}
