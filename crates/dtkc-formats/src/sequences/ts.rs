//! UEA/UCR .ts files: sequences of several dimensions. After `@data` every line is one sequence, its
//! dimensions separated by `:`, values by `,`, the class last.

use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::{MAX_DIM, MAX_VALUES, number, shortened, steps_of};
use crate::ReadError;
use crate::record::{Classes, Content, ContentForm, Description, Importer, Record, Sink};

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
    /// Whether a number that is to be foretold stands last, as in sets for regression.
    target: bool,
}

impl Header {
    /// What stands behind the dimensions.
    fn behind(&self) -> usize {
        usize::from(self.labelled) + usize::from(self.target)
    }
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
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let mut lines = Lines::open(path)?;
        let header = read_header(&mut lines)?;
        if header.timestamps {
            return Err(ReadError::file(
                path,
                "sequences with time stamps (@timeStamps true) are not read; save them without",
            ));
        }
        let (classes, labels) = match header.labelled {
            true => Classes::from_names(header.classes.clone()),
            false => (Classes::None, Vec::new()),
        };
        let Some(line) = lines.next_data()? else {
            return Err(ReadError::file(path, "there are no sequences after @data"));
        };
        let dim = line.split(':').count().saturating_sub(header.behind());
        if !(1..=MAX_DIM).contains(&dim) {
            let reason = format!("line {} has {dim} dimensions; a sequence has 1 to {MAX_DIM}", lines.number);
            return Err(ReadError::file(path, reason));
        }
        let notes = match header.target {
            true => {
                vec!["the numbers after the sequences (@targetLabel) were left out: they are no classes".to_owned()]
            }
            false => Vec::new(),
        };
        let form = ContentForm::Sequences { dim };
        let origin = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let description = Description { classes, notes, origin, ..Description::new("UEA .ts", form) };
        Ok(Self { path: path.to_owned(), header, dim, labels, description })
    }

    fn record(&self, line: &str) -> Result<Record, String> {
        let found = line.bytes().filter(|&b| b == b':').count() + 1;
        if found != self.dim + self.header.behind() {
            let found = found.saturating_sub(self.header.behind());
            return Err(format!("has {found} dimensions instead of {}", self.dim));
        }
        let values = line.bytes().filter(|&b| b == b',').count() + self.dim;
        if values > MAX_VALUES {
            return Err(format!("has {values} values; a sequence has at most {MAX_VALUES}"));
        }
        let mut parts = line.split(':');
        let columns = parts.by_ref().take(self.dim).map(column).collect::<Result<Vec<_>, _>>()?;
        let content = Content::Sequence(steps_of(&columns)?);
        let label = match self.header.labelled {
            true => Some(self.label(parts.next().unwrap_or_default().trim())?),
            false => None,
        };
        Ok(Record { content, label, path: None })
    }

    fn label(&self, name: &str) -> Result<i64, String> {
        let place = self.header.classes.iter().position(|c| c == name);
        let label = place.and_then(|i| self.labels.get(i)).copied();
        label.ok_or_else(|| format!("has the class '{}', which @classLabel does not list", shortened(name)))
    }
}

/// One dimension; nothing at all is one without steps.
fn column(part: &str) -> Result<Vec<f32>, String> {
    if part.trim().is_empty() { Ok(Vec::new()) } else { part.split(',').map(number).collect() }
}

impl Importer for TsImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let mut lines = Lines::open(&self.path)?;
        read_header(&mut lines)?;
        while let Some(line) = lines.next_data()? {
            let record = self.record(&line).map_err(|e| lines.fault(&e))?;
            if sink(record).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn read_header(lines: &mut Lines) -> Result<Header, ReadError> {
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
            "@targetlabel" => header.target = is_true(),
            key if key.starts_with('@') => {}
            _ => return Err(lines.fault("stands before @data")),
        }
    }
    Err(ReadError::file(lines.path(), "there is no @data; the file is cut off or not a .ts file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;

    const TEXT: &str = "# a comment\n@problemName Test\n@timeStamps false\n@univariate false\n\
        @classLabel true up down\n@data\n1,2,3:4,5,6:down\r\n7:8:up\n";

    fn source(text: &str) -> (tempfile::TempDir, Result<TsImporter, ReadError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ts");
        std::fs::write(&path, text).unwrap();
        let source = TsImporter::open(&path);
        (folder, source)
    }

    fn records(text: &str) -> Result<Vec<Record>, ReadError> {
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
    fn missing_values_and_empty_sequences_come_through() {
        let records = records(&TEXT.replace("7:8:up", "7,?:?,8:up\n::up")).unwrap();
        let Content::Sequence(values) = &records[1].content else { panic!("no sequence") };
        assert_eq!((values[0], values[3], values[1].is_nan(), values[2].is_nan()), (7.0, 8.0, true, true));
        assert_eq!(records[2].content, Content::Sequence(vec![]));
    }

    #[test]
    fn numbers_to_be_foretold_are_left_out() {
        let text =
            TEXT.replace("@classLabel true up down", "@targetLabel true").replace("down", "0.5").replace("up", "7");
        assert_eq!(
            records(&text).unwrap()[1],
            Record { content: Content::Sequence(vec![7.0, 8.0]), label: None, path: None }
        );
    }

    #[test]
    fn faults_name_the_line() {
        let error = |text: &str| records(text).unwrap_err().to_string();
        assert!(error(&TEXT.replace("7:8:up", "7:8:left")).contains("line 8 has the class 'left'"));
        assert!(error(&TEXT.replace("7:8:up", "7:up")).contains("line 8 has 1 dimensions instead of 2"));
        assert!(error(&TEXT.replace("7:8:up", "7:x:up")).contains("line 8 holds 'x'"));
        assert!(error(&TEXT.replace("7:8:up", "7:8,9:up")).contains("has 1 steps in dimension 1 and 2 in dimension 2"));
        assert!(error(&TEXT.replace("Stamps false", "Stamps true")).contains("save them without"));
        assert!(error("@problemName x\n").contains("no @data"));
        assert!(error("@problemName x\n@data\n").contains("no sequences"));
    }

    #[test]
    fn heads_are_told_apart() {
        assert!(matches(TEXT.as_bytes()));
        assert!(!matches(b"1 2 3\n"));
    }
}
