//! A Parquet file, opened with no trust in what it says about itself.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::headers::largest_page;
use super::pages::{Cells, Column};
use crate::SourceError;
use crate::remote::{self, Chunks};

/// What the pages that are open at one time may take together when unpacked, one of each column.
const MAX_PAGES: u64 = 1 << 30;

/// An opened file.
pub type Reader = SerializedFileReader<Chunks>;

/// Opens a file and reads what stands at its end: the schema, and where the columns lie.
pub fn open(path: &Path) -> Result<Reader, SourceError> {
    let file = remote::chunks(path).map_err(|error| SourceError::file(path, error.to_string()))?;
    Reader::new(file).map_err(|e| unreadable(path, &e))
}

/// Is shown the cells of a row.
pub type Rows<'a, E> = dyn FnMut(&[Cells]) -> Result<ControlFlow<()>, E> + 'a;

/// Shows the cells of some columns, row by row.
pub fn each_row<E: From<SourceError>>(
    path: &Path,
    reader: &Reader,
    places: &[usize],
    seen: &mut Rows<'_, E>,
) -> Result<(), E> {
    for group in 0..reader.num_row_groups() {
        let (mut columns, rows) = columns(path, reader, group, places)?;
        for _ in 0..rows {
            if seen(&next_row(path, &mut columns)?)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Some columns of a row group, and how many rows it has, after a look at what they would take.
pub(super) fn columns(
    path: &Path,
    reader: &Reader,
    group: usize,
    places: &[usize],
) -> Result<(Vec<Column>, u64), SourceError> {
    let failed = |e: ParquetError| unreadable(path, &e);
    let group = reader.get_row_group(group).map_err(failed)?;
    check_pages(path, group.metadata(), places)?;
    let columns = places.iter().map(|&place| Column::open(group.as_ref(), place)).collect::<Result<_, _>>();
    Ok((columns.map_err(failed)?, u64::try_from(group.metadata().num_rows()).unwrap_or(0)))
}

/// The next row of these columns.
pub(super) fn next_row(path: &Path, columns: &mut [Column]) -> Result<Vec<Cells>, SourceError> {
    columns.iter_mut().map(Column::next_row).collect::<Result<_, _>>().map_err(|e| unreadable(path, &e))
}

/// Refuses columns whose pages would take too much memory: one page of each is unpacked at a time.
pub(super) fn check_pages(path: &Path, group: &RowGroupMetaData, places: &[usize]) -> Result<(), SourceError> {
    let mut file = remote::File::open(path).map_err(|error| SourceError::file(path, error.to_string()))?;
    let mut total = 0u64;
    for &place in places {
        let column = group.column(place);
        // The library unpacks whatever the old form of LZ4 holds, to its end.
        if column.compression() == Compression::LZ4 {
            return Err(SourceError::file(
                path,
                format!("it is packed with an old form of LZ4, which is not read; {SAVE}"),
            ));
        }
        // Where the library begins to read, too; numbers that cannot be make it panic, which is an error of the file.
        let (start, length) = column.byte_range();
        let gzip = matches!(column.compression(), Compression::GZIP(_));
        let page = largest_page(&mut file, start, length, gzip).map_err(|error| {
            SourceError::file(path, format!("a page of the file is damaged ({error}); save or copy it again"))
        })?;
        total = total.saturating_add(page);
    }
    match total > MAX_PAGES {
        true => {
            let [total, most] = [total, MAX_PAGES].map(|bytes| bytes >> 20);
            let reason =
                format!("its pages would take {total} MiB, more than the {most} that are allowed; write smaller pages");
            Err(SourceError::file(path, reason))
        }
        false => Ok(()),
    }
}

/// What to do about a compression that is not read.
const SAVE: &str = "save it with compression='zstd' or 'snappy'";

/// What the library says against a file, with a remedy.
pub(super) fn unreadable(path: &Path, error: &ParquetError) -> SourceError {
    let text = error.to_string();
    let reason = match text.contains("Disabled feature") {
        true => format!("its compression is not read ({text}); {SAVE}"),
        // What a Parquet file holds is written at its end.
        false if ["Corrupt footer", "too small", "than footer"].iter().any(|words| text.contains(words)) => {
            "the file is cut off, or it is no Parquet file; copy or download it again".to_owned()
        }
        false => format!("the file cannot be read ({text}); save or copy it again"),
    };
    SourceError::file(path, reason)
}

/// The library is not known to hold out against every damaged file: a panic of it is an error of the file.
pub fn guarded<T, E: From<SourceError>>(path: &Path, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(SourceError::file(path, "the file is damaged; save or copy it again").into()))
}
