//! Comma-separated values. Numbers are written with as many digits as tell them apart, so they read back exactly. Text
//! that a spreadsheet would take for a formula is marked as text, and read back without the mark.

use std::fmt::{self, Write as _};
use std::io::Write;
use std::path::{Path, PathBuf};

use ::csv::{ByteRecord, Reader, ReaderBuilder, Writer};

use dtkc_human::{cell, from_cell};
use dtkc_item::Items;

use super::{RowWriter, Stored};
use crate::error::{LabelError, Result};
use crate::layout::Layout;
use crate::row::{Label, Row, error_text, parse_error};

pub(super) struct CsvWriter<W: Write> {
    out: Writer<W>,
    layout: Layout,
    record: ByteRecord,
    text: String,
}

/// The column names.
fn header(layout: &Layout) -> Vec<String> {
    let fixed =
        ["index", "path", "cluster", "cluster_name", "confidence", "second_cluster", "second_confidence", "margin"];
    let mut names: Vec<String> = fixed.map(str::to_owned).into();
    names.extend(layout.outlier.map(|_| "outlier".to_owned()));
    if layout.truth {
        names.push("truth".into());
    }
    names.push("error".into());
    names.extend((0..layout.probability_columns()).map(|i| format!("probability_{i}")));
    names.extend((0..layout.embedding).map(|i| format!("embedding_{i}")));
    names
}

impl<W: Write> CsvWriter<W> {
    pub(super) fn new(out: W, layout: &Layout) -> Result<Self> {
        let mut out = Writer::from_writer(out);
        out.write_record(header(layout)).map_err(write_error)?;
        Ok(Self { out, layout: layout.clone(), record: ByteRecord::new(), text: String::new() })
    }

    fn put(&mut self, value: impl fmt::Display) {
        self.text.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{value}");
        self.record.push_field(self.text.as_bytes());
    }

    fn put_text(&mut self, text: &str) {
        self.record.push_field(cell(text).as_bytes());
    }

    /// `{:?}` writes very small numbers with an exponent.
    fn put_float(&mut self, value: f32) {
        self.put(format_args!("{value:?}"));
    }

    fn put_row(&mut self, row: &Row) {
        self.record.clear();
        self.put(row.index);
        self.put_text(&row.path);
        match &row.outcome {
            Ok(label) => {
                self.put(label.cluster);
                self.record.push_field(cell(self.layout.name(label)).as_bytes());
                self.put_float(label.confidence);
                self.put(label.second);
                self.put_float(label.second_confidence);
                self.put_float(label.margin);
            }
            Err(_) => (0..6).for_each(|_| self.record.push_field(b"")),
        }
        if self.layout.outlier.is_some() {
            match row.outcome.as_ref().ok().and_then(|label| label.outlier) {
                Some(value) => self.put_float(value),
                None => self.record.push_field(b""),
            }
        }
        if self.layout.truth {
            self.put_text(row.truth.as_deref().unwrap_or_default());
        }
        match &row.outcome {
            Ok(label) => {
                self.record.push_field(b"");
                label.probabilities.iter().chain(&label.embedding).for_each(|v| self.put_float(*v));
            }
            Err(error) => {
                self.put_text(&error_text(error));
                let columns = self.layout.probability_columns() + self.layout.embedding;
                (0..columns).for_each(|_| self.record.push_field(b""));
            }
        }
    }
}

impl<W: Write> RowWriter for CsvWriter<W> {
    fn write(&mut self, rows: &[Row], _items: &Items) -> Result<()> {
        for row in rows {
            self.put_row(row);
            self.out.write_byte_record(&self.record).map_err(write_error)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}

/// Keeps the system's error, so that a closed pipe is seen for what it is.
fn write_error(error: ::csv::Error) -> LabelError {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => LabelError::Io(error),
        other => LabelError::Settings(format!("a row cannot be written as CSV ({other:?})")),
    }
}

pub(super) fn read(path: &Path, layout: &Layout) -> Result<CsvRows> {
    let file = fs_err::File::open(path)?;
    let mut reader = ReaderBuilder::new().from_reader(Box::new(file) as Box<dyn std::io::Read>);
    let found = reader.headers().map_err(|e| LabelError::wrap(path, e))?;
    if found.iter().ne(header(layout)) {
        return Err(LabelError::file(
            path,
            "its columns are not those of the run that wrote it; label this part again",
        ));
    }
    Ok(CsvRows { path: path.to_owned(), layout: layout.clone(), reader, record: ByteRecord::new() })
}

pub(super) struct CsvRows {
    path: PathBuf,
    layout: Layout,
    reader: Reader<Box<dyn std::io::Read>>,
    record: ByteRecord,
}

impl Iterator for CsvRows {
    type Item = Result<Stored>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.reader.read_byte_record(&mut self.record) {
            Ok(false) => None,
            Ok(true) => {
                let row = parse(&self.record, &self.layout);
                let line = self.record.position().map_or(0, ::csv::Position::line);
                Some(row.map(|row| (row, None)).ok_or_else(|| {
                    LabelError::file(&self.path, format!("line {line} is damaged; label this part again"))
                }))
            }
            Err(error) => Some(Err(LabelError::wrap(&self.path, error))),
        }
    }
}

fn parse(record: &ByteRecord, layout: &Layout) -> Option<Row> {
    let field = |i: usize| std::str::from_utf8(record.get(i)?).ok();
    let float = |i: usize| field(i)?.parse::<f32>().ok();
    let truth_at = 8 + usize::from(layout.outlier.is_some());
    let error_at = truth_at + usize::from(layout.truth);
    let probabilities = error_at + 1..error_at + 1 + layout.probability_columns();
    let embedding = probabilities.end..probabilities.end + layout.embedding;
    let error = field(error_at)?;
    let outcome = if error.is_empty() {
        Ok(Label {
            cluster: field(2)?.parse().ok()?,
            confidence: float(4)?,
            second: field(5)?.parse().ok()?,
            second_confidence: float(6)?,
            margin: float(7)?,
            outlier: if layout.outlier.is_some() { Some(float(8)?) } else { None },
            probabilities: probabilities.map(float).collect::<Option<_>>()?,
            embedding: embedding.map(float).collect::<Option<_>>()?,
            size: None,
            print: None,
        })
    } else {
        Err(parse_error(from_cell(error)))
    };
    let truth =
        if layout.truth { field(truth_at).map(from_cell).filter(|t| !t.is_empty()).map(str::to_owned) } else { None };
    Some(Row { index: field(0)?.parse().ok()?, path: from_cell(field(1)?).to_owned(), truth, outcome })
}
