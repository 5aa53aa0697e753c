//! The first part: what was found, what to doubt, and what to try.

use dtkc_human::{count, many};

use super::text::{escape, sentence};
use crate::model::{About, Doubt, Report, Restart};
use crate::words::{agreement, number, percent, without_clusters};

pub fn section(report: &Report) -> String {
    let about = &report.about;
    let notes: String =
        report.notes.iter().map(|note| format!("<p class=\"note\">{}</p>", escape(&sentence(note)))).collect();
    if report.clusters.is_empty() {
        let lead = escape(&without_clusters(about));
        return format!("<div class=\"card\"><p class=\"lead\">{lead}</p>{notes}</div>\n{}", restarts(report));
    }
    format!(
        "<div class=\"card\"><p class=\"lead\">{}</p>{notes}<dl class=\"facts\">{}</dl></div>\n{}{}",
        lead(about),
        facts(report),
        doubts(&report.doubts),
        restarts(report)
    )
}

fn lead(about: &About) -> String {
    let items = count(about.items as u64);
    let number = about.number.as_ref().map_or(String::new(), |text| format!(" {}", escape(text)));
    format!(
        "{items} {} ({}) in <b>{}</b>, found by <b>{}</b> ({}) without looking at any label.{number} {}",
        escape(&about.kind),
        escape(&about.shape),
        many(about.clusters, "cluster"),
        escape(&about.method),
        escape(&about.preset),
        escape(&about.why)
    )
}

fn facts(report: &Report) -> String {
    let about = &report.about;
    let mut facts = vec![
        (about.kind.clone(), count(about.items as u64)),
        ("clusters in use".into(), format!("{} of {}", about.used, about.clusters)),
        ("mean confidence".into(), percent(about.confidence)),
    ];
    if let Some(mean) = report.agreement.as_ref().and_then(|agreement| agreement.mean) {
        facts.push(("agreement of restarts".into(), format!("{mean:.2}")));
    }
    if let Some(scores) = &report.scores {
        facts.push(("ACC (labels, not used)".into(), format!("{:.3}", scores.acc)));
        facts.push(("NMI (labels, not used)".into(), format!("{:.3}", scores.nmi)));
    }
    facts.iter().map(|(name, value)| format!("<div><dt>{}</dt><dd>{value}</dd></div>", escape(name))).collect()
}

fn doubts(doubts: &[Doubt]) -> String {
    if doubts.is_empty() {
        return "<div class=\"card calm\"><h2>Warnings</h2><p>None: no cluster is empty or far too large, items are clearly in their \
                clusters, and training had settled. Look at the pictures all the same: only you know what belongs together.</p></div>\n"
            .into();
    }
    let item = |doubt: &Doubt| {
        format!(
            "<li><b>{}.</b> <span>What to try: {}.</span></li>",
            escape(&sentence(&doubt.sign)),
            escape(doubt.remedy.strip_prefix("try ").unwrap_or(&doubt.remedy))
        )
    };
    let items: String = doubts.iter().map(item).collect();
    format!("<div class=\"card doubts\"><h2>Warnings</h2><ul>{items}</ul></div>\n")
}

fn restarts(report: &Report) -> String {
    if report.restarts.is_empty() {
        return String::new();
    }
    let labels = report.restarts.iter().any(|restart| restart.acc.is_some());
    let rows: String = report.restarts.iter().map(|restart| row(restart, labels)).collect();
    let scores = if labels { "<th>ACC*<th>NMI*" } else { "" };
    let remark =
        if labels { "<p class=\"hint\">* by labels; shown here and never used to train or to choose.</p>" } else { "" };
    let verdict =
        report.agreement.as_ref().and_then(|a| a.mean).map_or(String::new(), |mean| format!(" {}", agreement(mean)));
    format!(
        "<div class=\"card\"><h2>Restarts</h2><p class=\"hint\">Training begins from chance, so it is done several times.{verdict}</p>\
         <div class=\"wide\"><table><thead><tr><th>restart<th>epochs<th>kept<th>loss<th>clusters in use{scores}<th>ended</tr></thead>\
         <tbody>{rows}</tbody></table></div>{remark}</div>\n"
    )
}

fn row(restart: &Restart, labels: bool) -> String {
    let figure = |value: Option<f64>| value.map_or("–".into(), |v| format!("{v:.3}"));
    let whole = |value: Option<usize>| value.map_or("–".into(), |v| v.to_string());
    let scores = if labels { format!("<td>{}<td>{}", figure(restart.acc), figure(restart.nmi)) } else { String::new() };
    let (class, mark) = if restart.chosen { (" class=\"chosen\"", " ★") } else { ("", "") };
    format!(
        "<tr{class}><th>{}{mark}<td>{}<td>{}<td>{}<td>{}{scores}<td>{}</tr>",
        restart.restart,
        restart.epochs,
        whole(restart.kept),
        restart.loss.map_or("–".into(), number),
        whole(restart.used),
        escape(&restart.ended.text)
    )
}
