//! The files: Markdown, CSV, JSON, and a plot for each dataset.

use std::path::{Path, PathBuf};

use super::plot::plot;
use super::{Course, Mismatch, MismatchTable};
use crate::compare::files::{csv_text, paths_with_plots, write_with_plots};
use crate::compare::grid::number;
use crate::error::TrainError;

/// What files are called.
const STEM: &str = "mismatch";
/// What must be known to read the tables.
const LEGEND: &str = "NMI: of the labels with k-means on what the last block gives (at most 10,000 items); no label is used in training. \
                      Cosine: on the weights of blocks or layers, between the gradient of the terms that make clusters and that of another \
                      term; below 0 it works against them. `autoencoder` reconstructs alone first (its loss is the squared error) and then goes on with \
                      clusters among its codes.";

/// Where the files at `root` over these datasets are.
pub fn paths(root: &Path, sets: &[&str]) -> Vec<PathBuf> {
    paths_with_plots(root, STEM, sets)
}

/// Writes all files, each whole or not at all.
pub fn write(root: &Path, mismatch: &Mismatch) -> Result<(), TrainError> {
    let plots: Vec<(&str, String)> = mismatch.datasets.iter().map(|table| (table.name.as_str(), plot(table))).collect();
    write_with_plots(root, STEM, [markdown(mismatch), csv(mismatch)], mismatch, &plots)
}

/// A row for every course: where its NMI began, was highest and ended, and its cosines.
pub fn markdown(mismatch: &Mismatch) -> String {
    let mut out = String::from("# Mismatch of objectives\n");
    for table in &mismatch.datasets {
        out += &format!("\n## {}: {} items\n\n", table.name, dtkc_human::count(table.items as u64));
        out += "| network | restart | epochs | NMI first | highest (epoch) | last | loss first | last | cosine with what makes clusters: mean over all looks |\n";
        out += "|---|---|---|---|---|---|---|---|---|\n";
        table.courses.iter().for_each(|course| out += &row(course));
        out += &table.notes.iter().map(|note| format!("\n- {}", note.replace('|', "\\|"))).collect::<String>();
        if !table.notes.is_empty() {
            out += "\n";
        }
    }
    out + "\n" + LEGEND + "\n"
}

fn row(course: &Course) -> String {
    let nmi = course.values(|seen| seen.nmi);
    let loss = course.values(|seen| seen.loss);
    let text = |value: Option<&(usize, f64)>, number: &dyn Fn(f64) -> String| {
        value.map_or_else(|| "-".into(), |&(_, value)| number(value))
    };
    let score = |value: Option<&(usize, f64)>| text(value, &|value| number(value));
    let plain = |value: Option<&(usize, f64)>| text(value, &|value| format!("{value:.4}"));
    let highest = nmi.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let highest = highest.map_or_else(|| "-".into(), |&(epoch, value)| format!("{} ({epoch})", number(value)));
    let cosines = course.terms().into_iter().map(|term| format!("{term} {}", number(mean_cosine(course, term))));
    let cosines: Vec<String> = cosines.collect();
    let cosines = if cosines.is_empty() { "-".into() } else { cosines.join(", ") };
    let epochs = course.seen.last().map_or(0, |seen| seen.epoch);
    let cells = [
        course.subject.clone(),
        (course.restart + 1).to_string(),
        epochs.to_string(),
        score(nmi.first()),
        highest,
        score(nmi.last()),
        plain(loss.first()),
        plain(loss.last()),
        cosines,
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn mean_cosine(course: &Course, term: &str) -> f64 {
    let values: Vec<f64> = course.values(|seen| seen.cosines.get(term).copied()).into_iter().map(|(_, v)| v).collect();
    dtkc_metrics::mean(&values).unwrap_or(f64::NAN)
}

/// One row per look, with all digits; a column for every term that has a cosine somewhere.
fn csv(mismatch: &Mismatch) -> String {
    let courses = || mismatch.datasets.iter().flat_map(|table| table.courses.iter().map(move |course| (table, course)));
    let terms: std::collections::BTreeSet<&str> = courses().flat_map(|(_, course)| course.terms()).collect();
    let mut out = String::from("dataset,network,restart,stage,epoch,loss,nmi");
    terms.iter().for_each(|term| out += &format!(",cosine_{term}"));
    out += "\n";
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for (table, course) in courses() {
        for seen in &course.seen {
            let stage = seen.stage.clone().unwrap_or_else(|| "clustering".into());
            let mut cells = vec![csv_text(&table.name), csv_text(&course.subject), course.restart.to_string(), stage];
            cells.extend([seen.epoch.to_string(), number(seen.loss), number(seen.nmi)]);
            cells.extend(terms.iter().map(|&term| number(seen.cosines.get(term).copied())));
            out += &(cells.join(",") + "\n");
        }
    }
    out
}

impl MismatchTable {
    /// The names of networks, in order, each once.
    pub(super) fn subjects(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for course in &self.courses {
            if !names.contains(&course.subject.as_str()) {
                names.push(&course.subject);
            }
        }
        names
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::mismatch::Seen;
    use std::collections::BTreeMap;

    pub(crate) fn seen_twice() -> Mismatch {
        let seen = |epoch: usize, nmi: f64, cosine: Option<f64>| Seen {
            epoch,
            stage: cosine.is_none().then(|| "pretraining".into()),
            loss: Some(1.0 / epoch as f64),
            nmi: Some(nmi),
            cosines: cosine.map(|c| BTreeMap::from([("reconstruction".to_owned(), c)])).unwrap_or_default(),
        };
        let course = |subject: &str, seen: Vec<Seen>| Course { subject: subject.into(), restart: 0, seen };
        let courses = vec![
            course("autoencoder", vec![seen(5, 0.4, None), seen(10, 0.5, None), seen(12, 0.45, Some(-0.25))]),
            course("ddc", vec![seen(5, 0.6, None), seen(10, 0.7, None)]),
        ];
        let table = MismatchTable { name: "usps".into(), items: 9298, courses, notes: vec!["dtkc: it was a|b".into()] };
        Mismatch { version: "0".into(), datasets: vec![table] }
    }

    #[test]
    fn a_course_is_a_row_and_a_look_is_a_line() {
        let text = markdown(&seen_twice());
        let row = "| autoencoder | 1 | 12 | .400 | .500 (10) | .450 | 0.2000 | 0.0833 | reconstruction -.250 |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| ddc | 1 | 10 | .600 | .700 (10) | .700 | 0.2000 | 0.1000 | - |"), "{text}");
        assert!(text.contains("9,298 items") && text.contains("- dtkc: it was a\\|b"));
        let csv = csv(&seen_twice());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 6);
        assert!(lines[0].ends_with(",nmi,cosine_reconstruction") && lines[1].ends_with(",pretraining,5,0.2,0.4,"));
        assert!(lines[3].contains(",clustering,12,") && lines[3].ends_with(",-0.25"), "{csv}");
    }
}
