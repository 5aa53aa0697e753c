//! `dtkc-data subset`: a part of a dataset.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use dtkc_cli::{Usage, interrupt};
use dtkc_dataset::{Dataset, sample};

use super::copy::{NewSet, Output, OutputArgs, Part, find_classes};

/// Flags of `subset`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The dataset to take from
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// Only these items, counted from 0, the end not included; either number may be left out
    #[arg(long, value_name = "START..END", value_parser = parse_range)]
    range: Option<OpenRange>,
    /// Only these classes, by name or number
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    classes: Vec<String>,
    /// At most so many of every class, drawn at random
    #[arg(long, value_name = "N", value_parser = parse_count)]
    per_class: Option<usize>,
    /// A random sample of so many
    #[arg(long, value_name = "N", value_parser = parse_count)]
    sample: Option<usize>,
    /// The first so many
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "sample")]
    count: Option<usize>,
    /// Seed for --sample and --per-class
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

const EXAMPLES: &str = "\
The filters apply in this order: range, classes, per-class, sample or count. The order of items is kept.
Where the classes have names, labels are numbered anew from 0 over the classes that remain.

Examples:
  dtkc-data subset mnist.h5 --count 1000 --out first.h5
  dtkc-data subset mnist.h5 --sample 5000 --seed 1 --out sample.h5
  dtkc-data subset mnist.h5 --classes 3,5,8 --per-class 500 --out hard.h5
  dtkc-data subset mnist.h5 --range 60000.. --out test.h5";

/// A range whose ends may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenRange {
    start: Option<usize>,
    end: Option<usize>,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    let nothing = args.range.is_none() && args.classes.is_empty();
    if nothing && args.per_class.is_none() && args.sample.is_none() && args.count.is_none() {
        let text = "say which part to take: --range, --classes, --per-class, --sample or --count";
        return Err(Usage(text.into()).into());
    }
    args.output.check([&args.file])?;
    interrupt::install();
    let dataset = Dataset::open(&args.file)?;
    let indices = choose(&args, &dataset)?;
    if indices.is_empty() {
        return Err(Usage(format!("nothing in {} matches", args.file.display())).into());
    }
    let (labels, label_names) = renumber(&dataset, &indices)?;
    let paths = dataset.has_paths();
    let source = format!("{} of {} items of {}", indices.len(), dataset.len(), described(&dataset));
    let set = NewSet { source, label_names, paths, resize: dataset.resize(), count: indices.len() };
    let mut output = Output::create("subset", &args.output, &dataset, set)?;
    output.copy(&Part { dataset: &dataset, indices, labels })?;
    output.finish()
}

fn described(dataset: &Dataset) -> String {
    match dataset.source() {
        "" => dataset.name().to_owned(),
        source => format!("{} ({source})", dataset.name()),
    }
}

fn choose(args: &Args, dataset: &Dataset) -> anyhow::Result<Vec<usize>> {
    let range = match &args.range {
        Some(range) => within(range, dataset.len())?,
        None => 0..dataset.len(),
    };
    let mut indices: Vec<usize> = range.collect();
    if !args.classes.is_empty() {
        let wanted = find_classes(dataset, &args.classes)?;
        let labels = dataset.labels()?.unwrap_or_default();
        indices.retain(|&i| wanted.binary_search(&labels[i]).is_ok());
    }
    if let Some(most) = args.per_class {
        let Some(labels) = dataset.labels()? else {
            return Err(Usage(format!("{} has no labels, so --per-class cannot work", args.file.display())).into());
        };
        indices = per_class(&indices, &labels, most, args.seed);
    }
    if let Some(count) = args.sample {
        indices = sample(&indices, count, args.seed);
    }
    indices.truncate(args.count.unwrap_or(usize::MAX));
    Ok(indices)
}

fn within(range: &OpenRange, len: usize) -> Result<Range<usize>, Usage> {
    let (start, end) = (range.start.unwrap_or(0), range.end.unwrap_or(len));
    if start >= end || end > len {
        return Err(Usage(format!("the range {start}..{end} is not inside the set's 0..{len}")));
    }
    Ok(start..end)
}

fn per_class(indices: &[usize], labels: &[i64], most: usize, seed: u64) -> Vec<usize> {
    let mut classes: HashMap<i64, Vec<usize>> = HashMap::new();
    // An item whose class is not known is of none.
    for &index in indices.iter().filter(|&&index| labels[index] >= 0) {
        classes.entry(labels[index]).or_default().push(index);
    }
    // The seed differs between classes, so that equal classes are not drawn alike.
    let mut chosen: Vec<usize> = classes
        .into_iter()
        .flat_map(|(label, members)| sample(&members, most, seed.wrapping_add(label as u64)))
        .collect();
    chosen.sort_unstable();
    chosen
}

/// Labels of the items, and the names of classes.
type Labels = (Option<Vec<i64>>, Option<Vec<String>>);

/// New labels and names: named classes that are gone leave no gap; labels without names and negative ones stay.
fn renumber(dataset: &Dataset, indices: &[usize]) -> anyhow::Result<Labels> {
    let Some(all) = dataset.labels()? else { return Ok((None, None)) };
    let labels: Vec<i64> = indices.iter().map(|&i| all[i]).collect();
    let Some(names) = dataset.label_names()? else { return Ok((Some(labels), None)) };
    let mut kept: Vec<i64> = labels.iter().copied().filter(|&label| label >= 0).collect();
    kept.sort_unstable();
    kept.dedup();
    let number = |label: &i64| kept.binary_search(label).map_or(*label, |place| place as i64);
    let names = kept.iter().map(|&label| names[label as usize].clone()).collect();
    Ok((Some(labels.iter().map(number).collect()), Some(names)))
}

fn parse_range(text: &str) -> Result<OpenRange, String> {
    let bad = || format!("'{text}' is not a range; write for example 0..1000, 500.. or ..1000");
    let (start, end) = text.split_once("..").ok_or_else(bad)?;
    let number = |part: &str| match part {
        "" => Ok(None),
        _ => part.parse().map(Some).map_err(|_| bad()),
    };
    Ok(OpenRange { start: number(start)?, end: number(end)? })
}

fn parse_count(text: &str) -> Result<usize, String> {
    match text.replace('_', "").parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!("'{text}' is not a number of items; write 1 or more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_be_open() {
        assert_eq!(parse_range("3..9"), Ok(OpenRange { start: Some(3), end: Some(9) }));
        assert_eq!(parse_range("3.."), Ok(OpenRange { start: Some(3), end: None }));
        assert_eq!(parse_range("..9"), Ok(OpenRange { start: None, end: Some(9) }));
        for bad in ["9", "a..b", "-1..3", "1...3"] {
            assert!(parse_range(bad).is_err(), "{bad}");
        }
        let range = |start, end| within(&OpenRange { start, end }, 10).map_err(|e| e.0);
        assert_eq!(range(None, Some(10)), Ok(0..10));
        assert!(range(Some(5), Some(5)).is_err());
        assert!(range(None, Some(11)).is_err());
    }

    #[test]
    fn at_most_so_many_of_every_class() {
        let labels = [0, 0, 0, 1, 1, 2];
        let chosen = per_class(&[0, 1, 2, 3, 4, 5], &labels, 2, 7);
        assert_eq!(chosen.iter().filter(|&&i| i < 3).count(), 2);
        assert_eq!(&chosen[2..], [3, 4, 5]);
        assert_eq!(chosen, per_class(&[0, 1, 2, 3, 4, 5], &labels, 2, 7));
    }
}
