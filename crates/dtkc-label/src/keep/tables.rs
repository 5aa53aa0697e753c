//! Kept columns from the tables themselves.

use std::sync::Arc;

use dtkc_source::parquet::{Leaf, LeafRows, RowTable};

use super::{Kept, KeptRows, Places};
use crate::error::Result;

/// Reads the columns of rows again when the output is made.
pub struct FromTables {
    kept: Kept,
    places: Places,
    open: Option<(Arc<RowTable>, LeafRows)>,
    /// For each leaf, whether it has lists.
    lists: Vec<bool>,
}

impl FromTables {
    /// For rows that lie in `places`.
    pub fn new(kept: Kept, places: Places) -> Self {
        let lists = kept.first.has_lists().collect();
        Self { kept, places, open: None, lists }
    }
}

impl KeptRows for FromTables {
    fn read(&mut self, index: u64, into: &mut [Leaf]) -> Result<u64> {
        let Some((table, group, row)) = self.places.find(index) else {
            into.iter_mut().zip(&self.lists).for_each(|(leaf, lists)| leaf.push_missing(*lists));
            return Ok(0);
        };
        let rows = match self.open.take() {
            Some((open, rows)) if Arc::ptr_eq(&open, table) => &mut self.open.insert((open, rows)).1,
            _ => {
                let rows = LeafRows::open(&table.path, &self.kept.of(&table.path)?)?;
                &mut self.open.insert((table.clone(), rows)).1
            }
        };
        Ok(rows.read(group, row, into)?)
    }
}
