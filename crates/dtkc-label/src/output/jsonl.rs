//! One JSON object per line, every line with the same keys.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use dtkc_item::Items;
use serde::{Deserialize, Serialize};

use super::{RowWriter, Stored};
use crate::error::{LabelError, Result};
use crate::layout::Layout;
use crate::row::{Label, Row, error_text, parse_error};

/// One line. Optional columns are absent where they were not asked for, `null` where a row has none.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    index: u64,
    #[serde(borrow)]
    path: Cow<'a, str>,
    cluster: Option<u32>,
    #[serde(borrow)]
    cluster_name: Option<Cow<'a, str>>,
    confidence: Option<f32>,
    second_cluster: Option<u32>,
    second_confidence: Option<f32>,
    margin: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outlier: Option<Option<f32>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    truth: Option<Option<Cow<'a, str>>>,
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probabilities: Option<Option<Cow<'a, [f32]>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedding: Option<Option<Cow<'a, [f32]>>>,
}

pub(super) struct JsonlWriter<W: Write> {
    out: W,
    layout: Layout,
}

impl<W: Write> JsonlWriter<W> {
    pub(super) fn new(out: W, layout: &Layout) -> Self {
        Self { out, layout: layout.clone() }
    }

    fn line<'a>(&'a self, row: &'a Row) -> Line<'a> {
        let label = row.outcome.as_ref().ok();
        Line {
            index: row.index,
            path: Cow::Borrowed(&row.path),
            cluster: label.map(|l| l.cluster),
            cluster_name: label.map(|l| Cow::Borrowed(self.layout.name(l))),
            confidence: label.map(|l| l.confidence),
            second_cluster: label.map(|l| l.second),
            second_confidence: label.map(|l| l.second_confidence),
            margin: label.map(|l| l.margin),
            outlier: self.layout.outlier.map(|_| label.and_then(|l| l.outlier)),
            truth: self.layout.truth.then(|| row.truth.as_deref().map(Cow::Borrowed)),
            error: row.outcome.as_ref().err().map(error_text),
            probabilities: self.layout.probabilities.then(|| label.map(|l| Cow::Borrowed(l.probabilities.as_slice()))),
            embedding: (self.layout.embedding > 0).then(|| label.map(|l| Cow::Borrowed(l.embedding.as_slice()))),
        }
    }
}

impl<W: Write> RowWriter for JsonlWriter<W> {
    fn write(&mut self, rows: &[Row], _items: &Items) -> Result<()> {
        let mut text = Vec::new();
        for row in rows {
            serde_json::to_writer(&mut text, &self.line(row)).map_err(std::io::Error::from)?;
            text.push(b'\n');
        }
        Ok(self.out.write_all(&text)?)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}

pub(super) fn read(path: &Path) -> Result<impl Iterator<Item = Result<Stored>> + use<>> {
    let file = BufReader::new(fs_err::File::open(path)?);
    let path = path.to_owned();
    Ok(file.lines().enumerate().map(move |(number, line)| {
        let line = line?;
        let damaged = || LabelError::file(&path, format!("line {} is damaged; label this part again", number + 1));
        let row = serde_json::from_str(&line).ok().and_then(to_row).ok_or_else(damaged)?;
        Ok((row, None))
    }))
}

fn to_row(line: Line<'_>) -> Option<Row> {
    let outcome = match line.error {
        Some(error) => Err(parse_error(&error)),
        None => Ok(Label {
            cluster: line.cluster?,
            confidence: line.confidence?,
            second: line.second_cluster?,
            second_confidence: line.second_confidence?,
            margin: line.margin?,
            outlier: line.outlier.flatten(),
            probabilities: line.probabilities.flatten().unwrap_or_default().into_owned(),
            embedding: line.embedding.flatten().unwrap_or_default().into_owned(),
            size: None,
            print: None,
        }),
    };
    let truth = line.truth.flatten().map(Cow::into_owned);
    Some(Row { index: line.index, path: line.path.into_owned(), truth, outcome })
}
