//! The tables as LaTeX: plain `tabular`s that need no package.

use std::fmt::Write as _;

use super::{LEGEND, heading, remarks};
use crate::compare::grid::{Column, Grid, NONE};
use crate::compare::table::Comparison;

/// All tables.
pub(super) fn latex(comparison: &Comparison) -> String {
    let mut out = String::new();
    for line in LEGEND {
        out += &comment(line);
    }
    for table in &comparison.datasets {
        out += "\n";
        out += &comment(&heading(table));
        for grid in [Grid::of_methods(table), Grid::of_differences(table)] {
            if grid.rows() > 0 {
                out += &tabular(&grid);
            }
        }
        remarks(table).iter().for_each(|remark| out += &comment(remark));
    }
    out
}

/// A line that is not set.
fn comment(text: &str) -> String {
    format!("% {}\n", text.replace(['\n', '\r'], " "))
}

fn tabular(grid: &Grid) -> String {
    let kinds: String = grid.columns.iter().map(|column| if column.is_name { 'l' } else { 'r' }).collect();
    let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
    let mut out = format!("\\begin{{tabular}}{{{kinds}}}\n\\hline\n");
    out += &line(grid.columns.iter().map(|column| escape(column.heading)).collect());
    out += "\\hline\n";
    for row in 0..grid.rows() {
        out += &line(grid.columns.iter().map(|column| cell(column, row)).collect());
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "\\hline\n\\end{{tabular}}\n");
    out
}

fn cell(column: &Column, row: usize) -> String {
    let text = &column.texts[row];
    let set = match column.is_name {
        true => escape(text),
        false if text == NONE => "--".into(),
        // A minus sign is longer than a hyphen.
        false => escape(text).replace('-', "$-$"),
    };
    if column.best[row] { format!("\\textbf{{{set}}}") } else { set }
}

/// Text without the letters that mean something to LaTeX.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out += "\\textbackslash{}",
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            // Two hyphens in a row would be set as a dash.
            '-' if out.ends_with('-') => out += "{}-",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_latex_are_only_letters() {
        assert_eq!(
            escape(r"a_b & 5% {x} \ ~^$#"),
            r"a\_b \& 5\% \{x\} \textbackslash{} \textasciitilde{}\textasciicircum{}\$\#"
        );
        assert_eq!(escape("dec+a_b=-1--c"), r"dec+a\_b=-1-{}-c");
        assert_eq!(comment("one\ntwo"), "% one two\n");
    }
}
