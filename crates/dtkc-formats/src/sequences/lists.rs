//! Parquet files with a row for every sequence: columns that are lists of numbers, one for each dimension, or one column that
//! is a list of steps, each a list of values.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dtkc_item::ItemError;
use dtkc_source::parquet::file::{Reader, each_row, guarded, open};
use dtkc_source::parquet::pages::{Cells, is_number};
use parquet::file::reader::FileReader;
use parquet::schema::types::ColumnDescriptor;

use super::long::{IDS, LABELS};
use super::names::Names;
use super::table::{Columns, listed};
use super::{MAX_DIM, MAX_VALUES, steps_of};
use crate::ReadError;
use crate::record::{Content, ContentForm, Description, Importer, Record, Sink};

/// Which column is what: places among the leaves of the schema.
struct Plan {
    values: Vec<usize>,
    /// Whether the one column of values is a list of lists.
    nested: bool,
    id: Option<usize>,
    label: Option<usize>,
}

/// One such file.
pub struct ListImporter {
    path: PathBuf,
    plan: Plan,
    names: Names,
    dim: usize,
    description: Description,
}

impl ListImporter {
    /// Reads the schema, the classes, and the first sequence for the number of dimensions.
    pub fn open(path: &Path, columns: &Columns) -> Result<Self, ReadError> {
        guarded(path, || {
            let reader = open(path)?;
            let plan = Plan::of(path, &reader, columns)?;
            let rows = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
            let mut names = Names::default();
            if let Some(label) = plan.label {
                each_row::<ReadError>(path, &reader, &[label], &mut |cells| {
                    names.add(&cells[0].text).map_err(|e| ReadError::file(path, e))?;
                    Ok(ControlFlow::Continue(()))
                })?;
            }
            let dim = plan.dim(path, &reader)?;
            let description = Description {
                count: Some(rows),
                classes: names.settle(plan.label.is_some()),
                paths: plan.id.is_some(),
                origin: path.file_name().map(|name| name.to_string_lossy().into_owned()),
                ..Description::new("Parquet", ContentForm::Sequences { dim })
            };
            Ok(Self { path: path.to_owned(), plan, names, dim, description })
        })
    }
}

impl Importer for ListImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let Self { path, plan, names, dim, .. } = self;
        guarded(path, || {
            let reader = open(path)?;
            let places: Vec<usize> = plan.values.iter().copied().chain(plan.id).chain(plan.label).collect();
            each_row(path, &reader, &places, &mut |cells| {
                let (values, others) = cells.split_at(plan.values.len());
                let mut others = others.iter();
                let id = plan.id.and_then(|_| others.next()).map(|cells| cells.text.clone());
                let label = plan.label.and_then(|_| others.next()).map(|cells| names.label(&cells.text));
                let content = plan.sequence(values, *dim).map_or_else(Content::Unreadable, Content::Sequence);
                Ok(sink(Record { content, label, path: id }))
            })
        })
    }
}

impl Plan {
    fn of(path: &Path, reader: &Reader, columns: &Columns) -> Result<Self, ReadError> {
        let leaves = reader.metadata().file_metadata().schema_descr().columns();
        let name = |leaf: &ColumnDescriptor| leaf.path().parts().first().cloned().unwrap_or_default();
        let all: Vec<String> = leaves.iter().map(|leaf| name(leaf)).collect();
        let find = |wanted: &str, flag: &str| {
            let place = all.iter().position(|name| name == wanted);
            place.ok_or_else(|| {
                ReadError::file(path, format!("there is no column '{wanted}' ({flag}); there are {}", listed(&all)))
            })
        };
        let single = |place: &usize| leaves[*place].max_rep_level() == 0;
        let guess = |words: &[&str]| {
            let is =
                |word: &&str| all.iter().position(|name| name.replace(['_', ' ', '-'], "").eq_ignore_ascii_case(word));
            words.iter().find_map(is).filter(single)
        };
        let chosen = |given: &Option<String>, flag: &str, words: &[&str]| match given {
            Some(given) => find(given, flag).map(Some),
            None => Ok(guess(words)),
        };
        let id = chosen(&columns.id, "--id-column", &IDS)?.filter(single);
        let label = chosen(&columns.label, "--label-column", &LABELS)?.filter(single);
        let is_list = |place: &usize| leaves[*place].max_rep_level() > 0 && is_number(&leaves[*place]);
        let values: Vec<usize> = match columns.values.is_empty() {
            false => columns.values.iter().map(|name| find(name, "--value-columns")).collect::<Result<_, _>>()?,
            true => (0..leaves.len()).filter(is_list).collect(),
        };
        if values.is_empty() || !values.iter().all(is_list) {
            let reason = format!(
                "a row is a sequence here and its values are lists of numbers, but there are {}; \
                 name a column of encoded images with --image-column, save other tables as CSV",
                listed(&all)
            );
            return Err(ReadError::file(path, reason));
        }
        let depths: Vec<i16> = values.iter().map(|&place| leaves[place].max_rep_level()).collect();
        match depths[..] {
            [2] => Ok(Self { values, nested: true, id, label }),
            _ if depths.iter().all(|&depth| depth == 1) && values.len() <= MAX_DIM => {
                Ok(Self { values, nested: false, id, label })
            }
            _ => {
                let names: Vec<String> = values.iter().map(|&place| all[place].clone()).collect();
                let reason =
                    format!("the columns {} do not fit each other; choose with --value-columns", listed(&names));
                Err(ReadError::file(path, reason))
            }
        }
    }

    /// Values of a step; of a list of lists those of the first step there is.
    fn dim(&self, path: &Path, reader: &Reader) -> Result<usize, ReadError> {
        if !self.nested {
            return Ok(self.values.len());
        }
        let mut dim = 0;
        each_row::<ReadError>(path, reader, &self.values, &mut |cells| {
            dim = cells[0].ends.first().copied().unwrap_or(0);
            Ok(if dim > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        match dim {
            1..=MAX_DIM => Ok(dim),
            _ => Err(ReadError::file(path, format!("there are {dim} values in a step; 1 to {MAX_DIM} are read"))),
        }
    }

    fn sequence(&self, cells: &[Cells], dim: usize) -> Result<Vec<f32>, ItemError> {
        if self.nested {
            let Cells { values, ends, .. } = &cells[0];
            if let Some(odd) = ends.iter().zip(1..).position(|(&end, step)| end != step * dim) {
                let found = ends[odd] - odd * dim;
                return Err(ItemError::new(
                    "other_dimension",
                    format!("step {} has {found} values instead of {dim}", odd + 1),
                ));
            }
            return Ok(values.clone());
        }
        let columns: Vec<&[f32]> = cells.iter().map(|cells| cells.values.as_slice()).collect();
        if columns.iter().map(|column| column.len()).sum::<usize>() > MAX_VALUES {
            return Err(ItemError::new("too_large", format!("it has more than {MAX_VALUES} values")));
        }
        steps_of(&columns).map_err(|e| ItemError::new("other_length", format!("it {e}")))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use parquet::column::writer::ColumnWriterImpl;
    use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType};
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::record::records;

    type Group<'a> = SerializedRowGroupWriter<'a, File>;

    fn column<T: DataType>(group: &mut Group<'_>, values: &[T::T], def: &'static [i16], rep: &'static [i16]) {
        let mut column = group.next_column().unwrap().unwrap();
        let typed: &mut ColumnWriterImpl<'_, T> = column.typed();
        let levels = |levels: &'static [i16]| Some(levels).filter(|levels| !levels.is_empty());
        typed.write_batch(values, levels(def), levels(rep)).unwrap();
        column.close().unwrap();
    }

    fn read(schema: &str, columns: &Columns, fill: impl Fn(&mut Group<'_>)) -> Result<Vec<Record>, ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let file = File::create(&path).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
        for _ in 0..2 {
            let mut group = writer.next_row_group().unwrap();
            fill(&mut group);
            group.close().unwrap();
        }
        writer.close().unwrap();
        let mut source = ListImporter::open(&path, columns)?;
        records(&mut source)
    }

    fn sequence(values: &[f32], label: Option<i64>) -> Record {
        Record { content: Content::Sequence(values.to_vec()), label, path: None }
    }

    const LISTS: &str = "message m { optional group x (LIST) { repeated group list { optional float element; } }
        required group y (LIST) { repeated group list { required double element; } } required binary label (UTF8); }";

    fn lists(group: &mut Group<'_>) {
        // [1, 3], [5], []
        column::<FloatType>(group, &[1.0, 3.0, 5.0], &[3, 3, 3, 1], &[0, 1, 0, 0]);
        column::<DoubleType>(group, &[2.0, 4.0, 6.0], &[1, 1, 1, 0], &[0, 1, 0, 0]);
        let words = ["up", "down", "up"].map(ByteArray::from);
        column::<ByteArrayType>(group, &words, &[], &[]);
    }

    #[test]
    fn lists_are_dimensions_and_rows_are_sequences() {
        let found = read(LISTS, &Columns::default(), lists).unwrap();
        let expected =
            [sequence(&[1.0, 2.0, 3.0, 4.0], Some(1)), sequence(&[5.0, 6.0], Some(0)), sequence(&[], Some(1))];
        assert_eq!((&found[..3], &found[3..]), (&expected[..], &expected[..]));
        let only = Columns { values: vec!["y".into()], ..Columns::default() };
        assert_eq!(read(LISTS, &only, lists).unwrap()[0], sequence(&[2.0, 4.0], Some(1)));
        let wrong = Columns { values: vec!["label".into()], ..Columns::default() };
        let error = read(LISTS, &wrong, lists).unwrap_err().to_string();
        assert!(error.contains("lists of numbers, but there are x, y, label"), "{error}");
    }

    #[test]
    fn lists_of_lists_are_steps() {
        let schema = "message m { optional group s (LIST) { repeated group list { optional group element (LIST) {
            repeated group list { optional float element; } } } } }";
        // [[1, 2], [3, null]], [[4, 5]], then [[6]] of another dimension
        let found = read(schema, &Columns::default(), |group| {
            let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
            column::<FloatType>(group, &values, &[5, 5, 5, 4, 5, 5, 5], &[0, 2, 1, 2, 0, 2, 0]);
        });
        let found = found.unwrap();
        let Content::Sequence(first) = &found[0].content else { panic!("{:?}", found[0]) };
        assert!(first[..3] == [1.0, 2.0, 3.0] && first[3].is_nan() && first.len() == 4);
        assert_eq!(found[1], sequence(&[4.0, 5.0], None));
        let Content::Unreadable(error) = &found[2].content else { panic!("{:?}", found[2]) };
        assert_eq!(error.message, "step 1 has 1 values instead of 2");
    }

    #[derive(serde::Deserialize)]
    struct Golden {
        steps: Vec<Vec<Vec<Option<f32>>>>,
        labels: Vec<Option<String>>,
    }

    /// scripts/golden/parquet_golden.py wrote both files with pyarrow.
    #[test]
    fn what_pyarrow_wrote_is_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let golden: Golden = serde_json::from_slice(&std::fs::read(folder.join("lists.json")).unwrap()).unwrap();
        let bits = |values: &[f32]| values.iter().map(|v| if v.is_nan() { 0 } else { v.to_bits() }).collect::<Vec<_>>();
        for name in ["lists.parquet", "nested.parquet"] {
            let mut source = ListImporter::open(&folder.join(name), &Columns::default()).unwrap();
            let found = records(&mut source).unwrap();
            assert_eq!((found.len(), source.dim), (golden.steps.len(), 2), "{name}");
            for (record, expected) in found.iter().zip(&golden.steps) {
                let Content::Sequence(values) = &record.content else { panic!("{record:?}") };
                let expected: Vec<f32> = expected.iter().flatten().map(|v| v.unwrap_or(f32::NAN)).collect();
                assert_eq!(bits(values), bits(&expected), "{name}");
            }
            if name == "lists.parquet" {
                let number = |label: &Option<String>| label.as_deref().map_or(-1, |word| i64::from(word == "up"));
                let labels: Vec<i64> = found.iter().map(|record| record.label.unwrap()).collect();
                assert_eq!(labels, golden.labels.iter().map(number).collect::<Vec<_>>());
                assert_eq!(found[5].path.as_deref(), Some("s5"));
            }
        }
    }

    #[test]
    fn damage_is_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        std::fs::write(&path, b"PAR1 and nothing more").unwrap();
        let error = ListImporter::open(&path, &Columns::default()).err().unwrap().to_string();
        assert!(error.contains("cut off") && error.contains("download it again"), "{error}");
    }
}
