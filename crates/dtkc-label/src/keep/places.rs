//! Where the rows of a run lie in its tables.

use std::sync::Arc;

use dtkc_source::parquet::RowTable;
use dtkc_source::{Body, Found};

use crate::source::Origin;

/// For every item its row, as runs of rows that follow each other: their number goes with that of row groups.
#[derive(Debug, Default, Clone)]
pub struct Places {
    runs: Vec<Run>,
}

#[derive(Debug, Clone)]
struct Run {
    /// The position of its first item.
    start: u64,
    /// How many items.
    length: u64,
    /// Their table; `None` where they are no rows.
    table: Option<Arc<RowTable>>,
    group: usize,
    /// The row of the first.
    row: usize,
}

impl Places {
    /// Remembers where the item at `index` lies, which is the next one.
    pub fn add(&mut self, index: u64, origin: &Origin) {
        let (table, group, row) = match origin {
            Origin::Encoded(Found { body: Body::Row { table, group, row, .. }, .. }) => (Some(table), *group, *row),
            _ => (None, 0, 0),
        };
        if let Some(last) = self.runs.last_mut() {
            let same = match (&last.table, table) {
                (Some(known), Some(table)) => {
                    Arc::ptr_eq(known, table) && last.group == group && last.row as u64 + last.length == row as u64
                }
                (None, None) => true,
                _ => false,
            };
            if same && last.start + last.length == index {
                last.length += 1;
                return;
            }
        }
        self.runs.push(Run { start: index, length: 1, table: table.cloned(), group, row });
    }

    /// The table, row group and row of an item; `None` where it is no row.
    pub(super) fn find(&self, index: u64) -> Option<(&Arc<RowTable>, usize, usize)> {
        let place = self.runs.partition_point(|run| run.start + run.length <= index);
        let run = self.runs.get(place).filter(|run| run.start <= index)?;
        Some((run.table.as_ref()?, run.group, run.row + (index - run.start) as usize))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use dtkc_item::ItemError;

    use super::*;

    #[test]
    fn rows_are_found_again() {
        let tables: Vec<Arc<RowTable>> =
            ["a", "b"].map(|name| Arc::new(RowTable { path: Path::new(name).into(), image: 0 })).into();
        let row = |table: usize, group, row| {
            let body = Body::Row { table: tables[table].clone(), group, row, named: false };
            Origin::Encoded(Found { path: String::new(), place: 0, body, class: None })
        };
        let broken = || Origin::Encoded(Found::broken(Path::new("c"), ItemError::not_a_file()));
        let all = [row(0, 0, 0), row(0, 0, 1), row(0, 1, 0), broken(), broken(), row(1, 0, 0), row(0, 0, 0)];
        let mut places = Places::default();
        all.iter().enumerate().for_each(|(index, origin)| places.add(index as u64, origin));
        assert_eq!(places.runs.len(), 5);
        let found = |index| places.find(index).map(|(table, group, row)| (table.path.to_str().unwrap(), group, row));
        let expected = [Some(("a", 0, 0)), Some(("a", 0, 1)), Some(("a", 1, 0)), None, None, Some(("b", 0, 0))];
        assert_eq!((0..6).map(found).collect::<Vec<_>>(), expected);
        assert_eq!((found(6), found(7)), (Some(("a", 0, 0)), None));
    }
}
