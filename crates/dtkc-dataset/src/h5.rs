//! What HDF5 calls and their failures look like from here.

use std::io;
use std::path::Path;

use hdf5::types::{TypeDescriptor, VarLenAscii, VarLenUnicode};

use crate::DataError;

/// The system's error number inside an HDF5 error, where there is one: the library tells it only in words.
fn errno(error: &hdf5::Error) -> Option<i32> {
    let stack = error.stack()?;
    stack.iter().rev().find_map(|frame| {
        let (_, rest) = frame.desc().split_once("errno = ")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })
}

/// The innermost cause in the library's words, on one line.
pub fn cause(error: &hdf5::Error) -> String {
    let text = match error.stack() {
        Some(stack) => stack.last().map_or_else(|| stack.description().to_owned(), |f| f.desc().to_owned()),
        None => error.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A failed write as one sentence with cause and remedy.
pub fn write_failed(path: &Path, error: &hdf5::Error) -> DataError {
    let reason = match errno(error) {
        Some(code) => system_reason(&io::Error::from_raw_os_error(code)),
        None => cause(error),
    };
    DataError::Write { path: path.to_owned(), reason }
}

/// A failed write outside HDF5.
pub fn write_failed_io(path: &Path, error: &io::Error) -> DataError {
    DataError::Write { path: path.to_owned(), reason: system_reason(error) }
}

fn system_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; free some space or choose another folder".into(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up; free some space or choose another folder".into(),
        io::ErrorKind::FileTooLarge => {
            "the file would be larger than the system allows; raise the limit or choose another folder".into()
        }
        _ => error.to_string(),
    }
}

/// A failed read.
pub fn read_failed(path: &Path, error: &hdf5::Error) -> DataError {
    match errno(error) {
        Some(code) => {
            let system = io::Error::from_raw_os_error(code);
            DataError::Io(io::Error::new(system.kind(), format!("cannot read {}: {system}", path.display())))
        }
        None => DataError::Damaged { path: path.to_owned(), reason: cause(error) },
    }
}

/// A string as HDF5 stores it. A zero character would end it early, so it is replaced.
pub fn text(value: &str) -> VarLenUnicode {
    let clean = value.replace('\0', "\u{fffd}");
    clean.parse().unwrap_or_default()
}

/// The strings of a variable-length selection. Foreign writers may store bytes that are not UTF-8.
pub fn strings(values: &[VarLenUnicode]) -> Vec<String> {
    values.iter().map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned()).collect()
}

/// The same for strings that are marked as ASCII.
pub fn ascii_strings(values: &[VarLenAscii]) -> Vec<String> {
    values.iter().map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned()).collect()
}

/// The stored type of a dataset or attribute, where it is one that we know.
pub fn type_of(container: &hdf5::Container) -> Option<TypeDescriptor> {
    container.dtype().and_then(|t| t.to_descriptor()).ok()
}
