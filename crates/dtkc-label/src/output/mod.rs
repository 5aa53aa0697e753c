//! Rows to files and back: CSV, JSON lines, Parquet, HDF5.
//!
//! What is written depends on the rows and the [`Layout`] alone, never on how the rows came in portions, so that
//! parts can be read, joined and written again to the same bytes.

mod csv;
mod hdf5;
mod jsonl;
mod kept;
mod parquet;
mod parquet_reader;
mod parquet_schema;

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::str::FromStr;

use dtkc_files::Pending;
use dtkc_item::{ItemShape, Items, Resize};
pub use parquet_reader::kept_fields;
pub use parquet_schema::{FieldKind, LabelField, label_fields};

use crate::error::{LabelError, Result};
use crate::keep::KeptColumns;
use crate::layout::Layout;
use crate::row::Row;

/// The form of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
    /// A dataset (schema 1) with the clusters as labels, the images, and the rest beside them.
    Hdf5,
}

impl Format {
    /// The form that a file's ending asks for.
    pub fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match ending.as_str() {
            "csv" => Ok(Self::Csv),
            "jsonl" | "ndjson" => Ok(Self::Jsonl),
            "parquet" => Ok(Self::Parquet),
            "h5" | "hdf5" => Ok(Self::Hdf5),
            _ => Err(LabelError::file(
                path,
                "an output ends in .csv, .jsonl, .parquet or .h5, or is - for standard output",
            )),
        }
    }

    /// Whether the output holds the items, too.
    pub fn wants_items(self) -> bool {
        self == Self::Hdf5
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
            Self::Hdf5 => "h5",
        })
    }
}

impl FromStr for Format {
    type Err = String;

    /// The forms that can be streamed.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "csv" => Ok(Self::Csv),
            "jsonl" => Ok(Self::Jsonl),
            _ => Err(format!("'{text}' cannot be streamed to standard output; use csv or jsonl")),
        }
    }
}

/// What an output that holds items must know of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// What they look like.
    pub shape: ItemShape,
    /// The rule by which images came to their size; `None` where nobody knows.
    pub resize: Option<Resize>,
}

/// Takes rows in order.
pub trait RowWriter {
    /// Writes rows; `items` holds those of the labelled ones, where the form wants them.
    fn write(&mut self, rows: &[Row], items: &Items) -> Result<()>;

    /// Hands on what was written so far, where the form can be streamed.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Completes the output.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A writer to a file on its way. Only Parquet has a place for kept columns.
pub fn create(
    pending: &Pending,
    format: Format,
    layout: &Layout,
    held: Held,
    kept: Option<KeptColumns>,
) -> Result<Box<dyn RowWriter>> {
    // Not one that names itself in its errors: nobody but `Pending` knows the partial file.
    let file = || -> Result<_> { Ok(std::io::BufWriter::with_capacity(1 << 18, pending.open()?)) };
    Ok(match format {
        Format::Csv => Box::new(csv::CsvWriter::new(file()?, layout)?),
        Format::Jsonl => Box::new(jsonl::JsonlWriter::new(file()?, layout)),
        Format::Parquet => Box::new(parquet::ParquetWriter::new(pending.open()?, pending.target(), layout, kept)?),
        Format::Hdf5 => Box::new(hdf5::Hdf5Writer::new(pending, layout, held)?),
    })
}

/// A writer to a stream, for the forms that can be streamed.
pub fn stream(out: impl Write + 'static, format: Format, layout: &Layout) -> Result<Box<dyn RowWriter>> {
    match format {
        Format::Csv => Ok(Box::new(csv::CsvWriter::new(out, layout)?)),
        Format::Jsonl => Ok(Box::new(jsonl::JsonlWriter::new(out, layout))),
        other => Err(LabelError::Settings(format!("{other} cannot be streamed to standard output; use csv or jsonl"))),
    }
}

/// The rule by which the images in a file came to their size; `None` where it holds none, or does not say.
pub fn resize_of(path: &Path, format: Format) -> Option<Resize> {
    if format.wants_items() { dtkc_dataset::Dataset::open(path).ok()?.resize() } else { None }
}

/// A row that was read back, and its item where the form holds items.
pub type Stored = (Row, Option<Items>);

/// The rows of a file that this module wrote, in order.
pub fn read(path: &Path, format: Format, layout: &Layout) -> Result<Box<dyn Iterator<Item = Result<Stored>>>> {
    Ok(match format {
        Format::Csv => Box::new(csv::read(path, layout)?),
        Format::Jsonl => Box::new(jsonl::read(path)?),
        Format::Parquet => Box::new(parquet_reader::read(path, layout)?),
        Format::Hdf5 => Box::new(hdf5::read(path, layout)?),
    })
}
