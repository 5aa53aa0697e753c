//! The page.

mod agreement;
mod charts;
mod clusters;
mod head;
mod map;
mod pairs;
mod scores;
mod text;

use crate::model::Report;
use text::{embedded, escape};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const CHARTS: &str = include_str!("charts.js");
const MAP: &str = include_str!("map.js");

/// Nothing may be loaded: a page that asks for something from outside is broken, and is seen to be.
const POLICY: &str = "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The report as one page that needs nothing else.
pub fn html(report: &Report) -> String {
    let parts = [
        ("head", "Summary", head::section(report)),
        ("clusters", "Clusters", clusters::section(report)),
        ("pairs", "Merge or split", pairs::section(report)),
        ("map", "Map", map::section(report)),
        ("agreement", "Agreement", agreement::section(report)),
        ("training", "Training", charts::section(report)),
        ("labels", "Labels", scores::section(report)),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|(_, _, content)| !content.is_empty()).collect();
    let links: String = parts.iter().map(|(id, name, _)| format!("<a href=\"#{id}\">{name}</a>")).collect();
    let sections: String = parts
        .iter()
        .map(|(id, name, content)| format!("<section id=\"{id}\" aria-label=\"{name}\">{content}</section>\n"))
        .collect();
    let about = &report.about;
    let (title, version) = (escape(&about.dataset), escape(&about.version));
    format!(
        r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="color-scheme" content="light dark">
<title>{title}: clusters</title><style>{STYLE}</style></head><body>
<header class="top"><h1>{title}</h1><nav aria-label="Parts of the report">{links}</nav></header>
<main>{sections}</main>
<footer>Written by dtkc-train {version}. Clusters are numbered as in the exported model; everything on this page is in this file.</footer>
{charts}{map}<script>{CHARTS}</script><script>{MAP}</script><script>{SCRIPT}</script></body></html>
"#,
        charts = embedded("charts", &charts::facts(report)),
        map = map::data(report),
    )
}
