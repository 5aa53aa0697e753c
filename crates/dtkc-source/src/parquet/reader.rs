//! The bytes of images in a Parquet file, in its order.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use dtkc_item::ItemError;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::Result as Parsed;
use parquet::file::reader::FileReader;

use super::file::{self, Reader};
use super::pages::counted;
use crate::SourceError;

/// The code of what fails because its file is damaged, and not by itself.
pub const DAMAGED: &str = "damaged_table";

/// The file and the column that images lie in.
#[derive(Debug, PartialEq, Eq)]
pub struct RowTable {
    /// The file.
    pub path: Box<Path>,
    /// The place of the column among the leaves of the schema.
    pub image: usize,
}

/// Reads images of one file. It goes forward: whole pages are passed over without being unpacked, and a row that lies
/// before the last one costs a new beginning of its row group.
pub struct RowReader {
    table: Arc<RowTable>,
    reader: Reader,
    open: Option<Open>,
    /// The row group that cannot be read on from some row, and why: it is not tried again for every row behind.
    broken: Option<(usize, usize, ItemError)>,
}

/// A row group that is being read.
struct Open {
    group: usize,
    column: ColumnReaderImpl<ByteArrayType>,
    next: usize,
}

impl fmt::Debug for RowReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowReader").field("table", &self.table).finish_non_exhaustive()
    }
}

impl RowReader {
    /// Opens the file.
    pub fn open(table: Arc<RowTable>) -> Result<Self, ItemError> {
        let opened = file::guarded(&table.path, || file::open(&table.path));
        let reader = opened.map_err(|error| damaged(&error))?;
        Ok(Self { table, reader, open: None, broken: None })
    }

    /// Whether it reads this file.
    pub fn reads(&self, table: &Arc<RowTable>) -> bool {
        Arc::ptr_eq(&self.table, table) || self.table == *table
    }

    /// The bytes of an image; `None` where the row has none.
    pub fn read(&mut self, group: usize, row: usize, max_bytes: u64) -> Result<Option<Vec<u8>>, ItemError> {
        if let Some((_, _, error)) = self.broken.as_ref().filter(|(at, from, _)| *at == group && *from <= row) {
            return Err(error.clone());
        }
        let table = self.table.clone();
        let read = catch_unwind(AssertUnwindSafe(|| self.value(group, row)));
        let read =
            read.unwrap_or_else(|_| Err(SourceError::file(&table.path, "the file is damaged; save or copy it again")));
        match read {
            Ok(Some(value)) => {
                ItemError::check_bytes(value.len() as u64, max_bytes)?;
                Ok(Some(value.data().to_vec()))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                let error = damaged(&error);
                self.open = None;
                self.broken = Some((group, row, error.clone()));
                Err(error)
            }
        }
    }

    fn value(&mut self, group: usize, row: usize) -> Result<Option<ByteArray>, SourceError> {
        let open = match self.open.take() {
            Some(open) if open.group == group && open.next <= row => self.open.insert(open),
            _ => {
                let opened = self.begin(group)?;
                self.open.insert(opened)
            }
        };
        open.take(row).map_err(|e| file::unreadable(&self.table.path, &e))
    }

    fn begin(&self, group: usize) -> Result<Open, SourceError> {
        let RowTable { path, image } = &*self.table;
        let failed = |e| file::unreadable(path, &e);
        let rows = self.reader.get_row_group(group).map_err(failed)?;
        file::check_pages(path, rows.metadata(), &[*image])?;
        let descr = rows.metadata().column(*image).column_descr_ptr();
        let column = ColumnReaderImpl::new(descr, counted(rows.as_ref(), *image).map_err(failed)?);
        Ok(Open { group, column, next: 0 })
    }
}

impl Open {
    /// The value of a row that was not passed yet.
    fn take(&mut self, row: usize) -> Parsed<Option<ByteArray>> {
        let ended = || parquet::errors::ParquetError::EOF("a column has fewer rows than the file says".to_owned());
        let before = row - self.next;
        if before > 0 && self.column.skip_records(before)? != before {
            return Err(ended());
        }
        // Levels are of no use here: a row without a value has none.
        let (mut values, mut def) = (Vec::new(), Vec::new());
        let (rows, ..) = self.column.read_records(1, Some(&mut def), None, &mut values)?;
        self.next = row + 1;
        if rows == 0 { Err(ended()) } else { Ok(values.pop()) }
    }
}

/// A file that cannot be read at some place, as the failure of an item in it.
pub(super) fn damaged(error: &SourceError) -> ItemError {
    let reason = match error {
        SourceError::File { reason, .. } | SourceError::Input { reason, .. } => reason.clone(),
        SourceError::Io(error) => format!("the file cannot be read ({error})"),
        SourceError::Store(text) => text.clone(),
    };
    ItemError::new(DAMAGED, reason)
}
