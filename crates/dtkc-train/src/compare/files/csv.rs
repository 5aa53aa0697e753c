//! The tables as CSV, with all digits; one file for methods, one for differences.

use dtkc_human as human;

use crate::compare::paper::PublishedSpread;
use crate::compare::table::{Comparison, MeanDifference, Spread};

/// One row per dataset and method.
pub(super) fn methods(comparison: &Comparison) -> String {
    let mut out = String::from(
        "dataset,items,classes,clusters,method,preset,restarts,pruned,acc_best,acc_mean,acc_sd,nmi_best,nmi_mean,nmi_sd,\
         loss_best,loss_mean,loss_sd,rho_loss_acc,rho_loss_nmi,seconds,peak_memory_bytes,clusters_used,largest_cluster,\
         smallest_cluster,paper_acc_best,paper_acc_mean,paper_acc_sd,paper_nmi_best,paper_nmi_mean,paper_nmi_sd\n",
    );
    for table in &comparison.datasets {
        for row in &table.methods {
            let sizes = &row.cluster_sizes;
            let mut cells = vec![
                text(&table.name),
                table.items.to_string(),
                number(table.classes),
                table.clusters.to_string(),
                text(&row.method),
                text(&row.preset),
                row.restarts.to_string(),
                row.pruned.to_string(),
            ];
            cells.extend([row.acc, row.nmi, row.loss].into_iter().flat_map(spread));
            cells.extend([number(row.loss_acc), number(row.loss_nmi), row.seconds.to_string()]);
            cells.push(number(row.peak_memory_bytes));
            cells.push(sizes.iter().filter(|&&size| size > 0).count().to_string());
            cells.extend([number(sizes.iter().max()), number(sizes.iter().min())]);
            cells.extend(
                [row.paper.map(|paper| paper.acc), row.paper.map(|paper| paper.nmi)].into_iter().flat_map(quoted),
            );
            out += &(cells.join(",") + "\n");
        }
    }
    out
}

/// One row per dataset and pair of methods.
pub(super) fn differences(comparison: &Comparison) -> String {
    let mut out = String::from("dataset,method,minus,pairs,acc,acc_low,acc_high,nmi,nmi_low,nmi_high\n");
    for table in &comparison.datasets {
        for row in &table.differences {
            let mut cells = vec![text(&table.name), text(&row.method), text(&row.minus), row.pairs.to_string()];
            cells.extend([row.acc, row.nmi].into_iter().flat_map(mean));
            out += &(cells.join(",") + "\n");
        }
    }
    out
}

fn spread(spread: Option<Spread>) -> [String; 3] {
    [number(spread.map(|s| s.best)), number(spread.map(|s| s.mean)), number(spread.and_then(|s| s.sd))]
}

fn quoted(spread: Option<PublishedSpread>) -> [String; 3] {
    [number(spread.map(|s| s.best)), number(spread.and_then(|s| s.mean)), number(spread.and_then(|s| s.sd))]
}

fn mean(difference: MeanDifference) -> [String; 3] {
    let MeanDifference { mean, interval } = difference;
    [mean.to_string(), number(interval.map(|ends| ends[0])), number(interval.map(|ends| ends[1]))]
}

fn number(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Text that is one cell, and no formula.
pub(crate) fn text(text: &str) -> String {
    let safe = human::cell(text);
    match safe.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", safe.replace('"', "\"\"")),
        false => safe.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_cell_and_no_formula() {
        assert_eq!(text("usps"), "usps");
        assert_eq!(text("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(text("=1+1"), "'=1+1");
    }
}
