//! `dtkc-data merge`: several datasets, one after the other.

use std::path::PathBuf;

use anyhow::bail;
use dtkc_cli::interrupt;
use dtkc_dataset::Dataset;
use dtkc_item::Resize;

use super::copy::{NewSet, Output, OutputArgs, Part};

/// Flags of `merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The datasets to join, in this order
    #[arg(required = true, num_args = 2..)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    /// Leave all labels out
    #[arg(long)]
    drop_labels: bool,
}

const EXAMPLES: &str = "\
All sets must hold items of the same shape. Classes with the same name become one class; labels without
names keep their numbers. The rule by which images were brought to their size is kept where the sets that have
one agree.

Examples:
  dtkc-data merge train.h5 test.h5 --out all.h5
  dtkc-data merge labelled.h5 more-photos.h5 --drop-labels --out photos.h5";

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    args.output.check(&args.files)?;
    interrupt::install();
    let datasets = args.files.iter().map(Dataset::open).collect::<Result<Vec<_>, _>>()?;
    let first = &datasets[0];
    for other in &datasets[1..] {
        check_same_shape(first, other)?;
    }
    let labels = if args.drop_labels { None } else { labels_of(&datasets)? };
    let (mut labels, label_names) = match labels {
        Some((labels, names)) => (labels.into_iter().map(Some).collect(), names),
        None => (vec![None; datasets.len()], None),
    };
    let paths = datasets.iter().any(Dataset::has_paths);
    let count = datasets.iter().map(Dataset::len).sum();
    let (resize, note) = resize_of(&datasets);
    let names: Vec<&str> = datasets.iter().map(Dataset::name).collect();
    let source = format!("merge of {}", names.join(", "));
    let set = NewSet { source, label_names, paths, resize, count };
    let mut output = Output::create("merge", &args.output, first, set)?;
    for (dataset, labels) in datasets.iter().zip(&mut labels) {
        let indices = (0..dataset.len()).collect();
        output.copy(&Part { dataset, indices, labels: labels.take() })?;
    }
    output.finish()?;
    if let Some(note) = note {
        println!("note: {note}");
    }
    Ok(())
}

/// The rule for resizing that the sets have in common; a set without one has nothing to say. Sets that differ give a
/// set without, and a remark.
fn resize_of(datasets: &[Dataset]) -> (Option<Resize>, Option<String>) {
    let mut ruled = datasets.iter().filter_map(|d| Some((d, d.resize()?)));
    let Some((first, rule)) = ruled.next() else { return (None, None) };
    let Some((other, different)) = ruled.find(|(_, other)| *other != rule) else { return (Some(rule), None) };
    let (first, other) = (first.path().display(), other.path().display());
    let note = format!(
        "{first} was brought to size by {rule}, {other} by {different}; the new set says neither, so that models made \
         from it use {}",
        Resize::default()
    );
    (None, Some(note))
}

fn check_same_shape(first: &Dataset, other: &Dataset) -> anyhow::Result<()> {
    let (a, b) = (first.shape(), other.shape());
    if a != b {
        let (first, other) = (first.path().display(), other.path().display());
        bail!("{first} holds {a} but {other} holds {b}; import one of them again in the shape of the other");
    }
    Ok(())
}

/// The labels of every set in one numbering, and its names.
type Labels = (Vec<Vec<i64>>, Option<Vec<String>>);

fn labels_of(datasets: &[Dataset]) -> anyhow::Result<Option<Labels>> {
    let mut all = Vec::new();
    for dataset in datasets {
        all.push((dataset.labels()?, dataset.label_names()?));
    }
    let labelled = all.iter().filter(|(labels, _)| labels.is_some()).count();
    if labelled == 0 {
        return Ok(None);
    }
    if let Some(place) = all.iter().position(|(labels, _)| labels.is_none()) {
        let path = datasets[place].path().display();
        bail!("{path} has no labels but others have; add --drop-labels to leave the labels out");
    }
    let all = all.into_iter().map(|(labels, names)| (labels.unwrap_or_default(), names)).collect();
    Ok(Some(reconcile(all)))
}

/// Brings labels to one numbering by name, in the order of first appearance. A label without a name counts
/// as named by its number, unless no set has names: then the numbers stay as they are. Negative labels name no class.
fn reconcile(sets: Vec<(Vec<i64>, Option<Vec<String>>)>) -> Labels {
    if sets.iter().all(|(_, names)| names.is_none()) {
        return (sets.into_iter().map(|(labels, _)| labels).collect(), None);
    }
    let mut names: Vec<String> = Vec::new();
    let mut number = |name: String| {
        let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        place as i64
    };
    let mut all = Vec::new();
    for (labels, own) in sets {
        let mut present: Vec<i64> = labels.iter().copied().filter(|&label| label >= 0).collect();
        present.sort_unstable();
        present.dedup();
        let classes: Vec<(i64, i64)> = match own {
            Some(own) => own.into_iter().enumerate().map(|(l, name)| (l as i64, number(name))).collect(),
            None => present.into_iter().map(|l| (l, number(l.to_string()))).collect(),
        };
        let renumber = |l: &i64| classes.binary_search_by_key(l, |c| c.0).map_or(*l, |place| classes[place].1);
        all.push(labels.iter().map(renumber).collect());
    }
    (all, Some(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Option<Vec<String>> {
        Some(list.iter().map(|s| (*s).to_owned()).collect())
    }

    #[test]
    fn the_same_name_is_the_same_class() {
        let sets = vec![(vec![0, 1, 1], names(&["cat", "dog"])), (vec![0, 1, 2], names(&["dog", "bird", "cat"]))];
        let (labels, merged) = reconcile(sets);
        assert_eq!(labels, [vec![0, 1, 1], vec![1, 2, 0]]);
        assert_eq!(merged, names(&["cat", "dog", "bird"]));
    }

    #[test]
    fn numbers_stay_where_nobody_has_names() {
        let (labels, merged) = reconcile(vec![(vec![5, -1], None), (vec![7], None)]);
        assert_eq!(labels, [vec![5, -1], vec![7]]);
        assert_eq!(merged, None);
    }

    #[test]
    fn a_number_is_a_name_beside_names() {
        let (labels, merged) = reconcile(vec![(vec![0, 1, -1], names(&["1", "0"])), (vec![0, 1, -1, 30], None)]);
        assert_eq!(labels, [vec![0, 1, -1], vec![1, 0, -1, 2]]);
        assert_eq!(merged, names(&["1", "0", "30"]));
    }
}
