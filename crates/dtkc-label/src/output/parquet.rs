//! Apache Parquet, for pandas, Polars, DuckDB and Spark.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ::parquet::basic::Compression;
use ::parquet::file::properties::WriterProperties;
use arrow_schema::Schema;

use super::{RowWriter, Stored, arrow};
use crate::error::{LabelError, Result};
use crate::layout::Layout;
use crate::row::Row;

/// Rows per batch handed to the encoder. Fixed, so that the file does not depend on how rows came in.
const BATCH: usize = 4096;
/// A row group is kept in memory until it is complete.
const GROUP_BYTES: usize = 16 << 20;

pub(super) struct ParquetWriter {
    path: PathBuf,
    layout: Layout,
    schema: Arc<Schema>,
    writer: ArrowWriter<std::fs::File>,
    waiting: Vec<Row>,
}

impl ParquetWriter {
    pub(super) fn new(path: &Path, layout: &Layout) -> Result<Self> {
        let file = fs_err::File::create(path)?.into_parts().0;
        let schema = Arc::new(arrow::schema(layout));
        let row_bytes = 64 + 4 * (layout.probability_columns() + layout.embedding);
        let group_rows = (GROUP_BYTES / row_bytes / BATCH).max(1) * BATCH;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(group_rows))
            .set_created_by(format!("dtkc-label {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties));
        let writer = writer.map_err(|e| LabelError::wrap(path, e))?;
        Ok(Self { path: path.to_owned(), layout: layout.clone(), schema, writer, waiting: Vec::new() })
    }

    fn encode(&mut self, count: usize) -> Result<()> {
        let rows: Vec<Row> = self.waiting.drain(..count).collect();
        let batch = arrow::to_batch(&rows, &self.layout, &self.schema)?;
        self.writer.write(&batch).map_err(|e| LabelError::wrap(&self.path, e))
    }
}

impl RowWriter for ParquetWriter {
    fn write(&mut self, rows: &[Row], _pixels: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(rows);
        while self.waiting.len() >= BATCH {
            self.encode(BATCH)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.waiting.is_empty() {
            self.encode(self.waiting.len())?;
        }
        self.writer.close().map(|_| ()).map_err(|e| LabelError::wrap(&self.path, e))
    }
}

pub(super) fn read(path: &Path, layout: &Layout) -> Result<impl Iterator<Item = Result<Stored>> + use<>> {
    let file = fs_err::File::open(path)?.into_parts().0;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|b| b.with_batch_size(BATCH).build());
    let reader = reader.map_err(|e| LabelError::wrap(path, e))?;
    let (path, layout) = (path.to_owned(), layout.clone());
    Ok(reader.flat_map(move |batch| {
        let rows = match batch {
            Ok(batch) => arrow::to_rows(&batch, &layout)
                .ok_or_else(|| LabelError::file(&path, "its columns are not those of the run that wrote it")),
            Err(error) => Err(LabelError::wrap(&path, error)),
        };
        match rows {
            Ok(rows) => rows.into_iter().map(|row| Ok((row, vec![]))).collect(),
            Err(error) => vec![Err(error)],
        }
    }))
}
