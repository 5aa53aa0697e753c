//! A table for a model whose dimension is known: it decides where the columns leave it open what a table is.

use super::files;
use super::layout::{self, Layout};
use super::lines::Text;
use super::long::LongImporter;
use super::table::{Columns, Table};
use super::wide::WideImporter;
use crate::ReadError;
use crate::record::{Content, ContentForm, Importer, Record, Sink};
use dtkc_item::ItemError;

/// Shows the sequences of a table, all of `dim` values a step: those that a column of ids tells apart, one in every row
/// where the columns are numbered, or the one that the whole table is. Another dimension is an error with both numbers.
pub fn sequences(text: &Text, dim: usize, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let columns = Columns::default();
    let other = |found: usize| ReadError::file(text.path(), ItemError::other_dimension(found, dim));
    let mut importer: Box<dyn Importer> = match layout::guess(&Table::open(text.lines()?)?, &columns)? {
        Some(Layout::Long) => Box::new(LongImporter::open(text.clone(), &columns)?),
        Some(Layout::Wide) => Box::new(WideImporter::open(text.clone(), &columns)?),
        None => return whole(text, dim, sink),
    };
    match importer.describe().form {
        ContentForm::Sequences { dim: found } if found == dim => importer.stream(sink),
        // Columns x1, x2, x3 are three steps or three dimensions; here they can only be the latter.
        ContentForm::Sequences { dim: found } => match files::table(text.lines()?, &columns) {
            Ok(steps) if steps.dim == dim => whole(text, dim, sink),
            _ => Err(other(found)),
        },
        _ => Err(other(0)),
    }
}

/// The table as one sequence.
fn whole(text: &Text, dim: usize, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let content = match files::table(text.lines()?, &Columns::default()) {
        Ok(steps) if steps.dim == dim => Content::Sequence(steps.values),
        Ok(steps) => return Err(ReadError::file(text.path(), ItemError::other_dimension(steps.dim, dim))),
        Err(error) => return Err(ReadError::file(text.path(), error)),
    };
    // Whether more is wanted says nothing behind the last one.
    let _ = sink(Record { content, label: None, path: None });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    /// Names and values.
    type Found = Vec<(Option<String>, Vec<f32>)>;

    fn read(text: &'static str, dim: usize) -> Result<Found, String> {
        let mut found = Vec::new();
        let mut sink = |record: Record| {
            let Content::Sequence(values) = record.content else { panic!("no sequence") };
            found.push((record.path, values));
            ControlFlow::Continue(())
        };
        sequences(&Text::memory("the table", text.as_bytes()), dim, &mut sink).map_err(|e| e.to_string())?;
        Ok(found)
    }

    #[test]
    fn the_dimension_decides_what_columns_leave_open() {
        let ids = read("id,x,y\na,1,2\na,3,4\nb,5,6\n", 2).unwrap();
        assert_eq!(ids, [(Some("a".into()), vec![1.0, 2.0, 3.0, 4.0]), (Some("b".into()), vec![5.0, 6.0])]);
        let rows = "x1,x2\n1,2\n3,4\n";
        assert_eq!(read(rows, 1).unwrap(), [(None, vec![1.0, 2.0]), (None, vec![3.0, 4.0])]);
        assert_eq!(read(rows, 2).unwrap(), [(None, vec![1.0, 2.0, 3.0, 4.0])]);
        assert_eq!(read("time,x\n0,7\n1,8\n", 1).unwrap(), [(None, vec![7.0, 8.0])]);
        assert_eq!(read("1;2\n3;4\n", 2).unwrap(), [(None, vec![1.0, 2.0, 3.0, 4.0])]);
    }

    #[test]
    fn another_dimension_is_told_with_both_numbers() {
        for (text, found) in [("id,x,y\na,1,2\n", "2 values"), ("x,y\n1,2\n", "2 values"), ("t0,t1\n1,2\n", "1 value")]
        {
            let error = read(text, 3).unwrap_err();
            assert!(error.contains(&format!("has {found} a step and the model takes 3")), "{error}");
        }
        assert!(read("", 3).unwrap_err().contains("the table is empty"));
        assert!(read("x,y\n1,z\n", 2).unwrap_err().contains("line 2 holds 'z'"));
    }
}
