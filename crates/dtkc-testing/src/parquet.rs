//! Parquet files with an image in every row, as Hugging Face's `datasets` writes them.

use std::sync::Arc;

pub use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// One row; anything may be missing.
#[derive(Debug, Clone, Default)]
pub struct ImageRow {
    /// The encoded image.
    pub bytes: Option<Vec<u8>>,
    /// The path beside it.
    pub path: Option<String>,
    /// The label.
    pub label: Option<i64>,
}

/// One such file.
#[derive(Debug, Clone)]
pub struct ImageTable {
    /// The rows.
    pub rows: Vec<ImageRow>,
    /// What the labels are called, where that is written.
    pub names: Option<Vec<&'static str>>,
    /// Rows of a row group.
    pub group: usize,
    /// How pages are packed.
    pub compression: Compression,
    /// The column of labels; none where it is empty.
    pub label: &'static str,
}

impl ImageTable {
    /// Images with these names, without labels.
    pub fn new<B: AsRef<[u8]>>(files: &[(&str, B)]) -> Self {
        let row = |(name, bytes): &(&str, B)| ImageRow {
            bytes: Some(bytes.as_ref().to_vec()),
            path: Some((*name).to_owned()),
            label: None,
        };
        Self {
            rows: files.iter().map(row).collect(),
            names: None,
            group: 3,
            compression: Compression::SNAPPY,
            label: "",
        }
    }

    /// The same with labels.
    #[must_use]
    pub fn labelled(mut self, labels: &[i64], names: Option<&[&'static str]>) -> Self {
        self.rows.iter_mut().zip(labels).for_each(|(row, label)| row.label = Some(*label));
        self.label = "label";
        self.names = names.map(<[&str]>::to_vec);
        self
    }

    /// The file.
    pub fn file(&self) -> Vec<u8> {
        let label = if self.label.is_empty() { String::new() } else { format!("optional int64 {};", self.label) };
        let schema = format!(
            "message schema {{ optional group image {{ optional binary bytes; optional binary path (UTF8); }} {label} }}"
        );
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let about = self.names.as_ref().map(|names| {
            let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            let feature = format!("{{\"names\": [{}], \"_type\": \"ClassLabel\"}}", names.join(", "));
            let text = format!("{{\"info\": {{\"features\": {{\"{}\": {feature}}}}}}}", self.label);
            vec![KeyValue::new("huggingface".to_owned(), text)]
        });
        let properties = WriterProperties::builder()
            .set_compression(self.compression)
            .set_key_value_metadata(about)
            .set_data_page_row_count_limit(2)
            .set_write_batch_size(1)
            .build();
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
        for rows in self.rows.chunks(self.group.max(1)) {
            let mut group = writer.next_row_group().unwrap();
            let text = |text: &Option<String>| text.as_ref().map(|text| ByteArray::from(text.as_str()));
            let bytes = |bytes: &Option<Vec<u8>>| bytes.clone().map(ByteArray::from);
            column::<ByteArrayType>(&mut group, rows.iter().map(|row| bytes(&row.bytes)), 2);
            column::<ByteArrayType>(&mut group, rows.iter().map(|row| text(&row.path)), 2);
            if !self.label.is_empty() {
                column::<Int64Type>(&mut group, rows.iter().map(|row| row.label), 1);
            }
            group.close().unwrap();
        }
        writer.into_inner().unwrap()
    }
}

/// Writes a column; what is missing lies one level below the deepest.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    cells: impl Iterator<Item = Option<T::T>>,
    deepest: i16,
) {
    let cells: Vec<Option<T::T>> = cells.collect();
    let levels: Vec<i16> = cells.iter().map(|cell| if cell.is_some() { deepest } else { deepest - 1 }).collect();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    let mut column = group.next_column().unwrap().unwrap();
    let typed: &mut ColumnWriterImpl<'_, T> = column.typed();
    typed.write_batch(&values, Some(&levels), None).unwrap();
    column.close().unwrap();
}
