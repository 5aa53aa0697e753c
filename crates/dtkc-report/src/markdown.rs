//! The facts as Markdown, for people who keep notes.

use std::fmt::Write;

use dtkc_human::{count, many};

use crate::model::{Agreement, Report, Scores, Shot};
use crate::words::{self, gap_text, number, percent};

/// The report as Markdown, without pictures and curves.
pub fn markdown(report: &Report) -> String {
    let about = &report.about;
    let mut out = format!("# {}: clusters\n\n", plain(&about.dataset));
    if report.clusters.is_empty() {
        let _ = writeln!(out, "{}\n", plain(&words::without_clusters(about)));
        for note in &report.notes {
            let _ = writeln!(out, "> {}\n", plain(note));
        }
        restarts(&mut out, report);
        return out;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{} {} ({}) in {}, found by {} ({}) without looking at any label.{} {}\n",
        count(about.items as u64),
        plain(&about.kind),
        plain(&about.shape),
        many(about.clusters, "cluster"),
        plain(&about.method),
        plain(&about.preset),
        about.number.as_ref().map_or(String::new(), |text| format!(" {}", plain(text))),
        plain(&about.why)
    );
    for note in &report.notes {
        let _ = writeln!(out, "> {}\n", plain(note));
    }
    let _ = writeln!(
        out,
        "- clusters in use: {} of {}\n- mean confidence: {}\n- seed: {}, dtkc-train {}\n",
        about.used,
        about.clusters,
        percent(about.confidence),
        about.seed,
        plain(&about.version)
    );
    doubts(&mut out, report);
    restarts(&mut out, report);
    if let Some(agreement) = &report.agreement {
        agree(&mut out, agreement);
    }
    clusters(&mut out, report);
    pairs(&mut out, report);
    if let Some(scores) = &report.scores {
        labels(&mut out, scores);
    }
    out
}

/// Text that does not change the shape of a table or a list.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '|' | '\\' | '`' | '*' | '_' | '<' | '[' | ']' | '#' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

fn doubts(out: &mut String, report: &Report) {
    *out += "## Warnings\n\n";
    if report.doubts.is_empty() {
        *out += "None.\n\n";
        return;
    }
    for doubt in &report.doubts {
        let _ = writeln!(out, "- {}: {}", plain(&doubt.sign), plain(&doubt.remedy));
    }
    *out += "\n";
}

fn restarts(out: &mut String, report: &Report) {
    if report.restarts.is_empty() {
        return;
    }
    *out += "## Restarts\n\n| restart | epochs | kept | loss | used | ACC | NMI | ended |\n|---|---|---|---|---|---|---|---|\n";
    let whole = |value: Option<usize>| value.map_or("-".into(), |v| v.to_string());
    let part = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.3}"));
    for restart in &report.restarts {
        let _ = writeln!(
            out,
            "| {}{} | {} | {} | {} | {} | {} | {} | {} |",
            restart.restart,
            if restart.chosen { " (chosen)" } else { "" },
            restart.epochs,
            whole(restart.kept),
            restart.loss.map_or("-".into(), number),
            whole(restart.used),
            part(restart.acc),
            part(restart.nmi),
            plain(&restart.ended.text)
        );
    }
    *out += "\nLabels, where there are any, were not used to train or to choose.\n\n";
}

fn agree(out: &mut String, agreement: &Agreement) {
    let _ = writeln!(
        out,
        "## How far restarts agree\n\n{} NMI of every pair over {} of {} items:\n",
        agreement.mean.map_or("", words::agreement),
        count(agreement.items as u64),
        count(agreement.of as u64)
    );
    let names: Vec<String> = agreement.restarts.iter().map(|restart| format!(" {restart} |")).collect();
    let _ = writeln!(out, "| restart |{}\n|---|{}", names.concat(), "---|".repeat(names.len()));
    for (restart, row) in agreement.restarts.iter().zip(&agreement.nmi) {
        let cells: String = row.iter().map(|value| format!(" {value:.2} |")).collect();
        let _ = writeln!(out, "| {restart} |{cells}");
    }
    if let Some(consensus) = &agreement.consensus {
        let _ = writeln!(out, "\nOf the other restarts, {} agree about an item on average.", percent(consensus.mean));
    }
    *out += "\n";
}

fn clusters(out: &mut String, report: &Report) {
    *out += "## Clusters\n\n| cluster | items | share | confidence | restarts agree | nearest (gap) | mostly | such as |\n|---|---|---|---|---|---|---|---|\n";
    let share = |value: Option<f64>| value.map_or("-".into(), percent);
    let name = |shot: &Shot| shot.name.as_ref().map_or(shot.index.to_string(), |name| plain(name));
    for cluster in &report.clusters {
        let nearest: Vec<String> =
            cluster.nearest.iter().map(|near| format!("{} ({})", near.cluster, gap_text(near.gap))).collect();
        let such: Vec<String> = cluster.typical.iter().take(3).map(name).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            cluster.cluster,
            count(cluster.size),
            percent(cluster.share),
            share(cluster.confidence),
            share(cluster.consensus),
            nearest.join(", "),
            cluster.mostly.as_ref().map_or("-".into(), |mostly| format!(
                "{} ({})",
                plain(&mostly.class),
                percent(mostly.share)
            )),
            such.join(", ")
        );
    }
    *out += "\n";
}

fn pairs(out: &mut String, report: &Report) {
    if !report.alike.is_empty() {
        *out += "## May be one\n\n";
        for pair in &report.alike {
            let [a, b] = pair.clusters;
            let _ = writeln!(
                out,
                "- {a} and {b}: gap {}, {} (`{}`)",
                gap_text(pair.gap),
                words::gap(pair.gap),
                words::merge([a, b])
            );
        }
        *out += "\n";
    }
    if !report.mixed.is_empty() {
        *out += "## May be two\n\n";
        for mixed in &report.mixed {
            let gap = gap_text(mixed.gap);
            let _ = writeln!(
                out,
                "- {}: gap {gap} between its halves, the smaller one has {} (`{}`)",
                mixed.cluster,
                percent(mixed.smaller),
                words::split(mixed.cluster)
            );
        }
        *out += "\n";
    }
}

fn labels(out: &mut String, scores: &Scores) {
    let _ = writeln!(
        out,
        "## Against the labels (not used)\n\nACC {:.3}, NMI {:.3}, ARI {:.3} over {} items.\n\n| class | items | its cluster | found there | part of that cluster |\n|---|---|---|---|---|",
        scores.acc,
        scores.nmi,
        scores.ari,
        count(scores.labelled as u64)
    );
    for class in &scores.classes {
        let cluster = class.cluster.map_or("none".into(), |cluster| cluster.to_string());
        let _ = writeln!(
            out,
            "| {} | {} | {cluster} | {} | {} |",
            plain(&class.class),
            count(class.items),
            percent(class.found),
            percent(class.pure)
        );
    }
}
