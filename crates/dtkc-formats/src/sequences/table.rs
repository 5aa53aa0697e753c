//! Tables as text: what parts the columns, whether there are names above them, and which column is what.

use std::borrow::Cow;

use super::lines::Lines;
use super::long::{IDS, LABELS, TIMES};
use super::shortened;
use crate::ReadError;

/// More columns than this are not a table that anybody made.
const MAX_COLUMNS: usize = 1 << 22;

/// The columns as the user names them, by the name above them or by their number, from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// Which sequence a row belongs to.
    pub id: Option<String>,
    /// The time of a row.
    pub time: Option<String>,
    /// The class.
    pub label: Option<String>,
    /// The values; all other columns where there are none.
    pub values: Vec<String>,
    /// Values of a step, where one row holds all steps.
    pub dim: Option<usize>,
    /// The encoded images, where rows are images.
    pub image: Option<String>,
}

/// An opened table.
pub struct Table {
    lines: Lines,
    /// What parts the columns.
    pub delimiter: char,
    /// The names above the columns.
    pub names: Option<Vec<String>>,
    /// The number of columns of the first row.
    pub width: usize,
    /// The first rows, which were read to know what kind of table this is; without the names.
    waiting: Vec<(usize, String)>,
    number: usize,
}

impl Table {
    /// Reads the beginning of a table. An empty one has no columns.
    pub fn open(mut lines: Lines) -> Result<Self, ReadError> {
        let mut waiting = Vec::new();
        while waiting.len() < 3
            && let Some(line) = lines.next_line()?
        {
            let line = line.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(line);
            if !line.trim().is_empty() {
                waiting.push((lines.number, line));
            }
        }
        let first = waiting.first().map(|(_, line)| line.clone()).unwrap_or_default();
        let delimiter = delimiter(&first);
        let width = if first.is_empty() { 0 } else { fields(&first, delimiter).take(MAX_COLUMNS + 1).count() };
        if width > MAX_COLUMNS {
            return Err(lines.fault(&format!("has more than {MAX_COLUMNS} columns")));
        }
        let second = waiting.get(1).map(|(_, line)| line.as_str());
        let names = is_header(&first, second, delimiter)
            .then(|| fields(&first, delimiter).map(|name| name.trim().to_owned()).collect());
        if names.is_some() {
            waiting.remove(0);
        }
        waiting.reverse();
        Ok(Self { lines, delimiter, names, width, waiting, number: 0 })
    }

    /// The next row as a line.
    pub fn next_row(&mut self) -> Result<Option<String>, ReadError> {
        if let Some((number, line)) = self.waiting.pop() {
            self.number = number;
            return Ok(Some(line));
        }
        while let Some(line) = self.lines.next_line()? {
            if !line.trim().is_empty() {
                self.number = self.lines.number;
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// The first two rows, without going on.
    pub fn peek(&self) -> (Option<&str>, Option<&str>) {
        let mut rows = self.waiting.iter().rev().map(|(_, line)| line.as_str());
        (rows.next(), rows.next())
    }

    /// The fields of a row.
    pub fn fields<'a>(&self, row: &'a str) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
        fields(row, self.delimiter)
    }

    /// What is wrong with the row that was read last.
    pub fn fault(&self, reason: &str) -> ReadError {
        ReadError::file(self.lines.path(), format!("line {} {reason}", self.number))
    }

    /// What is wrong with the table.
    pub fn wrong(&self, reason: &str) -> ReadError {
        ReadError::file(self.lines.path(), reason)
    }

    /// The column that the user means.
    pub fn column(&self, wanted: &str, flag: &str) -> Result<usize, ReadError> {
        let names = self.names.as_deref().unwrap_or_default();
        let by_name = names.iter().position(|name| name == wanted);
        let alike = || names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
        let by_number = || wanted.parse().ok().filter(|n| (1..=self.width).contains(n)).map(|n: usize| n - 1);
        by_name.or_else(alike).or_else(by_number).ok_or_else(|| {
            let there = match names {
                [] => format!("there are columns 1 to {} without names", self.width),
                names => format!("there are {}", listed(names)),
            };
            self.wrong(&format!("there is no column '{}' ({flag}); {there}", shortened(wanted)))
        })
    }

    /// The column whose name says one of these words.
    pub fn guess(&self, words: &[&str]) -> Option<usize> {
        // Long ones are none of these, and need not be looked at letter by letter.
        let short = |name: &String| name.len() < 32;
        let plain = |name: &String| -> String { name.chars().filter(|c| c.is_alphanumeric()).collect() };
        let mut names = self.names.as_deref()?.iter();
        names.position(|name| short(name) && words.iter().any(|word| plain(name).eq_ignore_ascii_case(word)))
    }

    /// A number in a field; where columns are parted by `;`, a comma may stand for the point.
    pub fn number(&self, field: &str) -> Result<f32, String> {
        match self.delimiter == ';' && field.contains(',') {
            true => super::number(&field.replace(',', ".")),
            false => super::number(field),
        }
    }
}

/// The first names of many.
pub fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(12).map(|name| shortened(name)).collect();
    format!("{}{}", shown.join(", "), if names.len() > 12 { ", ..." } else { "" })
}

/// What parts the columns, by the first line.
fn delimiter(line: &str) -> char {
    ['\t', ';'].into_iter().find(|&c| line.contains(c)).unwrap_or(',')
}

/// Whether the first line names the columns: all of it is words, one of them is known to be such a name, or there is a word
/// where the second line has a number.
fn is_header(first: &str, second: Option<&str>, delimiter: char) -> bool {
    let is_number = |field: &str| super::number(&field.replace(',', ".")).is_ok();
    let words = || fields(first, delimiter).map(|field| !is_number(&field));
    let any = !first.is_empty() && words().any(|word| word);
    let Some(second) = second.filter(|_| any) else { return any };
    let known =
        |field: Cow<'_, str>| IDS.iter().chain(&TIMES).chain(&LABELS).any(|name| field.eq_ignore_ascii_case(name));
    fields(first, delimiter).any(known)
        || words().all(|word| word)
        || words().zip(fields(second, delimiter)).any(|(word, below)| word && is_number(&below))
}

/// The fields of a line, without quotes around them.
fn fields(line: &str, delimiter: char) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        if let Some(quoted) = text.trim_start().strip_prefix('"') {
            let (field, behind) = unquoted(quoted);
            rest = behind.split_once(delimiter).map(|(_, next)| next);
            return Some(field);
        }
        let (field, next) = match text.split_once(delimiter) {
            Some((field, next)) => (field, Some(next)),
            None => (text, None),
        };
        rest = next;
        Some(Cow::Borrowed(field.trim()))
    })
}

/// What stands before the closing quote, and what behind it; two quotes stand for one.
fn unquoted(text: &str) -> (Cow<'_, str>, &str) {
    let mut end = 0;
    let mut doubled = false;
    while let Some(quote) = text[end..].find('"') {
        end += quote;
        if !text[end + 1..].starts_with('"') {
            let field = &text[..end];
            let field = if doubled { Cow::Owned(field.replace("\"\"", "\"")) } else { Cow::Borrowed(field) };
            return (field, &text[end + 1..]);
        }
        doubled = true;
        end += 2;
    }
    (Cow::Borrowed(text), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        Table::open(Lines::of("a.csv", text.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn fields_may_be_quoted() {
        let split = |line: &'static str, c| fields(line, c).map(Cow::into_owned).collect::<Vec<_>>();
        assert_eq!(split("a, b ,,c", ','), ["a", "b", "", "c"]);
        assert_eq!(split(r#""a,b";"say ""x""" ; 3"#, ';'), ["a,b", "say \"x\"", "3"]);
        assert_eq!(split("\"open, to the end", ','), ["open, to the end"]);
        assert_eq!(
            (split("", ','), split("1\t2\t", '\t')),
            (vec![String::new()], vec!["1".into(), "2".into(), "".into()])
        );
    }

    #[test]
    fn names_above_the_columns_are_known() {
        for (text, names) in [
            ("id,time,x\na,0,1\n", true),
            ("cat,1,2\ndog,3,4\n", false),
            ("label,t0,t1\ncat,1,2\n", true),
            ("1,2\n3,4\n", false),
            ("x,y\n", true),
            ("", false),
        ] {
            assert_eq!(table(text).names.is_some(), names, "{text}");
        }
        let mut table = table("\u{feff}a;b\n\n1,5;?\n2;3\n");
        assert_eq!(
            (table.names.clone().unwrap(), table.width, table.delimiter),
            (vec!["a".into(), "b".into()], 2, ';')
        );
        assert_eq!(table.peek(), (Some("1,5;?"), Some("2;3")));
        let row = table.next_row().unwrap().unwrap();
        let numbers: Vec<_> = table.fields(&row).map(|field| table.number(&field).unwrap()).collect();
        assert!(numbers[0] == 1.5 && numbers[1].is_nan());
        assert!(table.fault("is odd").to_string().contains("a.csv: line 3 is odd"));
        assert_eq!(table.next_row().unwrap().as_deref(), Some("2;3"));
        assert_eq!(table.next_row().unwrap(), None);
    }

    #[test]
    fn columns_are_found_by_name_and_number() {
        let named = table("Series ID,time,x\na,0,1\n");
        assert_eq!(
            (named.column("time", "").unwrap(), named.column("X", "").unwrap(), named.column("1", "").unwrap()),
            (1, 2, 0)
        );
        assert_eq!((named.guess(&["id", "seriesid"]), named.guess(&["label"])), (Some(0), None));
        let error = named.column("y", "--id-column").unwrap_err().to_string();
        assert!(error.contains("no column 'y' (--id-column); there are Series ID, time, x"), "{error}");
        let bare = table("1,2\n3,4\n");
        assert!(bare.column("3", "").unwrap_err().to_string().contains("columns 1 to 2 without names"));
    }
}
