//! Tables with a row for every sequence. Columns such as `x0, x1, y0, y1` are two dimensions; without such names the
//! values of a step stand side by side. Empty fields at the end of a row are no steps.

use super::lines::Text;
use super::long::{IDS, LABELS};
use super::names::Names;
use super::table::{Columns, Table};
use super::{MAX_DIM, MAX_VALUES, without_padding};
use crate::ReadError;
use crate::record::{Content, ContentForm, Description, Importer, Record, Sink};

/// Which column is what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    id: Option<usize>,
    label: Option<usize>,
    /// Where the values of each step are, where names of columns say so; otherwise all other columns in their order.
    places: Option<Vec<usize>>,
    dim: usize,
    /// The most columns of a row, where there are names.
    width: Option<usize>,
}

/// One such table.
pub struct WideImporter {
    text: Text,
    plan: Plan,
    names: Names,
    description: Description,
}

impl WideImporter {
    /// Reads the table once for the number of sequences and the classes.
    pub fn open(text: Text, columns: &Columns) -> Result<Self, ReadError> {
        let mut table = Table::open(text.lines()?)?;
        let plan = Plan::of(&table, columns)?;
        let (mut names, mut count) = (Names::default(), 0u64);
        while let Some(row) = table.next_row()? {
            count += 1;
            if let Some(label) = plan.label {
                let name = table.fields(&row).nth(label).unwrap_or_default();
                names.add(&name).map_err(|e| table.fault(&e))?;
            }
        }
        if count == 0 {
            return Err(ReadError::file(text.path(), "the table has no rows"));
        }
        let description = Description {
            count: Some(count),
            classes: names.settle(plan.label.is_some()),
            paths: plan.id.is_some(),
            origin: text.path().file_name().map(|name| name.to_string_lossy().into_owned()),
            ..Description::new("CSV, a row for every sequence", ContentForm::Sequences { dim: plan.dim })
        };
        Ok(Self { text, plan, names, description })
    }
}

impl Importer for WideImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let mut table = Table::open(self.text.lines()?)?;
        while let Some(row) = table.next_row()? {
            let record = self.plan.record(&table, &row, &self.names).map_err(|e| table.fault(&e))?;
            if sink(record).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Plan {
    fn of(table: &Table, columns: &Columns) -> Result<Self, ReadError> {
        if !columns.values.is_empty() || columns.time.is_some() {
            let text = "--value-columns and --time-column are for tables with a row for every step (--format csv-long)";
            return Err(ReadError::Usage(text.into()));
        }
        let find = |given: &Option<String>, flag: &str, words: &[&str]| match given {
            Some(given) => table.column(given, flag).map(Some),
            None => Ok(table.guess(words)),
        };
        let id = find(&columns.id, "--id-column", &IDS)?;
        let label = find(&columns.label, "--label-column", &LABELS)?;
        let names = table.names.as_deref();
        let places = match columns.dim {
            None => names.and_then(|names| dimensions(names, |column| Some(column) != id && Some(column) != label)),
            Some(_) => None,
        };
        let (places, dim) = match places {
            Some((places, dim)) => (Some(places), dim),
            None => (None, columns.dim.unwrap_or(1)),
        };
        if !(1..=MAX_DIM).contains(&dim) {
            return Err(table.wrong(&format!("there are {dim} dimensions; a step has 1 to {MAX_DIM} values")));
        }
        Ok(Self { id, label, places, dim, width: names.map(<[String]>::len) })
    }

    fn record(&self, table: &Table, row: &str, names: &Names) -> Result<Record, String> {
        let (mut label, mut path, mut values) = (None, None, Vec::new());
        for (column, field) in table.fields(row).enumerate() {
            if self.width.is_some_and(|width| column >= width) {
                return Err(format!("has more columns than the {column} that have names"));
            }
            if values.len() == MAX_VALUES {
                return Err(format!("has more than {MAX_VALUES} values"));
            }
            match column {
                _ if self.label == Some(column) => label = Some(names.label(&field)),
                _ if self.id == Some(column) => path = Some(field.into_owned()),
                _ => values.push(table.number(&field)?),
            }
        }
        if let Some(places) = &self.places {
            values = places.iter().map(|&place| values.get(place).copied().unwrap_or(f32::NAN)).collect();
        }
        let label = label.or_else(|| self.label.map(|_| -1));
        let path = path.or_else(|| self.id.map(|_| String::new()));
        // A step that was cut off by the end of the row is filled up, so that its gap is told.
        let whole = values.len().next_multiple_of(self.dim);
        if whole != values.len() && !values[values.len() / self.dim * self.dim..].iter().all(|v| v.is_nan()) {
            return Err(format!("has {} values, which is not a number of steps of {} (--dim)", values.len(), self.dim));
        }
        values.resize(whole, f32::NAN);
        without_padding(&mut values, self.dim);
        Ok(Record { content: Content::Sequence(values), label, path })
    }
}

/// Where the values of each step are among the columns of values, and how many there are, where names such as
/// `x0, x1, y0, y1` say so.
fn dimensions(names: &[String], is_value: impl Fn(usize) -> bool) -> Option<(Vec<usize>, usize)> {
    let mut kinds: Vec<(&str, Vec<(u64, usize)>)> = Vec::new();
    let values = names.iter().enumerate().filter(|(column, _)| is_value(*column));
    for (place, (_, name)) in values.enumerate() {
        let (kind, number) = numbered(name)?;
        match kinds.iter().position(|(known, _)| *known == kind) {
            Some(known) => kinds[known].1.push((number, place)),
            // A table has few kinds of columns; many would make this slow, and are no kinds.
            None if kinds.len() < 1024 => kinds.push((kind, vec![(number, place)])),
            None => return None,
        }
    }
    kinds.iter_mut().for_each(|(_, places)| places.sort_unstable());
    let steps = kinds.first()?.1.len();
    let same = |kind: &Vec<(u64, usize)>| kind.iter().map(|(n, _)| n).eq(kinds[0].1.iter().map(|(n, _)| n));
    if !kinds.iter().all(|(_, places)| same(places)) {
        return None;
    }
    let places = (0..steps).flat_map(|step| kinds.iter().map(move |(_, places)| places[step].1)).collect();
    Some((places, kinds.len()))
}

/// `x_` and 12 for `x_12`; nothing and 12 for `12`.
pub fn numbered(name: &str) -> Option<(&str, u64)> {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name[kind.len()..].parse().ok().map(|number| (kind, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Classes, records};

    fn read(text: &str, columns: &Columns) -> Result<(Description, Vec<Record>), ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, text).unwrap();
        let mut source = WideImporter::open(Text::file(&path), columns)?;
        let records = records(&mut source)?;
        Ok((source.description, records))
    }

    fn values(record: &Record) -> &[f32] {
        let Content::Sequence(values) = &record.content else { panic!("no sequence") };
        values
    }

    #[test]
    fn rows_are_sequences_and_empty_ends_are_none() {
        let (description, records) =
            read("id,t0,t1,t2,class\na,1,2,3,up\nb,4,,,down\nc,5\n", &Columns::default()).unwrap();
        assert_eq!((description.form, description.count), (ContentForm::Sequences { dim: 1 }, Some(3)));
        assert_eq!(description.classes, Classes::Names(vec!["down".into(), "up".into()]));
        assert_eq!(
            (values(&records[0]), values(&records[1]), values(&records[2])),
            (&[1.0, 2.0, 3.0][..], &[4.0][..], &[5.0][..])
        );
        assert_eq!(records.iter().map(|r| r.label.unwrap()).collect::<Vec<_>>(), [1, 0, -1]);
        assert_eq!(records[1].path.as_deref(), Some("b"));
    }

    #[test]
    fn dimensions_follow_from_the_names_or_from_a_flag() {
        let (description, rows) = read("x_1,x_2,y_1,y_2\n1,2,3,4\n", &Columns::default()).unwrap();
        assert_eq!(description.form, ContentForm::Sequences { dim: 2 });
        assert_eq!(values(&rows[0]), [1.0, 3.0, 2.0, 4.0]);
        let (_, rows) = read("x2,x10,x1\n1,2,3\n", &Columns::default()).unwrap();
        assert_eq!(values(&rows[0]), [3.0, 1.0, 2.0]);
        let flat = Columns { dim: Some(2), label: Some("1".into()), ..Columns::default() };
        let (description, rows) = read("7,1,2,3,4\n8,5,6\n", &flat).unwrap();
        assert_eq!(description.classes, Classes::Numbers([7, 8].into()));
        assert_eq!((values(&rows[0]), values(&rows[1])), (&[1.0, 2.0, 3.0, 4.0][..], &[5.0, 6.0][..]));
        let error = read("7,1,2,3\n", &flat).unwrap_err().to_string();
        assert!(error.contains("line 1 has 3 values, which is not a number of steps of 2"), "{error}");
    }

    #[test]
    fn faults_name_the_line() {
        let error = |text: &str| read(text, &Columns::default()).unwrap_err().to_string();
        assert!(error("t0,t1\n1,z\n").contains("line 2 holds 'z'"));
        assert!(error("t0,t1\n1,2,3\n").contains("line 2 has more columns than the 2 that have names"));
        assert!(error("t0,t1\n").contains("no rows"));
    }
}
