//! Rows back from a Parquet table that this program wrote.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use ::parquet::column::reader::get_typed_column_reader;
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::{ParquetError, Result as Read};
use ::parquet::file::reader::{FileReader, RowGroupReader};
use ::parquet::file::serialized_reader::SerializedFileReader;

use super::Stored;
use super::parquet_schema::{Column, Values, columns, schema};
use crate::error::{LabelError, Result};
use crate::layout::Layout;
use crate::row::{Label, Row, parse_error};

pub(super) fn read(path: &Path, layout: &Layout) -> Result<impl Iterator<Item = Result<Stored>> + use<>> {
    let file = fs_err::File::open(path)?.into_parts().0;
    let reader = SerializedFileReader::new(file).map_err(|e| LabelError::wrap(path, e))?;
    let (columns, kept) = own_columns(path, &reader, layout)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let first = (0..schema.num_columns()).take_while(|leaf| schema.get_column_root_idx(*leaf) < kept).count();
    let path = path.to_owned();
    Ok((0..reader.num_row_groups()).flat_map(move |group| {
        let rows = reader.get_row_group(group).and_then(|group| read_group(group.as_ref(), &columns, first));
        match rows {
            Ok(rows) => rows.into_iter().map(|row| Ok((row, None))).collect(),
            Err(error) => vec![Err(LabelError::wrap(&path, error))],
        }
    }))
}

/// How many columns of a file lie before those of the labels.
pub fn kept_fields(path: &Path, layout: &Layout) -> Result<usize> {
    let file = fs_err::File::open(path)?.into_parts().0;
    let reader = SerializedFileReader::new(file).map_err(|e| LabelError::wrap(path, e))?;
    own_columns(path, &reader, layout).map(|(_, kept)| kept)
}

/// The columns of the labels, which are the last, and how many lie before them.
fn own_columns(path: &Path, reader: &SerializedFileReader<File>, layout: &Layout) -> Result<(Vec<Column>, usize)> {
    let fields = reader.metadata().file_metadata().schema().get_fields();
    let kept = fields.len().saturating_sub(columns(layout, &[]).len());
    let columns = columns(layout, &fields[..kept]);
    let expected = schema(&columns).map_err(|e| LabelError::wrap(path, e))?;
    match fields[kept..] == *expected.get_fields() {
        true => Ok((columns, kept)),
        false => Err(LabelError::file(path, "its columns are not those of the run that wrote it")),
    }
}

/// The columns of a group by name, each with one entry per row.
#[derive(Default)]
struct Group<'a> {
    index: Vec<i64>,
    ids: HashMap<&'a str, Vec<Option<i32>>>,
    numbers: HashMap<&'a str, Vec<Option<f32>>>,
    texts: HashMap<&'a str, Vec<Option<ByteArray>>>,
    vectors: HashMap<&'a str, Vec<Vec<f32>>>,
}

fn read_group(group: &dyn RowGroupReader, columns: &[Column], first: usize) -> Read<Vec<Row>> {
    let rows = usize::try_from(group.metadata().num_rows()).map_err(|_| damaged("num_rows"))?;
    let mut all = Group::default();
    for (place, Column { name, values }) in (first..).zip(columns) {
        match values {
            Values::Index => all.index = present(optional::<Int64Type>(group, place, rows)?, name)?,
            Values::Path => {
                all.texts.insert("path", optional::<ByteArrayType>(group, place, rows)?);
            }
            Values::Text(_) => {
                all.texts.insert(name, optional::<ByteArrayType>(group, place, rows)?);
            }
            Values::Id(_) => {
                all.ids.insert(name, optional::<Int32Type>(group, place, rows)?);
            }
            Values::Number(_) => {
                all.numbers.insert(name, optional::<FloatType>(group, place, rows)?);
            }
            Values::Vector(size, _) => {
                all.vectors.insert(name, vectors(group, place, rows, *size)?);
            }
        }
    }
    (0..rows).map(|row| all.row(row)).collect()
}

impl Group<'_> {
    fn row(&mut self, row: usize) -> Read<Row> {
        let outcome = match self.text("error", row)? {
            Some(error) => Err(parse_error(&error)),
            None => Ok(Label {
                cluster: self.id("cluster", row)?,
                confidence: self.number("confidence", row)?,
                second: self.id("second_cluster", row)?,
                second_confidence: self.number("second_confidence", row)?,
                margin: self.number("margin", row)?,
                outlier: self.numbers.get("outlier").and_then(|numbers| numbers[row]),
                probabilities: self.vector("probabilities", row),
                embedding: self.vector("embedding", row),
                size: None,
                print: None,
            }),
        };
        let path = self.text("path", row)?.ok_or_else(|| damaged("path"))?;
        Ok(Row { index: self.index[row] as u64, path, truth: self.text("truth", row)?, outcome })
    }

    fn id(&self, name: &str, row: usize) -> Read<u32> {
        let value = self.ids.get(name).and_then(|ids| ids[row]).ok_or_else(|| damaged(name))?;
        u32::try_from(value).map_err(|_| damaged(name))
    }

    fn number(&self, name: &str, row: usize) -> Read<f32> {
        self.numbers.get(name).and_then(|numbers| numbers[row]).ok_or_else(|| damaged(name))
    }

    /// `None` where there is no such column, too.
    fn text(&self, name: &str, row: usize) -> Read<Option<String>> {
        let Some(bytes) = self.texts.get(name).and_then(|texts| texts[row].as_ref()) else { return Ok(None) };
        Ok(Some(bytes.as_utf8()?.to_owned()))
    }

    /// Empty where there is no such column.
    fn vector(&mut self, name: &str, row: usize) -> Vec<f32> {
        self.vectors.get_mut(name).map(|vectors| std::mem::take(&mut vectors[row])).unwrap_or_default()
    }
}

fn damaged(column: &str) -> ParquetError {
    ParquetError::General(format!("its column '{column}' is damaged; label the images again"))
}

fn present<T>(values: Vec<Option<T>>, name: &str) -> Read<Vec<T>> {
    values.into_iter().collect::<Option<_>>().ok_or_else(|| damaged(name))
}

/// The values of a column that holds one per row, or none.
fn optional<T: DataType>(group: &dyn RowGroupReader, place: usize, rows: usize) -> Read<Vec<Option<T::T>>> {
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(place)?);
    let (mut values, mut there) = (Vec::new(), Vec::new());
    let (read, ..) = reader.read_records(rows, Some(&mut there), None, &mut values)?;
    if read != rows {
        return Err(damaged(group.metadata().column(place).column_descr().name()));
    }
    // A column of required values has no levels.
    let is_there = |row: usize| there.get(row).is_none_or(|level| *level > 0);
    let mut values = values.into_iter();
    Ok((0..rows).map(|row| if is_there(row) { values.next() } else { None }).collect())
}

/// The lists of a column of lists of `size`; empty where a row has none.
fn vectors(group: &dyn RowGroupReader, place: usize, rows: usize, size: usize) -> Read<Vec<Vec<f32>>> {
    let name = || group.metadata().column(place).column_path().string();
    let mut reader = get_typed_column_reader::<FloatType>(group.get_column_reader(place)?);
    let (mut values, mut there, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    let (read, ..) = reader.read_records(rows, Some(&mut there), Some(&mut repeated), &mut values)?;
    let mut starts = there.iter().zip(&repeated).filter(|(_, again)| **again == 0).map(|(level, _)| *level > 0);
    let mut lists = values.chunks_exact(size);
    let mut list = |is_there: bool| match is_there {
        true => lists.next().map(<[f32]>::to_vec),
        false => Some(Vec::new()),
    };
    let found: Option<Vec<Vec<f32>>> = (0..rows).map(|_| list(starts.next()?)).collect();
    found.filter(|_| read == rows && lists.next().is_none()).ok_or_else(|| damaged(&name()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::output::RowWriter;
    use crate::output::parquet::ParquetWriter;
    use crate::row::tests::row;

    fn layout() -> Layout {
        let names = (0..9).map(|i| format!("name {i}")).collect();
        Layout { names, min_confidence: None, probabilities: true, embedding: 3, truth: true, outlier: Some(0.99) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn what_is_written_reads_back(rows in prop::collection::vec(row(), 0..40), times in 1..60usize) {
            let (layout, folder) = (layout(), tempfile::tempdir().unwrap());
            let path = folder.path().join("rows.parquet");
            let fit = |mut row: Row| {
                if let Ok(label) = &mut row.outcome {
                    label.probabilities.resize(9, 0.25);
                    label.embedding.resize(3, -1.0);
                }
                row
            };
            let rows: Vec<Row> = rows.into_iter().map(fit).collect();
            let mut writer = Box::new(ParquetWriter::new(File::create(&path).unwrap(), &path, &layout, None).unwrap());
            let none = dtkc_item::Items::empty(dtkc_item::ItemShape::Sequence { dim: 1 });
            (0..times).for_each(|_| writer.write(&rows, &none).unwrap());
            writer.finish().unwrap();
            let back: Vec<Row> = read(&path, &layout).unwrap().map(|stored| stored.unwrap().0).collect();
            prop_assert_eq!(back.len(), rows.len() * times);
            prop_assert!(back.chunks(rows.len().max(1)).all(|part| part == rows));
        }
    }

    #[test]
    fn another_layout_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        Box::new(ParquetWriter::new(File::create(&path).unwrap(), &path, &layout(), None).unwrap()).finish().unwrap();
        let other = Layout { truth: false, ..layout() };
        let error = read(&path, &other).err().unwrap().to_string();
        assert!(error.ends_with("rows.parquet: its columns are not those of the run that wrote it"), "{error}");
    }
}
