//! Columns of a Parquet file as they are, values with the levels that say where they belong: for whoever writes them on.
//!
//! Every kind of column is a few leaves of one of eight physical types, and a row of a leaf is some values and levels. So
//! lists, structs, times and whatever else is made of these come through without being understood.

use std::path::Path;

use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::{ParquetError, Result as Parsed};
use parquet::file::reader::{FileReader, RowGroupReader};

use super::columns::Chosen;
use super::file::{self, Reader};
use super::pages::counted;
use super::shown;
use crate::{SourceError, remote};

/// Texts in lists of one column and row group at most: each takes some memory, and one row may hold all of them.
const MAX_TEXTS: i64 = 1 << 24;
/// What the columns of one row may take.
const MAX_ROW: u64 = 256 << 20;
/// What the rows of one file may come to when they are written out: so much, or so many times the bytes of the file. A
/// short file may say one long text a million times.
const MAX_FILE: u64 = 1 << 30;
const MAX_GROWTH: u64 = 1024;

/// Some rows of a leaf.
#[derive(Debug, Clone, Default)]
pub struct Leaf {
    /// The values that are there.
    pub values: Values,
    /// How much of the way to a value is there, one for each value or gap.
    pub def: Vec<i16>,
    /// At which list a value or gap begins anew; empty where there are no lists.
    pub rep: Vec<i16>,
}

/// Values of one physical type.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Values {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    I96(Vec<Int96>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Bool(Vec::new())
    }
}

impl Values {
    /// None yet, of that type.
    pub fn of(kind: Physical) -> Self {
        match kind {
            Physical::BOOLEAN => Self::Bool(Vec::new()),
            Physical::INT32 => Self::I32(Vec::new()),
            Physical::INT64 => Self::I64(Vec::new()),
            Physical::INT96 => Self::I96(Vec::new()),
            Physical::FLOAT => Self::F32(Vec::new()),
            Physical::DOUBLE => Self::F64(Vec::new()),
            Physical::BYTE_ARRAY => Self::Bytes(Vec::new()),
            Physical::FIXED_LEN_BYTE_ARRAY => Self::Fixed(Vec::new()),
        }
    }
}

impl Leaf {
    /// No rows yet, of that type.
    pub fn of(kind: Physical) -> Self {
        Self { values: Values::of(kind), ..Self::default() }
    }

    /// A row that has nothing. Only where the column may be missing as a whole, as all are that [`Chosen`] gives.
    pub fn push_missing(&mut self, has_lists: bool) {
        self.def.push(0);
        if has_lists {
            self.rep.push(0);
        }
    }
}

/// Reads the chosen columns of one file, forward.
pub struct LeafRows {
    path: Box<Path>,
    reader: Reader,
    /// Places of the leaves, and whether each needs one level more than it has.
    leaves: Vec<(usize, bool)>,
    open: Option<Open>,
    /// What may still be read.
    left: u64,
}

/// A row group that is being read.
struct Open {
    group: usize,
    columns: Vec<OneLeaf>,
    next: usize,
}

struct OneLeaf {
    reader: ColumnReader,
    raise: bool,
    has_def: bool,
}

impl LeafRows {
    /// Opens a file of which these columns were chosen.
    pub fn open(path: &Path, chosen: &Chosen) -> Result<Self, SourceError> {
        let length = remote::File::open(path).and_then(|file| file.size());
        let length = length.map_err(|error| SourceError::file(path, error.to_string()))?;
        let reader = file::guarded(path, || file::open(path))?;
        let left = MAX_FILE.max(length.saturating_mul(MAX_GROWTH));
        Ok(Self { path: path.into(), reader, leaves: chosen.leaves.clone(), open: None, left })
    }

    /// How many row groups there are.
    pub fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// How many rows a group has.
    pub fn rows(&self, group: usize) -> u64 {
        let groups = self.reader.metadata().row_groups();
        groups.get(group).map_or(0, |group| u64::try_from(group.num_rows()).unwrap_or(0))
    }

    /// Puts a row behind what `into` holds, a leaf for each that was chosen, and says what it takes.
    pub fn read(&mut self, group: usize, row: usize, into: &mut [Leaf]) -> Result<u64, SourceError> {
        let path = self.path.clone();
        let bytes = file::guarded(&path, || self.row(group, row, into))?;
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => {
                let reason = "its columns come to much more than the file itself, as no table does; keep fewer of them";
                return Err(SourceError::file(&path, reason));
            }
        }
        Ok(bytes)
    }

    fn row(&mut self, group: usize, row: usize, into: &mut [Leaf]) -> Result<u64, SourceError> {
        let open = match self.open.take() {
            Some(open) if open.group == group && open.next <= row => self.open.insert(open),
            _ => {
                let opened = self.begin(group)?;
                self.open.insert(opened)
            }
        };
        let before = row - open.next;
        open.next = row + 1;
        let mut total = 0;
        for (column, into) in open.columns.iter_mut().zip(into) {
            total += column.take(before, into).map_err(|e| file::unreadable(&self.path, &e))?;
            if total > MAX_ROW {
                let reason = format!("a row takes more than {} MiB; keep fewer columns", MAX_ROW >> 20);
                return Err(SourceError::file(&self.path, reason));
            }
        }
        Ok(total)
    }

    fn begin(&self, group: usize) -> Result<Open, SourceError> {
        let failed = |e: ParquetError| file::unreadable(&self.path, &e);
        let rows = self.reader.get_row_group(group).map_err(failed)?;
        check_group(&self.path, rows.as_ref(), &self.leaves)?;
        let open = |&(place, raise): &(usize, bool)| -> Parsed<OneLeaf> {
            let descr = rows.metadata().column(place).column_descr_ptr();
            let has_def = descr.max_def_level() > 0;
            let reader = get_column_reader(descr, counted(rows.as_ref(), place)?);
            Ok(OneLeaf { reader, raise, has_def })
        };
        let columns = self.leaves.iter().map(open).collect::<Parsed<_>>().map_err(failed)?;
        Ok(Open { group, columns, next: 0 })
    }
}

/// Refuses a row group whose leaves would take too much memory.
fn check_group(path: &Path, group: &dyn RowGroupReader, leaves: &[(usize, bool)]) -> Result<(), SourceError> {
    let places: Vec<usize> = leaves.iter().map(|(place, _)| *place).collect();
    file::check_pages(path, group.metadata(), &places)?;
    for place in places {
        let column = group.metadata().column(place);
        let descr = column.column_descr();
        let texts = matches!(descr.physical_type(), Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY);
        if texts && descr.max_rep_level() > 0 && column.num_values() > MAX_TEXTS {
            let reason = format!(
                "the lists of column '{}' hold {} texts in one row group, more than {MAX_TEXTS}; write smaller row groups",
                shown(&descr.path().string()),
                column.num_values()
            );
            return Err(SourceError::file(path, reason));
        }
    }
    Ok(())
}

/// Looks at every row group of a file for [`LeafRows`] to read it later.
pub(super) fn check_groups(path: &Path, reader: &Reader, leaves: &[(usize, bool)]) -> Result<(), SourceError> {
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|e| file::unreadable(path, &e))?;
        check_group(path, group.as_ref(), leaves)?;
    }
    Ok(())
}

impl OneLeaf {
    /// The row behind the next `before` ones.
    fn take(&mut self, before: usize, into: &mut Leaf) -> Parsed<u64> {
        let Leaf { values, def, rep } = into;
        let first = def.len();
        macro_rules! read {
            ($reader:expr, $values:expr) => {{
                let had = $values.len();
                let levels = one_row($reader, before, def, rep, $values)?;
                (levels, size_of_val(&$values[had..]) as u64, had)
            }};
        }
        let (read, mut bytes) = match (&mut self.reader, values) {
            (ColumnReader::BoolColumnReader(reader), Values::Bool(values)) => plain(read!(reader, values)),
            (ColumnReader::Int32ColumnReader(reader), Values::I32(values)) => plain(read!(reader, values)),
            (ColumnReader::Int64ColumnReader(reader), Values::I64(values)) => plain(read!(reader, values)),
            (ColumnReader::Int96ColumnReader(reader), Values::I96(values)) => plain(read!(reader, values)),
            (ColumnReader::FloatColumnReader(reader), Values::F32(values)) => plain(read!(reader, values)),
            (ColumnReader::DoubleColumnReader(reader), Values::F64(values)) => plain(read!(reader, values)),
            (ColumnReader::ByteArrayColumnReader(reader), Values::Bytes(values)) => {
                let (levels, bytes, had) = read!(reader, values);
                (levels, bytes + values[had..].iter_mut().map(own).sum::<u64>())
            }
            (ColumnReader::FixedLenByteArrayColumnReader(reader), Values::Fixed(values)) => {
                let (levels, bytes, had) = read!(reader, values);
                let own = |value: &mut FixedLenByteArray| {
                    *value = FixedLenByteArray::from(value.data().to_vec());
                    value.len() as u64
                };
                (levels, bytes + values[had..].iter_mut().map(own).sum::<u64>())
            }
            _ => return Err(ParquetError::General("a column is of another type than it was".to_owned())),
        };
        bytes += 4 * read as u64;
        if self.raise {
            // One level more: the column itself may be missing now.
            match self.has_def {
                true => def[first..].iter_mut().for_each(|level| *level += 1),
                false => def.resize(first + read, 1),
            }
        }
        Ok(bytes)
    }
}

/// Of a column of numbers the values are all there is.
fn plain((levels, bytes, _): (usize, u64, usize)) -> (usize, u64) {
    (levels, bytes)
}

/// A value of its own: as it was read it keeps its whole page in memory.
fn own(value: &mut ByteArray) -> u64 {
    *value = ByteArray::from(value.data().to_vec());
    value.len() as u64
}

/// Passes over some rows and reads one; says how many values or gaps it has.
fn one_row<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    before: usize,
    def: &mut Vec<i16>,
    rep: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Parsed<usize> {
    let ended = || ParquetError::EOF("a column has fewer rows than the file says".to_owned());
    if before > 0 && reader.skip_records(before)? != before {
        return Err(ended());
    }
    match reader.read_records(1, Some(def), Some(rep), values)? {
        (0, ..) => Err(ended()),
        (_, _, levels) => Ok(levels),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use dtkc_testing::parquet::{Compression, GzipLevel, ImageTable, ZstdLevel};
    use parquet::data_type::ByteArrayType;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::super::{Choice, RowColumns};
    use super::*;

    fn choose(path: &Path) -> Result<Chosen, SourceError> {
        Chosen::of(path, &Choice { names: None, images: true, columns: &RowColumns::default(), flag: "--keep" })
    }

    /// Reads every row, or up to the first that fails.
    fn read(path: &Path) -> Result<Vec<Leaf>, SourceError> {
        let chosen = choose(path)?;
        let (mut rows, mut leaves) = (LeafRows::open(path, &chosen)?, chosen.empty());
        for group in 0..rows.groups() {
            for row in 0..rows.rows(group) {
                rows.read(group, row as usize, &mut leaves)?;
            }
        }
        Ok(leaves)
    }

    #[test]
    fn rows_come_with_their_levels() {
        let mut table = ImageTable::new(&[("a", "1"), ("b", "22"), ("c", "333")]).labelled(&[7, -8, 9], None);
        table.rows[1].path = None;
        table.group = 2;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        std::fs::write(&path, table.file()).unwrap();
        let leaves = read(&path).unwrap();
        let texts = |leaf: &Leaf| match &leaf.values {
            Values::Bytes(values) => values.iter().map(|value| value.data().to_vec()).collect(),
            _ => Vec::new(),
        };
        assert_eq!(
            (texts(&leaves[0]), leaves[0].def.as_slice()),
            (vec![b"1".to_vec(), b"22".into(), b"333".into()], &[2; 3][..])
        );
        assert_eq!((texts(&leaves[1]), leaves[1].def.as_slice()), (vec![b"a".to_vec(), b"c".into()], &[2, 1, 2][..]));
        assert!(matches!(&leaves[2].values, Values::I64(values) if values == &[7, -8, 9]));
        assert!(leaves.iter().all(|leaf| leaf.rep.is_empty()));
        // Forward, in jumps.
        let chosen = choose(&path).unwrap();
        let (mut rows, mut leaves) = (LeafRows::open(&path, &chosen).unwrap(), chosen.empty());
        rows.read(0, 1, &mut leaves).unwrap();
        rows.read(1, 0, &mut leaves).unwrap();
        assert!(rows.read(1, 1, &mut leaves).is_err() && rows.read(9, 0, &mut leaves).is_err());
        assert!(matches!(&leaves[2].values, Values::I64(values) if values[..2] == [-8, 9]));
    }

    #[test]
    fn no_damage_breaks_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let packed =
            [Compression::SNAPPY, Compression::GZIP(GzipLevel::default()), Compression::ZSTD(ZstdLevel::default())];
        for compression in packed {
            let table = ImageTable::new(&[("a", "one"), ("b", "two"), ("c", "three")]).labelled(&[1, 2, 3], None);
            let whole = ImageTable { compression, ..table }.file();
            for place in 0..whole.len() {
                for value in [0, 0x7f, 0xff, whole[place] ^ 1] {
                    let mut bytes = whole.clone();
                    bytes[place] = value;
                    std::fs::write(&path, bytes).unwrap();
                    // An error or other values; never a panic, and never for long.
                    let _ = read(&path);
                }
            }
            for cut in (0..whole.len()).step_by(7) {
                std::fs::write(&path, &whole[..cut]).unwrap();
                assert!(read(&path).is_err());
            }
        }
    }

    #[test]
    fn a_short_file_does_not_become_a_long_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        // One text of half a mebibyte in a dictionary, and five thousand rows that say it.
        let schema =
            Arc::new(parse_message_type("message m { optional binary image; optional binary text (UTF8); }").unwrap());
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let mut writer =
            SerializedFileWriter::new(std::fs::File::create(&path).unwrap(), schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for text in [vec![1], vec![b'x'; 1 << 19]] {
            let values = vec![ByteArray::from(text); 5000];
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&values, Some(&vec![1; 5000]), None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < 1 << 19);
        let chosen = choose(&path).unwrap();
        let mut rows = LeafRows::open(&path, &chosen).unwrap();
        let read = (0..5000).try_for_each(|row| rows.read(0, row, &mut chosen.empty()).map(drop));
        let error = read.unwrap_err().to_string();
        assert!(error.contains("come to much more than the file itself"), "{error}");
    }
}
