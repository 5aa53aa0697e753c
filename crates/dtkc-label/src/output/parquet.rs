//! Apache Parquet, for pandas, Polars, DuckDB and Spark.
//!
//! Written column by column with the format's own crate. Going through Arrow's would need seven crates more, and
//! a tenth of the time that the whole project takes to build.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::column::writer::ColumnWriterImpl;
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::{ParquetError, Result as Written};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use dtkc_item::Items;

use super::RowWriter;
use super::kept::{self, Kept};
use super::parquet_schema::{Column, Values, columns, schema};
use crate::error::{LabelError, Result};
use crate::keep::KeptColumns;
use crate::layout::Layout;
use crate::row::Row;

/// Rows whose values are gathered at a time.
const PORTION: usize = 1024;
/// The rows of a group wait in memory until it is complete: at most so many, and about so many bytes.
const GROUP_ROWS: usize = 1 << 16;
const GROUP_BYTES: usize = 16 << 20;

pub(super) struct ParquetWriter {
    /// The name that the file will have.
    target: PathBuf,
    layout: Layout,
    columns: Vec<Column>,
    group_rows: usize,
    writer: SerializedFileWriter<File>,
    waiting: Vec<Row>,
    kept: Option<Kept>,
}

impl ParquetWriter {
    /// Writes to `file`; errors are about `target`.
    pub(super) fn new(file: File, target: &Path, layout: &Layout, kept: Option<KeptColumns>) -> Result<Self> {
        let columns = columns(layout, kept.as_ref().map_or(&[], |kept| &kept.fields));
        let row_bytes = 64 + 4 * (layout.probability_columns() + layout.embedding);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("dtkc-label {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(kept.as_ref().map(kept::about))
            .build();
        let writer = schema(&columns)
            .and_then(|schema| kept.as_ref().map_or(Ok(schema.clone()), |kept| kept::before(&kept.fields, &schema)))
            .and_then(|schema| SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)))
            .map_err(|e| LabelError::wrap(target, e))?;
        let kept = kept.map(|kept| Kept::new(kept, &writer));
        let group_rows = (GROUP_BYTES / row_bytes).clamp(PORTION, GROUP_ROWS);
        Ok(Self {
            target: target.to_owned(),
            layout: layout.clone(),
            columns,
            group_rows,
            writer,
            waiting: Vec::new(),
            kept,
        })
    }

    fn write_group(&mut self, count: usize) -> Result<()> {
        let rows: Vec<Row> = self.waiting.drain(..count).collect();
        let written = write_group(&mut self.writer, self.kept.as_mut(), &self.columns, &rows, &self.layout);
        written.map_err(|e| LabelError::wrap(&self.target, e))
    }
}

impl RowWriter for ParquetWriter {
    fn write(&mut self, rows: &[Row], _items: &Items) -> Result<()> {
        for row in rows {
            self.waiting.push(row.clone());
            let full = self.kept.as_mut().map(|kept| kept.add(row.index)).transpose()?.unwrap_or(false);
            if full || self.waiting.len() >= self.group_rows {
                self.write_group(self.waiting.len())?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.waiting.is_empty() {
            self.write_group(self.waiting.len())?;
        }
        self.writer.close().map(|_| ()).map_err(|e| LabelError::wrap(&self.target, e))
    }
}

fn write_group(
    writer: &mut SerializedFileWriter<File>,
    kept: Option<&mut Kept>,
    columns: &[Column],
    rows: &[Row],
    layout: &Layout,
) -> Written<()> {
    let mut group = writer.next_row_group()?;
    if let Some(kept) = kept {
        kept.write(&mut group)?;
    }
    for column in columns {
        let Some(mut out) = group.next_column()? else {
            return Err(ParquetError::General(format!("the table has no column for '{}'", column.name)));
        };
        for rows in rows.chunks(PORTION) {
            write_portion(&mut out, column, rows, layout)?;
        }
        out.close()?;
    }
    group.close().map(|_| ())
}

fn write_portion(out: &mut SerializedColumnWriter<'_>, column: &Column, rows: &[Row], layout: &Layout) -> Written<()> {
    let labels = || rows.iter().map(|row| row.outcome.as_ref().ok());
    match &column.values {
        Values::Index => {
            let values: Vec<i64> = rows.iter().map(|row| row.index as i64).collect();
            out.typed::<Int64Type>().write_batch(&values, None, None).map(|_| ())
        }
        Values::Path => {
            let values: Vec<ByteArray> = rows.iter().map(|row| row.path.as_str().into()).collect();
            out.typed::<ByteArrayType>().write_batch(&values, None, None).map(|_| ())
        }
        Values::Id(get) => write_optional(out.typed::<Int32Type>(), labels().map(|l| Some(get(l?) as i32))),
        Values::Number(get) => write_optional(out.typed::<FloatType>(), labels().map(|l| get(l?))),
        Values::Text(get) => {
            let texts = rows.iter().map(|row| Some(ByteArray::from(get(row, layout)?.into_owned().into_bytes())));
            write_optional(out.typed::<ByteArrayType>(), texts)
        }
        Values::Vector(_, get) => write_vectors(out.typed::<FloatType>(), labels().map(|l| Some(get(l?)))),
    }
}

/// Values that may be missing: a level of 1 for each that is there, 0 for each that is not.
fn write_optional<T: DataType>(
    out: &mut ColumnWriterImpl<'_, T>,
    values: impl Iterator<Item = Option<T::T>> + Clone,
) -> Written<()> {
    let there: Vec<i16> = values.clone().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.flatten().collect();
    out.write_batch(&values, Some(&there), None).map(|_| ())
}

/// Lists that may be missing: a level of 1 for each element there is, and a repetition of 1 for all but the first.
fn write_vectors<'a>(
    out: &mut ColumnWriterImpl<'_, FloatType>,
    vectors: impl Iterator<Item = Option<&'a [f32]>>,
) -> Written<()> {
    let (mut values, mut there, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for vector in vectors {
        let Some(vector) = vector.filter(|vector| !vector.is_empty()) else {
            there.push(0);
            repeated.push(0);
            continue;
        };
        values.extend_from_slice(vector);
        there.extend(vector.iter().map(|_| 2i16));
        repeated.extend((0..vector.len()).map(|i| i16::from(i > 0)));
    }
    out.write_batch(&values, Some(&there), Some(&repeated)).map(|_| ())
}
