//! The files of a sweep: Markdown, CSV, JSON, and a plot for each dataset.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dtkc_human as human;

use super::plot::plot;
use super::{PointFigures, Sweep, SweepTable};
use crate::compare::files::{csv_text, paths_with_plots, write_with_plots};
use crate::compare::grid::number;
use crate::compare::table::Spread;
use crate::error::TrainError;

/// What files are called.
const STEM: &str = "sweep";
/// What must be known to read the tables.
const LEGEND: &str = "best: the restart with the lowest loss, which is chosen without labels; mean and sd over all restarts. \
                      Restart i of every point has the same seed. Losses of points with other losses cannot be compared.";

/// Where the files of a sweep at `root` over these datasets are.
pub fn paths(root: &Path, sets: &[&str]) -> Vec<PathBuf> {
    paths_with_plots(root, STEM, sets)
}

/// Writes all files, each whole or not at all.
pub fn write(root: &Path, sweep: &Sweep) -> Result<(), TrainError> {
    let plot = |table: &SweepTable| plot(&sweep.axes, table);
    let plots: Vec<(&str, String)> = sweep.datasets.iter().map(|table| (table.name.as_str(), plot(table))).collect();
    write_with_plots(root, STEM, [markdown(sweep), csv(sweep)], sweep, &plots)
}

/// The tables as Markdown, padded so that they read well as they are.
pub fn markdown(sweep: &Sweep) -> String {
    let mut out = String::from("# Sweep\n");
    for table in &sweep.datasets {
        out += &format!("\n## {}\n\n{}", table.heading, grid(&rows(sweep, table)));
        let notes: String = table.notes.iter().map(|note| format!("- {}\n", note.replace('|', "\\|"))).collect();
        if !notes.is_empty() {
            out += &format!("\n{notes}");
        }
    }
    out + "\n" + LEGEND + "\n"
}

/// A table with its headings, as text.
fn rows(sweep: &Sweep, table: &SweepTable) -> Vec<Vec<String>> {
    let (labelled, quoted) = (table.is_labelled(), table.points.iter().any(|point| point.paper.is_some()));
    let mut headings: Vec<String> = sweep.axes.iter().map(|axis| axis.key.clone()).collect();
    let scores = ["ACC best", "ACC mean", "ACC sd", "NMI best", "NMI mean", "NMI sd"];
    headings.extend(scores.into_iter().filter(|_| labelled).map(String::from));
    headings.extend(["loss best", "loss mean", "loss sd", "time", "restarts"].map(String::from));
    headings.extend(["paper best", "paper mean"].into_iter().filter(|_| quoted).map(String::from));
    let row = |point: &PointFigures| {
        let mut cells = point.values.clone();
        if labelled {
            cells.extend([point.acc, point.nmi].into_iter().flat_map(|score| spread(score, number)));
        }
        cells.extend(spread(point.loss, |loss| format!("{loss:.4}")));
        let time = Duration::try_from_secs_f64(point.seconds).unwrap_or_default();
        cells.push(if point.restarts > 0 { human::duration(time) } else { "-".into() });
        cells.push(point.restarts.to_string());
        if quoted {
            let known = point.paper.map(|(best, mean)| [number(best), number(mean)]);
            cells.extend(known.unwrap_or_else(|| ["-".into(), "-".into()]));
        }
        cells
    };
    std::iter::once(headings).chain(table.points.iter().map(row)).collect()
}

fn spread(spread: Option<Spread>, text: impl Fn(f64) -> String) -> [String; 3] {
    let parts = spread.map_or([None; 3], |spread| [Some(spread.best), Some(spread.mean), spread.sd]);
    parts.map(|part| part.map_or_else(|| "-".into(), &text))
}

fn grid(rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default())
        .collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let padded = |row: &Vec<String>| {
        line(row.iter().zip(&widths).map(|(text, &width)| format!("{:>width$}", text.replace('|', "\\|"))).collect())
    };
    let rule = line(widths.iter().map(|width| "-".repeat(width.saturating_sub(1)) + ":").collect());
    let mut lines = rows.iter().map(padded);
    lines.next().unwrap_or_default() + &rule + &lines.collect::<String>()
}

/// One row per dataset and point, with all digits.
fn csv(sweep: &Sweep) -> String {
    let mut out = String::from("dataset,");
    sweep.axes.iter().for_each(|axis| out += &format!("{},", axis.key));
    out += "cell,restarts,acc_best,acc_mean,acc_sd,nmi_best,nmi_mean,nmi_sd,loss_best,loss_mean,loss_sd,seconds,\
            paper_acc_best,paper_acc_mean\n";
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for table in &sweep.datasets {
        for point in &table.points {
            let mut cells = vec![csv_text(&table.name)];
            cells.extend(point.values.iter().cloned());
            cells.extend([point.cell.clone(), point.restarts.to_string()]);
            for score in [point.acc, point.nmi, point.loss] {
                cells.extend([score.map(|s| s.best), score.map(|s| s.mean), score.and_then(|s| s.sd)].map(number));
            }
            cells.push(point.seconds.to_string());
            cells.extend([point.paper.map(|(best, _)| best), point.paper.map(|(_, mean)| mean)].map(number));
            out += &(cells.join(",") + "\n");
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;
    use crate::sweep::Axis;

    pub(crate) fn sweep() -> Sweep {
        let spread = |best: f64, mean: f64| Some(Spread { best, mean, sd: Some(0.05) });
        let point = |value: &str, best: f64, mean: f64| PointFigures {
            values: vec![value.into(), "0.15".into()],
            cell: format!("dtkc+loss.lambda={value}+loss.sigma=0.15"),
            restarts: 3,
            acc: spread(best, mean),
            nmi: spread(best - 0.1, mean - 0.1),
            loss: spread(-1.5, -1.25),
            seconds: 90.0,
            paper: (value == "0.1").then_some((0.838, 0.769)),
        };
        let missing = PointFigures { restarts: 0, acc: None, nmi: None, loss: None, ..point("0.01", 0.0, 0.0) };
        let axes = ["loss.lambda=1,0.1,0.01", "loss.sigma=0.15"].map(|text| text.parse::<Axis>().unwrap());
        let table = SweepTable {
            name: "usps".into(),
            heading: "usps: 9,298 images, 10 classes, 10 clusters".into(),
            points: vec![point("1", 0.8, 0.75), point("0.1", 0.9, 0.7), missing],
            notes: vec!["dtkc+x failed: it was a|b".into()],
        };
        Sweep { version: "0".into(), axes: axes.to_vec(), datasets: vec![table] }
    }

    #[test]
    fn a_table_has_a_row_for_every_point() {
        let text = markdown(&sweep());
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[0].contains("| loss.lambda | loss.sigma | ACC best |") && lines[0].ends_with("paper mean |"));
        assert!(lines[3].contains(" 0.1 |") && lines[3].contains(" .900 |") && lines[3].ends_with(" .769 |"), "{text}");
        assert!(lines[4].contains(" 0.01 |") && lines[4].contains(" - |"), "{text}");
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        assert!(text.contains("- dtkc+x failed: it was a\\|b"));
        let csv = csv(&sweep());
        assert_eq!(
            csv.lines().nth(1).unwrap(),
            "usps,1,0.15,dtkc+loss.lambda=1+loss.sigma=0.15,3,0.8,0.75,0.05,0.7000000000000001,0.65,0.05,-1.5,-1.25,0.05,90,,"
        );
        assert!(csv.lines().nth(3).unwrap().ends_with(",0,,,,,,,,,,90,,"), "{csv}");
        let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [17; 4]);
    }
}
