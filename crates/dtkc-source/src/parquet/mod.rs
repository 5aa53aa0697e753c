//! Parquet files with an image in every row, as Hugging Face's `datasets` and others keep them, and what sequences in such
//! files are read with, too.
//!
//! A file is walked without its images ([`ImageRows::each`]): names and classes lie in columns of their own. The bytes of an
//! image are read when they are asked for, in the order of the file ([`RowReader`]), one page at a time. What a page takes is
//! known before the library makes room for it (`file.rs`).

pub mod file;
pub mod pages;

mod columns;
mod features;
mod headers;
mod images;
mod leaves;
mod plan;
mod reader;

pub use columns::{Choice, Chosen, Mark};
pub use images::{ImageRow, ImageRows, Wants, check_columns};
pub use leaves::{Leaf, LeafRows, Values};
pub use plan::{LabelColumn, Plan, RowColumns};
pub use reader::{DAMAGED, RowReader, RowTable};

pub(crate) use images::{no_image, visit};

/// Values of a column in one row group at most.
pub const MAX_VALUES: usize = 1 << 26;

/// Whether the first bytes are those of a Parquet file.
pub fn matches(head: &[u8]) -> bool {
    head.starts_with(b"PAR1")
}

/// The beginnings of the first names of many, fit to be shown.
fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(12).map(|name| shown(name).chars().take(20).collect()).collect();
    format!("{}{}", shown.join(", "), if names.len() > 12 { ", ..." } else { "" })
}

/// A text as it may be shown: no file speaks to the terminal.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
