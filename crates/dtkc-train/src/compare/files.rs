//! The files of a comparison: Markdown, CSV, JSON and LaTeX.

mod csv;
mod latex;
mod markdown;

use std::path::{Path, PathBuf};

use super::table::{Comparison, Table};
use crate::error::TrainError;
use dtkc_human as human;
use serde::Serialize;

pub(crate) use csv::text as csv_text;
pub use markdown::markdown;

/// The names of all files, in the order in which they are written.
const NAMES: [&str; 5] =
    ["comparison.md", "comparison.csv", "comparison-differences.csv", "comparison.json", "comparison.tex"];

/// What must be known to read the tables.
const LEGEND: [&str; 3] = [
    "best: the restart with the lowest loss, which is chosen without labels; mean and sd over the restarts that count, \
     which are all but pruned ones.",
    "rho: Spearman's rank correlation of the loss with ACC or NMI over restarts; -1 where a lower loss always is better.",
    "Differences: mean over pairs of restarts with equal seeds, with its 95 % interval (Student's t).",
];

/// Where the files of the comparison at `root` are.
pub fn paths(root: &Path) -> [PathBuf; 5] {
    NAMES.map(|name| root.join(name))
}

/// Writes all files, each whole or not at all.
pub fn write(root: &Path, comparison: &Comparison) -> Result<(), TrainError> {
    let texts = [
        markdown(comparison),
        csv::methods(comparison),
        csv::differences(comparison),
        json(comparison)?,
        latex::latex(comparison),
    ];
    for (path, text) in paths(root).iter().zip(texts) {
        dtkc_files::write(path, text.as_bytes())?;
    }
    Ok(())
}

/// Where tables called `stem`, and a plot of each of these datasets, are.
pub(crate) fn paths_with_plots(root: &Path, stem: &str, sets: &[&str]) -> Vec<PathBuf> {
    let tables = ["md", "csv", "json"].map(|ending| format!("{stem}.{ending}"));
    let plots = sets.iter().map(|set| format!("{stem}-{set}.svg"));
    tables.into_iter().chain(plots).map(|name| root.join(name)).collect()
}

/// Writes them, each whole or not at all: Markdown, CSV, `all` as JSON, and a dataset's name with its plot for each.
pub(crate) fn write_with_plots(
    root: &Path,
    stem: &str,
    [markdown, csv]: [String; 2],
    all: &impl Serialize,
    plots: &[(&str, String)],
) -> Result<(), TrainError> {
    let sets: Vec<&str> = plots.iter().map(|(set, _)| *set).collect();
    let texts = [markdown, csv, json(all)?];
    let texts = texts.iter().chain(plots.iter().map(|(_, plot)| plot));
    for (path, text) in paths_with_plots(root, stem, &sets).iter().zip(texts) {
        dtkc_files::write(path, text.as_bytes())?;
    }
    Ok(())
}

fn json(all: &impl Serialize) -> Result<String, TrainError> {
    Ok(serde_json::to_string_pretty(all).map_err(std::io::Error::from)? + "\n")
}

/// `usps: 9,298 images, 10 classes, 10 clusters`
pub(crate) fn heading(table: &Table) -> String {
    let Table { name, items, kind, classes, clusters, .. } = table;
    let classes = classes.map_or("no labels".into(), |classes| format!("{} classes", human::count(classes as u64)));
    let (items, kind) = (human::count(*items as u64), kind.noun());
    format!("{name}: {items} {kind}, {classes}, {clusters} clusters")
}

/// Sentences about a table: what is missing, what must be known.
pub(crate) fn remarks(table: &Table) -> Vec<String> {
    let open = table.open.iter().map(|open| match open.failed {
        true => format!("{} failed: {}", open.method, open.reason),
        false => format!("{}: {}", open.method, open.reason),
    });
    table.notes.iter().cloned().chain(open).collect()
}
