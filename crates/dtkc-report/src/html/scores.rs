//! Agreement with labels, which nothing was chosen by.

use std::fmt::Write;

use dtkc_human::count;

use super::text::escape;
use crate::model::{Report, Scores};
use crate::words::percent;

/// Columns beyond which counts are left to the colours.
const NUMBERED: usize = 26;

pub fn section(report: &Report) -> String {
    let Some(scores) = &report.scores else { return String::new() };
    format!(
        "<div class=\"card\"><h2>Against the labels</h2><p class=\"hint\">{} {} have a label. Labels were <b>not used</b> to train or to choose; they tell here how \
         far the clusters are what somebody else called them. ACC {:.3}: the part whose cluster is matched with their class. NMI {:.3}, ARI {:.3}: the same \
         with chance taken into account.</p>{}{}</div>",
        count(scores.labelled as u64),
        escape(&report.about.kind),
        scores.acc,
        scores.nmi,
        scores.ari,
        confusion(scores),
        classes(scores)
    )
}

fn confusion(scores: &Scores) -> String {
    let table = &scores.confusion;
    let dense = table.clusters.len() > NUMBERED;
    let mut out = String::from("<h3>Classes (rows) and clusters (columns)</h3><div class=\"wide\">");
    let _ = write!(out, "<table class=\"heat{}\"><thead><tr><th>", if dense { " dense" } else { "" });
    for cluster in &table.clusters {
        let _ = write!(out, "<th>{cluster}");
    }
    out += "</tr></thead><tbody>";
    for (class, counts) in table.classes.iter().zip(&table.counts) {
        let total: u64 = counts.iter().sum();
        let _ = write!(out, "<tr><th>{}", escape(class));
        for &items in counts {
            let share = items as f64 / total.max(1) as f64;
            let _ = match (items, dense) {
                (0, _) => write!(out, "<td>"),
                (_, true) => write!(out, "<td style=\"--v:{share:.2}\" title=\"{}\">", count(items)),
                (_, false) => write!(out, "<td style=\"--v:{share:.2}\">{}", count(items)),
            };
        }
        out += "</tr>";
    }
    out + "</tbody></table></div>"
}

fn classes(scores: &Scores) -> String {
    let mut out = String::from(
        "<h3>Every class</h3><div class=\"wide\"><table><thead><tr><th>class<th>items<th>its cluster<th>found there<th>part of that cluster</tr></thead><tbody>",
    );
    for class in &scores.classes {
        let _ = write!(
            out,
            "<tr><th>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            escape(&class.class),
            count(class.items),
            class.cluster.map_or("none".into(), |cluster| cluster.to_string()),
            percent(class.found),
            percent(class.pure)
        );
    }
    out + "</tbody></table></div>"
}
