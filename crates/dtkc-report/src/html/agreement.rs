//! How far restarts agree.

use dtkc_human::count;

use crate::model::{Agreement, Consensus, Report};
use crate::words;

pub fn section(report: &Report) -> String {
    let Some(agreement) = &report.agreement else { return String::new() };
    let kind = &report.about.kind;
    let covered = match agreement.items == agreement.of {
        true => format!("all {} {kind} of the training set", count(agreement.of as u64)),
        false => format!(
            "{} of the {} {kind} of the training set, spread evenly",
            count(agreement.items as u64),
            count(agreement.of as u64)
        ),
    };
    let verdict = agreement.mean.map_or("", words::agreement);
    let pruned = match agreement.pruned.is_empty() {
        true => "",
        false => {
            " Restarts in brackets were dropped early and had no chance to find the same; they do not count for the mean."
        }
    };
    format!(
        "<div class=\"card\"><h2>How far restarts agree</h2><p class=\"hint\">{verdict} Each number compares two restarts over {covered} \
         (normalised mutual information): 1 means the same clusters under other numbers, 0 means nothing in common.{pruned}</p>\
         <div class=\"two\"><div class=\"wide\">{}</div>{}</div></div>",
        matrix(agreement, report.about.restart),
        agreement.consensus.as_ref().map_or(String::new(), |consensus| histogram(consensus, kind))
    )
}

fn matrix(agreement: &Agreement, chosen: usize) -> String {
    let name = |restart: &usize| match agreement.pruned.contains(restart) {
        true => format!("({restart})"),
        false if *restart == chosen => format!("{restart} ★"),
        false => restart.to_string(),
    };
    let names: String = agreement.restarts.iter().map(|restart| format!("<th>{}", name(restart))).collect();
    let row = |(restart, values): (&usize, &Vec<f64>)| {
        let cells: String = values.iter().map(|value| format!("<td style=\"--v:{value:.3}\">{value:.2}")).collect();
        format!("<tr><th>{}{cells}</tr>", name(restart))
    };
    let rows: String = agreement.restarts.iter().zip(&agreement.nmi).map(row).collect();
    format!("<table class=\"heat\"><thead><tr><th>restart{names}</tr></thead><tbody>{rows}</tbody></table>")
}

fn histogram(consensus: &Consensus, kind: &str) -> String {
    let total: u64 = consensus.counts.iter().sum();
    let bar = |(agreeing, &items): (usize, &u64)| {
        let share = items as f64 / total.max(1) as f64;
        format!(
            "<div class=\"bar\"><span>{agreeing} of {} agree</span><i style=\"width:{:.1}%\"></i><b>{} ({})</b></div>",
            consensus.others,
            share * 60.0,
            count(items),
            words::percent(share)
        )
    };
    let bars: String = consensus.counts.iter().enumerate().rev().map(bar).collect();
    format!(
        "<div><h3>Consensus about single {kind}</h3><p class=\"hint\">How many of the other restarts put an item where the chosen one does. Items that \
         all agree on can be relied on; look at the rest before you use them. The map can be coloured by it.</p><div class=\"bars\">{bars}</div></div>"
    )
}
