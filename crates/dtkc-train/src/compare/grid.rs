//! A table as text: columns with their best values marked.

use std::time::Duration;

use dtkc_human as human;

use super::paper::PublishedSpread;
use super::table::{Difference, Figures, MeanDifference, Spread, Table};

/// What a missing value looks like.
pub(super) const NONE: &str = "-";

/// Columns of text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grid {
    /// Every column with its heading.
    pub columns: Vec<Column>,
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    /// Its heading.
    pub heading: &'static str,
    /// Its values from the first row on.
    pub texts: Vec<String>,
    /// Which of them are the best; all that look like the best are.
    pub best: Vec<bool>,
    /// Whether they are names.
    pub is_name: bool,
}

/// Which values of a column are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    High,
    Low,
    /// They cannot be compared.
    Neither,
}

impl Grid {
    /// The figures of all methods of a table.
    pub(super) fn of_methods(table: &Table) -> Self {
        let rows = &table.methods;
        let name = Column::names("method", rows.iter().map(|row| row.method.clone()));
        let first = match rows.iter().any(|row| row.acc.is_some()) {
            true => scores(rows),
            false => losses(rows),
        };
        let mut columns: Vec<Column> = [name].into_iter().chain(first).collect();
        columns.push(Column::new("time", rows, Better::Low, |row| Some(row.seconds), time));
        let memory = |row: &Figures| row.peak_memory_bytes.map(|bytes| bytes as f64);
        columns.push(Column::new("memory", rows, Better::Low, memory, |bytes| human::bytes(bytes as u64)));
        let restarts = |row: &Figures| Some(row.restarts as f64);
        columns.push(Column::new("restarts", rows, Better::Neither, restarts, |n| n.to_string()));
        if rows.iter().any(|row| row.paper.is_some()) {
            let quoted = |spread: fn(&Figures) -> Option<PublishedSpread>| {
                rows.iter().map(move |row| spread(row).map_or(NONE.into(), |spread| published(&spread)))
            };
            columns.push(Column::plain("paper ACC", quoted(|row| row.paper.map(|paper| paper.acc))));
            columns.push(Column::plain("paper NMI", quoted(|row| row.paper.map(|paper| paper.nmi))));
        }
        Self { columns }
    }

    /// The differences between methods of a table.
    pub(super) fn of_differences(table: &Table) -> Self {
        let rows = &table.differences;
        let text = |part: fn(&Difference) -> MeanDifference| rows.iter().map(move |row| difference(part(row)));
        Self {
            columns: vec![
                Column::names("method", rows.iter().map(|row| row.method.clone())),
                Column::names("minus", rows.iter().map(|row| row.minus.clone())),
                Column::plain("ACC", text(|row| row.acc)),
                Column::plain("NMI", text(|row| row.nmi)),
                Column::plain("pairs", rows.iter().map(|row| row.pairs.to_string())),
            ],
        }
    }

    /// Rows below the headings.
    pub(super) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.texts.len())
    }
}

impl Column {
    fn names(heading: &'static str, texts: impl Iterator<Item = String>) -> Self {
        Self { is_name: true, ..Self::plain(heading, texts) }
    }

    fn plain(heading: &'static str, texts: impl Iterator<Item = String>) -> Self {
        let texts: Vec<String> = texts.collect();
        Self { heading, best: vec![false; texts.len()], texts, is_name: false }
    }

    fn new(
        heading: &'static str,
        rows: &[Figures],
        better: Better,
        value: impl Fn(&Figures) -> Option<f64>,
        text: impl Fn(f64) -> String,
    ) -> Self {
        let values: Vec<Option<f64>> = rows.iter().map(value).collect();
        let column = Self::plain(heading, values.iter().map(|value| value.map_or(NONE.into(), &text)));
        let known = values.iter().flatten().copied();
        let best = match better {
            Better::High => known.max_by(f64::total_cmp),
            Better::Low => known.min_by(f64::total_cmp),
            Better::Neither => None,
        };
        // Nothing is the best of one. What looks the same is as good.
        let best = best.filter(|_| values.iter().flatten().count() > 1).map(text);
        let marks = column.texts.iter().map(|text| best.as_ref() == Some(text)).collect();
        Self { best: marks, ..column }
    }
}

fn scores(rows: &[Figures]) -> Vec<Column> {
    let share = |heading, better, value: fn(&Figures) -> Option<f64>| Column::new(heading, rows, better, value, number);
    vec![
        share("ACC best", Better::High, |row| row.acc.map(|acc| acc.best)),
        share("ACC mean", Better::High, |row| row.acc.map(|acc| acc.mean)),
        share("ACC sd", Better::Low, |row| row.acc.and_then(|acc| acc.sd)),
        share("NMI best", Better::High, |row| row.nmi.map(|nmi| nmi.best)),
        share("NMI mean", Better::High, |row| row.nmi.map(|nmi| nmi.mean)),
        share("NMI sd", Better::Low, |row| row.nmi.and_then(|nmi| nmi.sd)),
        share("rho ACC", Better::Low, |row| row.loss_acc),
        share("rho NMI", Better::Low, |row| row.loss_nmi),
    ]
}

/// Of sets without labels. Losses of different methods are different things.
fn losses(rows: &[Figures]) -> Vec<Column> {
    let loss = |heading, value: fn(&Spread) -> Option<f64>| {
        let value = move |row: &Figures| row.loss.as_ref().and_then(value);
        Column::new(heading, rows, Better::Neither, value, |loss| format!("{loss:.4}"))
    };
    let size = |heading, value: fn(&[u64]) -> Option<u64>| {
        let value = move |row: &Figures| value(&row.cluster_sizes).map(|size| size as f64);
        Column::new(heading, rows, Better::Neither, value, |size| human::count(size as u64))
    };
    vec![
        loss("loss best", |loss| Some(loss.best)),
        loss("loss mean", |loss| Some(loss.mean)),
        loss("loss sd", |loss| loss.sd),
        size("clusters used", |sizes| Some(sizes.iter().filter(|&&size| size > 0).count() as u64)),
        size("largest", |sizes| sizes.iter().max().copied()),
        size("smallest", |sizes| sizes.iter().min().copied()),
    ]
}

/// A number of size 1 or less as the paper prints it, with three digits: `.812`, `-.040`.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    match (text.as_str(), text.strip_prefix("0."), text.strip_prefix("-0.")) {
        // Nearly nothing has no sign.
        ("-0.000", ..) => ".000".into(),
        (_, Some(digits), _) => format!(".{digits}"),
        (_, _, Some(digits)) => format!("-.{digits}"),
        _ => text,
    }
}

/// The same with its sign.
fn signed(value: f64) -> String {
    let text = number(value);
    if text.starts_with('-') || text == ".000" { text } else { format!("+{text}") }
}

fn difference(difference: MeanDifference) -> String {
    let MeanDifference { mean, interval } = difference;
    let interval = interval.map_or(String::new(), |[low, high]| format!(" ({} to {})", signed(low), signed(high)));
    format!("{}{interval}", signed(mean))
}

/// As the paper prints it, with two digits.
fn published(spread: &PublishedSpread) -> String {
    let PublishedSpread { best, mean, sd } = *spread;
    let text = |value: f64| format!("{value:.2}").trim_start_matches('0').to_owned();
    [Some(best), mean, sd].into_iter().flatten().map(text).collect::<Vec<_>>().join(" ")
}

fn time(seconds: f64) -> String {
    human::duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_in_the_paper() {
        for (value, plain, sign) in [
            (0.8124, ".812", "+.812"),
            (1.0, "1.000", "+1.000"),
            (-0.04, "-.040", "-.040"),
            (-1.0, "-1.000", "-1.000"),
            (-0.0001, ".000", ".000"),
            (0.0, ".000", ".000"),
            (0.9999, "1.000", "+1.000"),
        ] {
            assert_eq!((number(value), signed(value)), (plain.into(), sign.into()));
        }
        assert_eq!(published(&PublishedSpread { best: 0.96, mean: None, sd: None }), ".96");
        assert_eq!(published(&PublishedSpread { best: 0.5, mean: Some(0.55), sd: Some(0.0) }), ".50 .55 .00");
        let one = MeanDifference { mean: 0.007, interval: Some([-0.04, 0.053]) };
        assert_eq!(difference(one), "+.007 (-.040 to +.053)");
        assert_eq!(difference(MeanDifference { interval: None, ..one }), "+.007");
    }
}
