//! Columns of a Parquet file, row by row.

use parquet::basic::{Repetition, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as Parsed};
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::{ColumnDescriptor, Type};

use super::MAX_VALUES;
use crate::rules::MAX_NAME;

/// Bytes of a text that are kept: a longer one is neither a name nor a class, and any number of rows may have it.
const MAX_TEXT: usize = MAX_NAME + 1;

/// What one column has in one row.
#[derive(Debug, Default)]
pub struct Cells {
    /// The numbers of a list, or of all lists in it.
    pub values: Vec<f32>,
    /// Where each inner list ends, in a list of lists.
    pub ends: Vec<usize>,
    /// The one value of a column without lists, as text.
    pub text: String,
}

/// One column of a row group.
pub struct Column {
    typed: Typed,
    /// The levels of lists: from which level of definition on each has an element.
    lists: Vec<i16>,
    max_def: i16,
    def: Vec<i16>,
    rep: Vec<i16>,
}

enum Typed {
    F32(ColumnReaderImpl<FloatType>),
    F64(ColumnReaderImpl<DoubleType>),
    I32(ColumnReaderImpl<Int32Type>),
    I64(ColumnReaderImpl<Int64Type>),
    Bool(ColumnReaderImpl<BoolType>),
    Text(ColumnReaderImpl<ByteArrayType>),
}

/// Whether a column holds numbers that can be values.
pub fn is_number(leaf: &ColumnDescriptor) -> bool {
    matches!(leaf.physical_type(), Physical::FLOAT | Physical::DOUBLE | Physical::INT32 | Physical::INT64)
}

impl Column {
    /// Opens a column of a row group. No page can have more values than the group says, and that is not too many.
    pub fn open(group: &dyn RowGroupReader, place: usize) -> Parsed<Self> {
        let descr = group.metadata().column(place).column_descr_ptr();
        let name = descr.path().string();
        let pages = counted(group, place)?;
        let lists = lists(group.metadata().schema_descr().root_schema(), descr.path().parts());
        let max_def = descr.max_def_level();
        let typed = match descr.physical_type() {
            Physical::FLOAT => Typed::F32(ColumnReaderImpl::new(descr, pages)),
            Physical::DOUBLE => Typed::F64(ColumnReaderImpl::new(descr, pages)),
            Physical::INT32 => Typed::I32(ColumnReaderImpl::new(descr, pages)),
            Physical::INT64 => Typed::I64(ColumnReaderImpl::new(descr, pages)),
            Physical::BOOLEAN => Typed::Bool(ColumnReaderImpl::new(descr, pages)),
            Physical::BYTE_ARRAY => Typed::Text(ColumnReaderImpl::new(descr, pages)),
            other => {
                return Err(ParquetError::General(format!(
                    "column {name} holds {other}, which is neither numbers nor text"
                )));
            }
        };
        Ok(Self { typed, lists, max_def, def: Vec::new(), rep: Vec::new() })
    }

    /// The next row.
    pub fn next_row(&mut self) -> Parsed<Cells> {
        self.def.clear();
        self.rep.clear();
        let (def, rep) = (&mut self.def, &mut self.rep);
        macro_rules! read {
            ($reader:expr, $value:ident, $number:expr, $text:expr) => {{
                let mut values = Vec::new();
                let (rows, ..) = $reader.read_records(1, Some(def), Some(rep), &mut values)?;
                let text = values.first().map($text).unwrap_or_default();
                (rows, values.iter().map(|$value| $number).collect::<Vec<f32>>(), text)
            }};
        }
        let (rows, numbers, text): (usize, Vec<f32>, String) = match &mut self.typed {
            Typed::F32(reader) => read!(reader, v, *v, |v| v.to_string()),
            Typed::F64(reader) => read!(reader, v, *v as f32, |v| v.to_string()),
            Typed::I32(reader) => read!(reader, v, *v as f32, |v| v.to_string()),
            Typed::I64(reader) => read!(reader, v, *v as f32, |v| v.to_string()),
            Typed::Bool(reader) => read!(reader, v, f32::from(u8::from(*v)), |v| u8::from(*v).to_string()),
            Typed::Text(reader) => {
                read!(reader, _v, f32::NAN, |v| text_of(v.data()))
            }
        };
        if rows == 0 {
            return Err(ParquetError::EOF("a column has fewer rows than the file says".to_owned()));
        }
        let mut cells = Cells { text, ..Cells::default() };
        self.unfold(&numbers, &mut cells);
        Ok(cells)
    }

    /// Puts missing values and the ends of inner lists where the levels say.
    fn unfold(&self, numbers: &[f32], cells: &mut Cells) {
        let (Some(&outer), Some(&inner)) = (self.lists.first(), self.lists.last()) else { return };
        let mut numbers = numbers.iter();
        let mut begun = false;
        for (place, &rep) in self.rep.iter().enumerate() {
            let def = self.def.get(place).copied().unwrap_or(self.max_def);
            if self.lists.len() > 1 && rep <= 1 && def >= outer {
                if begun {
                    cells.ends.push(cells.values.len());
                }
                begun = true;
            }
            if def == self.max_def {
                cells.values.extend(numbers.next());
            } else if def >= inner {
                cells.values.push(f32::NAN);
            }
        }
        if begun {
            cells.ends.push(cells.values.len());
        }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..MAX_TEXT).unwrap_or(bytes)).into_owned()
}

/// From which level of definition on each list on the way to a leaf has an element.
fn lists(root: &Type, path: &[String]) -> Vec<i16> {
    let (mut node, mut level, mut lists) = (root, 0, Vec::new());
    for part in path {
        if !node.is_group() {
            break;
        }
        let Some(next) = node.get_fields().iter().find(|field| field.name() == part) else { break };
        node = next;
        match node.get_basic_info().repetition() {
            Repetition::REQUIRED => {}
            Repetition::OPTIONAL => level += 1,
            Repetition::REPEATED => {
                level += 1;
                lists.push(level);
            }
        }
    }
    lists
}

/// The pages of a column of a row group, of which none can have more values than the group says, and that is not too many.
pub(super) fn counted(group: &dyn RowGroupReader, place: usize) -> Parsed<Box<dyn PageReader>> {
    let column = group.metadata().column(place);
    match usize::try_from(column.num_values()).ok().filter(|&n| n <= MAX_VALUES) {
        Some(left) => Ok(Box::new(Counted { pages: group.get_column_page_reader(place)?, left })),
        None => Err(ParquetError::General(format!(
            "column {} has {} values in one row group, more than {MAX_VALUES}; write smaller row groups",
            column.column_descr().path().string(),
            column.num_values()
        ))),
    }
}

/// Pages that may not have more values than their row group says: a few bytes can stand for thousands of millions.
struct Counted {
    pages: Box<dyn PageReader>,
    left: usize,
}

impl PageReader for Counted {
    fn get_next_page(&mut self) -> Parsed<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = page.as_ref().filter(|page| !matches!(page, Page::DictionaryPage { .. })) {
            let values = page.num_values() as usize;
            if values > self.left {
                return Err(ParquetError::General("a page has more values than the file says".to_owned()));
            }
            self.left -= values;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Parsed<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Parsed<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for Counted {
    type Item = Parsed<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
