//! The three forms of a report.
#![allow(clippy::unwrap_used)]

mod common;

use common::report;
use dtkc_report::{Picture, Report};
use serde_json::Value;

#[test]
fn a_page_refers_to_nothing_outside() {
    let mut report = report(50, 3);
    report.about.dataset = "</title><script>alert(1)</script>".into();
    report.clusters[0].certain[0].name = Some("\"><img src=x onerror=alert(1)>".into());
    report.map.as_mut().unwrap().names[0] = "</script><script>alert(2)</script>".into();
    let html = dtkc_report::html(&report);
    assert!(!html.contains("<script>alert") && !html.contains("<img src=x"));
    for outside in ["http:", "https:", "url(", "@import", "<link", "src=\"/", "//cdn"] {
        assert!(!html.contains(outside), "{outside} in the page");
    }
    assert!(html.contains("What to try: look into it"));
    assert!(!html.contains("what decides"), "importance is absent until somebody fills it in");
}

#[test]
fn importance_has_its_place() {
    let mut report = report(50, 3);
    report.clusters[1].importance = vec![Picture::sharp(&common::shape(1, 1)).unwrap()];
    let html = dtkc_report::html(&report);
    assert_eq!(html.matches("what decides").count(), 1);
}

#[test]
fn markdown_has_the_facts_in_tables_that_hold() {
    let mut report = report(600, 3);
    report.clusters[0].mostly.as_mut().unwrap().class = "a|b\nc".into();
    let text = dtkc_report::markdown(&report);
    for part in [
        "# drawn \\<shapes>",
        "## Warnings",
        "| 1 (chosen) | 40 | 11 |",
        "## May be one\n\n- 0 and 1: gap 2.9, no gap",
        "--merge 0,1`)",
        "ACC 0.970",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    assert!(text.contains("a\\|b c"), "{text}");
    assert!(!text.contains("base64"));
    let (alike, doubts) = (Vec::new(), Vec::new());
    let calm = dtkc_report::markdown(&Report { alike, doubts, mixed: Vec::new(), ..report });
    assert!(calm.contains("None.") && !calm.contains("## May be"), "{calm}");
    let empty = dtkc_report::markdown(&Report::default());
    assert!(empty.contains("there are none yet") && !empty.contains("##"), "{empty}");
}

#[test]
fn json_has_the_facts_and_no_pictures() {
    let text = dtkc_report::json(&report(600, 3)).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["about"]["clusters"], 3);
    assert_eq!(value["clusters"][2]["certain"][0]["name"], "shapes/00002.png");
    assert_eq!(value["agreement"]["nmi"][0][1], 0.91);
    assert_eq!(value["scores"]["confusion"]["counts"][0][0], 199);
    assert!(value.get("map").is_none() && !text.contains("picture"));
}
