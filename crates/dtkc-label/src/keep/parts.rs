//! Kept columns from the parts of a sharded run.

use std::path::PathBuf;

use dtkc_source::parquet::{Chosen, Leaf, LeafRows};

use super::{KeptColumns, KeptRows, arrow};
use crate::error::{LabelError, Result};
use crate::layout::Layout;
use crate::output::kept_fields;
use crate::shard::Shard;

/// Reads each part from its beginning to its end; which of them has a row follows from its position.
pub struct FromParts {
    /// By the number of the shard.
    parts: Vec<Part>,
}

struct Part {
    rows: LeafRows,
    group: usize,
    row: usize,
}

impl FromParts {
    /// For parts in the order of their shards.
    pub fn open(parts: &[PathBuf], layout: &Layout) -> Result<KeptColumns> {
        let mut first: Option<Chosen> = None;
        let mut open = Vec::new();
        for path in parts {
            let kept = kept_fields(path, layout)?;
            let chosen = Chosen::first(path, kept)?;
            open.push(Part { rows: LeafRows::open(path, &chosen)?, group: 0, row: 0 });
            match &first {
                Some(first) if first.difference(&chosen).is_some() => {
                    return Err(LabelError::file(path, "it keeps other columns than the other parts; label it again"));
                }
                Some(_) => {}
                None => first = Some(chosen),
            }
        }
        let first = first.ok_or(LabelError::Internal("there are no parts"))?;
        let about = arrow::own(&first);
        Ok(KeptColumns { fields: first.fields, about, source: Box::new(Self { parts: open }) })
    }
}

impl KeptRows for FromParts {
    fn read(&mut self, index: u64, into: &mut [Leaf]) -> Result<u64> {
        let number = Shard::of(index, self.parts.len() as u64).number;
        let part = usize::try_from(number - 1).ok().and_then(|place| self.parts.get_mut(place));
        part.ok_or(LabelError::Internal("a part is missing"))?.next(into)
    }
}

impl Part {
    fn next(&mut self, into: &mut [Leaf]) -> Result<u64> {
        while self.group < self.rows.groups() && self.row as u64 >= self.rows.rows(self.group) {
            (self.group, self.row) = (self.group + 1, 0);
        }
        self.row += 1;
        Ok(self.rows.read(self.group, self.row - 1, into)?)
    }
}
