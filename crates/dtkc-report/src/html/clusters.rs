//! Clusters as pictures.

use std::fmt::Write;

use dtkc_human::count;

use super::text::{chip, color, escape, strip};
use crate::model::{Cluster, Report};
use crate::pictures::Picture;
use crate::words::{gap_text, percent};

/// Pictures of a row up to which rows stand beside each other.
const FEW: usize = 6;

pub fn section(report: &Report) -> String {
    if report.clusters.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<div class=\"card\"><h2>Clusters</h2><p class=\"hint\">Do the pictures of a cluster belong together? The uncertain ones show where it ends. \
         A click on a bar leads to its cluster.</p>",
    );
    overview(&mut out, report);
    out += "</div>\n<div class=\"tools\" role=\"group\" aria-label=\"Order of clusters\"><span>order by</span>";
    let mut orders = vec![("cluster", "number"), ("confidence", "least certain first")];
    if report.clusters.iter().any(|cluster| cluster.consensus.is_some()) {
        orders.push(("consensus", "least agreed first"));
    }
    for (key, name) in orders {
        let _ = write!(
            out,
            "<button type=\"button\" data-order=\"{key}\" aria-pressed=\"{}\">{name}</button>",
            key == "cluster"
        );
    }
    out += "</div>\n<div id=\"cluster-list\">";
    for cluster in &report.clusters {
        card(&mut out, cluster, report);
    }
    out += "</div>";
    out
}

fn overview(out: &mut String, report: &Report) {
    let largest = report.clusters.iter().map(|cluster| cluster.size).max().unwrap_or(0).max(1);
    let many = report.clusters.len() > 30;
    let _ = write!(
        out,
        "<div class=\"sizes{}\" role=\"list\" aria-label=\"Sizes of clusters\">",
        if many { " many" } else { "" }
    );
    for cluster in &report.clusters {
        let Cluster { cluster: id, size, .. } = cluster;
        let height = 100.0 * *size as f64 / largest as f64;
        let _ = write!(
            out,
            "<a role=\"listitem\" href=\"#cluster-{id}\" title=\"cluster {id}: {} {}\"><i style=\"height:{height:.1}%;background:{}\"></i>{}</a>",
            count(*size),
            escape(&report.about.kind),
            color(*id, report.about.clusters),
            if many { String::new() } else { format!("<span>{id}</span>") }
        );
    }
    *out += "</div>";
}

fn card(out: &mut String, cluster: &Cluster, report: &Report) {
    let about = &report.about;
    let mut figures =
        vec![format!("<b>{}</b> {} ({})", count(cluster.size), escape(&about.kind), percent(cluster.share))];
    figures.extend(cluster.confidence.map(|confidence| format!("mean confidence <b>{}</b>", percent(confidence))));
    figures.extend(cluster.consensus.map(|consensus| format!("restarts agree on <b>{}</b>", percent(consensus))));
    let mostly = |mostly: &crate::model::Mostly| {
        format!("mostly <b>{}</b> ({}, by labels)", escape(&mostly.class), percent(mostly.share))
    };
    figures.extend(cluster.mostly.as_ref().map(mostly));
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<article class=\"card cluster\" id=\"cluster-{id}\" data-cluster=\"{id}\" data-confidence=\"{}\" data-consensus=\"{}\">\
         <header><h3>{} <span>cluster {id}</span></h3><p class=\"numbers\">{}</p></header>",
        cluster.confidence.unwrap_or(2.0),
        cluster.consensus.unwrap_or(2.0),
        chip(cluster.cluster, about.clusters),
        figures.join(" · "),
        id = cluster.cluster,
    );
    if cluster.size == 0 {
        let _ = write!(out, "<p class=\"hint\">No {} fell into this cluster.</p>", escape(&about.one));
    }
    let few = cluster.certain.len().max(cluster.uncertain.len()) <= FEW;
    *out += if few { "<div class=\"rows few\">" } else { "<div class=\"rows\">" };
    for (title, hint, shots) in [
        ("certain", "the network is surest of these", &cluster.certain),
        ("typical", "drawn evenly from the whole cluster", &cluster.typical),
        ("uncertain", "these nearly went elsewhere", &cluster.uncertain),
    ] {
        if !shots.is_empty() {
            let _ = write!(out, "<div>{}</div>", strip(title, hint, shots));
        }
    }
    *out += "</div>";
    importance(out, &cluster.importance);
    if !cluster.nearest.is_empty() {
        *out += "<p class=\"nearest\">Nearest clusters (gap): ";
        for near in &cluster.nearest {
            let _ = write!(out, "{} {} ", chip(near.cluster, about.clusters), gap_text(near.gap));
        }
        *out += "</p>";
    }
    *out += "</article>\n";
}

fn importance(out: &mut String, pictures: &[Picture]) {
    if pictures.is_empty() {
        return;
    }
    *out += "<h4>what decides <small>red speaks for this cluster, blue against it</small></h4><ul class=\"strip\">";
    for picture in pictures {
        let class = if picture.is_tiny() { " class=\"tiny\"" } else { "" };
        let _ = write!(out, "<li><img{class} loading=\"lazy\" alt=\"importance\" src=\"{}\"></li>", picture.address());
    }
    *out += "</ul>";
}
