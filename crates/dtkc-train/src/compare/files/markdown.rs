//! The tables as Markdown, padded so that they read well as they are.

use std::fmt::Write as _;

use super::{LEGEND, heading, remarks};
use crate::compare::grid::{Column, Grid};
use crate::compare::table::Comparison;

/// All tables.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::from("# Comparison\n");
    // Writing to a string cannot fail.
    for table in &comparison.datasets {
        let _ = writeln!(out, "\n## {}\n", heading(table));
        let methods = Grid::of_methods(table);
        out += &grid(&methods);
        let differences = Grid::of_differences(table);
        if differences.rows() > 0 {
            let _ = write!(out, "\n{}", grid(&differences));
        }
        let remarks = remarks(table);
        if !remarks.is_empty() {
            let lines: String = remarks.iter().map(|remark| format!("- {}\n", remark.replace('|', "\\|"))).collect();
            let _ = write!(out, "{}{lines}", if methods.rows() > 0 { "\n" } else { "" });
        }
    }
    let _ = write!(out, "\n{}\n", LEGEND.join("\n"));
    out
}

fn grid(grid: &Grid) -> String {
    if grid.rows() == 0 {
        return String::new();
    }
    let cell = |column: &Column, row: usize| {
        let text = column.texts[row].replace('|', "\\|");
        if column.best[row] { format!("**{text}**") } else { text }
    };
    let width = |column: &Column| {
        let cells = (0..grid.rows()).map(|row| cell(column, row).chars().count());
        cells.chain([column.heading.len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = grid.columns.iter().map(width).collect();
    let pad = |column: &Column, width: usize, text: &str| match column.is_name {
        true => format!("{text:<width$}"),
        false => format!("{text:>width$}"),
    };
    let line = |text: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> =
            grid.columns.iter().zip(&widths).map(|(column, &width)| pad(column, width, &text(column))).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = |(column, &width): (&Column, &usize)| match column.is_name {
        true => "-".repeat(width),
        false => "-".repeat(width.saturating_sub(1)) + ":",
    };
    let rules: Vec<String> = grid.columns.iter().zip(&widths).map(rule).collect();
    let mut out = line(&|column| column.heading.to_owned());
    out += &format!("| {} |\n", rules.join(" | "));
    (0..grid.rows()).for_each(|row| out += &line(&|column| cell(column, row)));
    out
}
