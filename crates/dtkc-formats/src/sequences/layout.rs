//! What a table is: a row for every step, a row for every sequence, or one sequence as a whole.

use std::path::Path;

use super::lines::Lines;
use super::long::{IDS, LABELS, TIMES};
use super::table::{Columns, Table};
use super::wide::numbered;
use crate::ReadError;

/// How sequences lie in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A row for every step, and a column that says which sequence it belongs to.
    Long,
    /// A row for every sequence.
    Wide,
}

/// Finds out what a table is, by the flags and by the names of its columns. Where both could be it is an error: a guess
/// would give a set that looks right and is not.
pub fn of(path: &Path, columns: &Columns) -> Result<Layout, ReadError> {
    if columns.time.is_some() || !columns.values.is_empty() {
        return Ok(Layout::Long);
    }
    if columns.dim.is_some() {
        return Ok(Layout::Wide);
    }
    guess(&Table::open(Lines::open(path)?)?, columns)?.ok_or_else(|| either(path))
}

/// The same for a table that is open, by its columns; `None` where both could be.
pub fn guess(table: &Table, columns: &Columns) -> Result<Option<Layout>, ReadError> {
    if table.width == 0 {
        return Err(table.wrong("the table is empty"));
    }
    let id = match &columns.id {
        Some(id) => Some(table.column(id, "--id-column")?),
        None => table.guess(&IDS),
    };
    let numbered = has_numbered_columns(table);
    Ok(match id {
        // Columns x1, x2, x3 beside an id may be dimensions or steps.
        Some(id) if !numbered || table.guess(&TIMES).is_some() || is_repeated(table, id) => Some(Layout::Long),
        None if numbered => Some(Layout::Wide),
        _ => None,
    })
}

fn either(path: &Path) -> ReadError {
    ReadError::Usage(format!(
        "{}: this table could have a row for every sequence (--format csv-wide, for values of several dimensions side by \
         side with --dim N), a row for every step (--format csv-long --id-column NAME), or be one sequence (--format csv-each)",
        path.display()
    ))
}

/// Whether all columns but those of ids and classes have names that count: `t0`, `t1` and so on.
fn has_numbered_columns(table: &Table) -> bool {
    let Some(names) = &table.names else { return false };
    let others = [table.guess(&IDS), table.guess(&LABELS), table.guess(&TIMES)];
    let mut values = names.iter().enumerate().filter(|(column, _)| !others.contains(&Some(*column)));
    let mut count = 0;
    values.all(|(_, name)| {
        count += 1;
        numbered(name).is_some()
    }) && count > 1
}

/// Whether the first two rows belong to the same sequence.
fn is_repeated(table: &Table, id: usize) -> bool {
    let (Some(first), Some(second)) = table.peek() else { return false };
    table.fields(first).nth(id) == table.fields(second).nth(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str, columns: &Columns) -> Result<Layout, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, text).unwrap();
        of(&path, columns).map_err(|e| e.to_string())
    }

    #[test]
    fn names_of_columns_tell() {
        let guess = |text: &str| layout(text, &Columns::default());
        for text in ["id,time,x1,x2\na,0,1,2\n", "series,x,y\na,1,2\n", "id,x1,x2\na,1,2\na,3,4\n"] {
            assert_eq!(guess(text), Ok(Layout::Long), "{text}");
        }
        for text in ["t0,t1,t2\n1,2,3\n", "label,0,1,2\nup,1,2,3\n", "x_0,x_1,y_0,y_1,class\n1,2,3,4,5\n"] {
            assert_eq!(guess(text), Ok(Layout::Wide), "{text}");
        }
        for text in ["1,2,3\n4,5,6\n", "x,y\n1,2\n", "id,x1,x2\na,1,2\nb,3,4\n", "time,x\n0,1\n"] {
            let error = guess(text).unwrap_err();
            assert!(error.contains("--format csv-wide") && error.contains("--format csv-long"), "{text}: {error}");
        }
        assert!(guess("").unwrap_err().contains("the table is empty"));
    }

    #[test]
    fn flags_tell() {
        let bare = "1,2,3\n4,5,6\n";
        let id = Columns { id: Some("1".into()), ..Columns::default() };
        let dim = Columns { dim: Some(3), ..Columns::default() };
        assert_eq!((layout(bare, &id), layout(bare, &dim)), (Ok(Layout::Long), Ok(Layout::Wide)));
        let gone = Columns { id: Some("who".into()), ..Columns::default() };
        assert!(layout("x,y\n1,2\n", &gone).unwrap_err().contains("no column 'who'"));
    }
}
