//! Tables with a row for every step: a column says which sequence a row belongs to. The rows of a sequence follow each
//! other; with a column for the time they may do so in any order.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::lines::Text;
use super::names::Names;
use super::table::{Columns, Table};
use super::{MAX_DIM, MAX_VALUES, shortened};
use crate::ReadError;
use crate::record::{Content, ContentForm, Description, Importer, Record, Sink};

/// Names of columns that say which sequence a row belongs to.
pub const IDS: [&str; 17] = [
    "id",
    "sequence",
    "sequenceid",
    "seq",
    "seqid",
    "series",
    "seriesid",
    "sample",
    "sampleid",
    "case",
    "caseid",
    "instance",
    "instanceid",
    "item",
    "itemid",
    "trajectory",
    "trajectoryid",
];
/// Names of columns with the time.
pub const TIMES: [&str; 9] = ["time", "t", "timestamp", "step", "timestep", "date", "datetime", "frame", "index"];
/// Names of columns with the class.
pub const LABELS: [&str; 7] = ["label", "class", "target", "category", "labels", "classlabel", "classes"];

/// Which column is what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    id: usize,
    time: Option<usize>,
    label: Option<usize>,
    values: Vec<usize>,
    width: usize,
}

/// One such table.
pub struct LongImporter {
    text: Text,
    plan: Plan,
    names: Names,
    description: Description,
}

impl LongImporter {
    /// Reads the table once: how many sequences, which classes, and whether the rows of a sequence follow each other.
    pub fn open(text: Text, columns: &Columns) -> Result<Self, ReadError> {
        let mut table = Table::open(text.lines()?)?;
        let plan = Plan::of(&table, columns)?;
        let mut names = Names::default();
        let (mut seen, mut last, mut count) = (HashSet::new(), None::<String>, 0u64);
        while let Some(row) = table.next_row()? {
            let row = plan.split(&table, &row)?;
            if last.as_deref() != Some(&*row.id) {
                if !seen.insert(hash(&row.id)) {
                    let reason = format!(
                        "is of sequence '{}', which others came after; sort the table so that the rows of a sequence follow each other",
                        shortened(&row.id)
                    );
                    return Err(table.fault(&reason));
                }
                count += 1;
                last = Some(row.id);
            }
            if let Some(label) = &row.label {
                names.add(label).map_err(|e| table.fault(&e))?;
            }
        }
        if count == 0 {
            return Err(ReadError::file(text.path(), "the table has no rows"));
        }
        let description = Description {
            count: Some(count),
            classes: names.settle(plan.label.is_some()),
            paths: true,
            origin: text.path().file_name().map(|name| name.to_string_lossy().into_owned()),
            notes: plan.notes(&table),
            ..Description::new("CSV, a row for every step", ContentForm::Sequences { dim: plan.values.len() })
        };
        Ok(Self { text, plan, names, description })
    }
}

impl Importer for LongImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let mut table = Table::open(self.text.lines()?)?;
        let mut current: Option<Collected> = None;
        while let Some(row) = table.next_row()? {
            let row = self.plan.split(&table, &row)?;
            if let Some(done) = current.take_if(|current| current.id != row.id)
                && sink(done.record(&self.names, self.plan.values.len())).is_break()
            {
                return Ok(());
            }
            let collected = current.get_or_insert_with(|| Collected::new(&row));
            collected.add(row).map_err(|e| table.fault(&e))?;
        }
        if let Some(done) = current {
            let _ = sink(done.record(&self.names, self.plan.values.len()));
        }
        Ok(())
    }
}

impl Plan {
    fn of(table: &Table, columns: &Columns) -> Result<Self, ReadError> {
        let find = |given: &Option<String>, flag: &str, words: &[&str]| match given {
            Some(given) => table.column(given, flag).map(Some),
            None => Ok(table.guess(words)),
        };
        let Some(id) = find(&columns.id, "--id-column", &IDS)? else {
            return Err(table.wrong("no column says which sequence a row belongs to; name it with --id-column"));
        };
        let time = find(&columns.time, "--time-column", &TIMES)?.filter(|&time| time != id);
        let label = find(&columns.label, "--label-column", &LABELS)?.filter(|&label| label != id);
        let values: Vec<usize> = match columns.values.is_empty() {
            false => {
                columns.values.iter().map(|name| table.column(name, "--value-columns")).collect::<Result<_, _>>()?
            }
            true => {
                // A column without a name is the number of the row, as pandas writes it.
                let named = |column: &usize| table.names.as_ref().is_none_or(|names| !names[*column].is_empty());
                (0..table.width).filter(|c| *c != id && Some(*c) != time && Some(*c) != label).filter(named).collect()
            }
        };
        if !(1..=MAX_DIM).contains(&values.len()) {
            return Err(
                table.wrong(&format!("there are {} columns of values; a step has 1 to {MAX_DIM}", values.len()))
            );
        }
        Ok(Self { id, time, label, values, width: table.width })
    }

    /// What was guessed, for people to check.
    fn notes(&self, table: &Table) -> Vec<String> {
        let Some(names) = &table.names else { return Vec::new() };
        let name = |column: usize| names[column].as_str();
        let values: Vec<String> = self.values.iter().map(|&column| names[column].clone()).collect();
        let time = self.time.map(|time| format!(", time: {}", name(time))).unwrap_or_default();
        let label = self.label.map(|label| format!(", class: {}", name(label))).unwrap_or_default();
        vec![format!("sequence: {}{time}{label}, values: {}", name(self.id), super::table::listed(&values))]
    }

    fn split(&self, table: &Table, row: &str) -> Result<Row, ReadError> {
        let fields: Vec<_> = table.fields(row).take(self.width + 1).collect();
        if fields.len() != self.width {
            let found = if fields.len() > self.width { "more".to_owned() } else { fields.len().to_string() };
            return Err(table.fault(&format!("has {found} columns instead of {}", self.width)));
        }
        let values = self.values.iter().map(|&column| table.number(&fields[column])).collect::<Result<_, _>>();
        Ok(Row {
            id: fields[self.id].to_string(),
            time: self.time.map(|time| Time::of(&fields[time])),
            label: self.label.map(|label| fields[label].to_string()),
            values: values.map_err(|e| table.fault(&e))?,
        })
    }
}

struct Row {
    id: String,
    time: Option<Time>,
    label: Option<String>,
    values: Vec<f32>,
}

/// When a step was: only the order counts. Dates such as 2024-05-01 are in order as text.
#[derive(Debug, Clone, PartialEq)]
enum Time {
    Number(f64),
    Text(String),
}

impl Time {
    fn of(text: &str) -> Self {
        text.trim().parse().map_or_else(|_| Self::Text(text.trim().to_owned()), Self::Number)
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

/// The rows of one sequence so far.
struct Collected {
    id: String,
    label: Option<String>,
    times: Vec<Time>,
    values: Vec<f32>,
}

impl Collected {
    fn new(row: &Row) -> Self {
        Self { id: row.id.clone(), label: row.label.clone(), times: Vec::new(), values: Vec::new() }
    }

    fn add(&mut self, row: Row) -> Result<(), String> {
        if row.label != self.label {
            let [a, b] = [&self.label, &row.label].map(|label| shortened(label.as_deref().unwrap_or_default()));
            return Err(format!("gives sequence '{}' the class '{b}', and an earlier one '{a}'", shortened(&self.id)));
        }
        if self.values.len() + row.values.len() > MAX_VALUES {
            return Err(format!("is of a sequence of more than {MAX_VALUES} values"));
        }
        self.times.extend(row.time);
        self.values.extend(row.values);
        Ok(())
    }

    fn record(self, names: &Names, dim: usize) -> Record {
        let Self { id, label, times, mut values } = self;
        if !times.is_sorted_by(|a, b| a.order(b) != Ordering::Greater) {
            let mut order: Vec<usize> = (0..times.len()).collect();
            order.sort_by(|&a, &b| times[a].order(&times[b]));
            values = order.iter().flat_map(|&step| values[step * dim..(step + 1) * dim].iter().copied()).collect();
        }
        Record { content: Content::Sequence(values), label: label.map(|label| names.label(&label)), path: Some(id) }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Classes, records};

    fn read(text: &str, columns: &Columns) -> Result<(Description, Vec<Record>), ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, text).unwrap();
        let mut source = LongImporter::open(Text::file(&path), columns)?;
        let records = records(&mut source)?;
        Ok((source.description, records))
    }

    fn sequence(values: &[f32], label: Option<i64>, path: &str) -> Record {
        Record { content: Content::Sequence(values.to_vec()), label, path: Some(path.to_owned()) }
    }

    #[test]
    fn rows_become_steps_in_the_order_of_time() {
        let text =
            ",id,time,x,y,label\n0,a,10,3,4,up\n1,a,9,1,2,up\n2,b,2024-01-02,7,8,down\n3,b,2024-01-01,5,6,down\n";
        let (description, records) = read(text, &Columns::default()).unwrap();
        assert_eq!((description.form, description.count), (ContentForm::Sequences { dim: 2 }, Some(2)));
        assert_eq!(description.classes, Classes::Names(vec!["down".into(), "up".into()]));
        assert_eq!(description.notes, ["sequence: id, time: time, class: label, values: x, y"]);
        let expected = [sequence(&[1.0, 2.0, 3.0, 4.0], Some(1), "a"), sequence(&[5.0, 6.0, 7.0, 8.0], Some(0), "b")];
        assert_eq!(records, expected);
    }

    #[test]
    fn columns_can_be_named() {
        let columns = Columns { id: Some("1".into()), values: vec!["3".into()], ..Columns::default() };
        let (description, records) = read("7,1,2\n7,3,4\n8,5,6\n", &columns).unwrap();
        assert_eq!(description.classes, Classes::None);
        assert_eq!(records, [sequence(&[2.0, 4.0], None, "7"), sequence(&[6.0], None, "8")]);
    }

    #[test]
    fn faults_name_the_line() {
        let error = |text: &str| read(text, &Columns::default()).unwrap_err().to_string();
        assert!(error("id,x\na,1\nb,2\na,3\n").contains("line 4 is of sequence 'a', which others came after"));
        assert!(error("id,x\na,1,2\n").contains("line 2 has more columns instead of 2"));
        assert!(error("id,x,y\na,1\n").contains("line 2 has 2 columns instead of 3"));
        assert!(error("id,x\na,1\na,z\n").contains("line 3 holds 'z'"));
        assert!(
            error("id,x,label\na,1,u\na,1,v\n").contains("gives sequence 'a' the class 'v', and an earlier one 'u'")
        );
        assert!(error("id,x\n").contains("no rows") && error("id\na\n").contains("0 columns of values"));
        assert!(error("x,y\n1,2\n").contains("--id-column") && error("").contains("--id-column"));
    }
}
