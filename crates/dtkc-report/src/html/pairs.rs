//! Clusters that may be one, and clusters that may be two.

use super::text::{chip, color, strip};
use crate::model::{Alike, Mixed, Report};
use crate::words::{gap, gap_text, merge, percent, split};

pub fn section(report: &Report) -> String {
    let k = report.about.clusters;
    let mut out = String::new();
    if !report.alike.is_empty() {
        let cards: String = report.alike.iter().map(|pair| alike(pair, k)).collect();
        out += &format!(
            "<div class=\"card\"><h2>May be one</h2><p class=\"hint\">Pairs of clusters next to each other. The drawing counts items on the way from the \
             middle of one to the middle of the other; with nothing between two hills they are two things, with one hill they may be one thing that was cut. \
             The pictures are those next to the other cluster. If they look alike: fewer clusters, or make one of them in the model file with the command below.</p><div class=\"pairs\">{cards}</div></div>\n"
        );
    }
    if !report.mixed.is_empty() {
        let cards: String = report.mixed.iter().map(|cluster| mixed(cluster, k)).collect();
        out += &format!(
            "<div class=\"card\"><h2>May be two</h2><p class=\"hint\">Clusters that fall into two when they are cut where they are widest. If the halves show \
             different things: more clusters, or cut this one in the model file with the command below.</p><div class=\"pairs\">{cards}</div></div>\n"
        );
    }
    out
}

fn alike(pair: &Alike, k: usize) -> String {
    let [a, b] = pair.clusters;
    let torn = if pair.torn >= 0.001 {
        format!(" {} of their items could be in either.", percent(pair.torn))
    } else {
        String::new()
    };
    format!(
        "<article><h3>{} and {}</h3><p>Gap {}: {}.{torn}</p>{}{}{}<p><code>{}</code></p></article>",
        chip(a, k),
        chip(b, k),
        gap_text(pair.gap),
        gap(pair.gap),
        bars(&pair.bars, [&color(a, k), &color(b, k)]),
        strip(&format!("in {a}, towards {b}"), "", &pair.shots[0]),
        strip(&format!("in {b}, towards {a}"), "", &pair.shots[1]),
        merge([a, b])
    )
}

fn mixed(cluster: &Mixed, k: usize) -> String {
    format!(
        "<article><h3>{}</h3><p>Gap {} between its halves: {}. The smaller half has {} of its items.</p>{}{}{}<p><code>{}</code></p></article>",
        chip(cluster.cluster, k),
        gap_text(cluster.gap),
        gap(cluster.gap),
        percent(cluster.smaller),
        bars(&cluster.bars, [&color(cluster.cluster, k), "var(--soft)"]),
        strip("one half", "", &cluster.shots[0]),
        strip("the other half", "", &cluster.shots[1]),
        split(cluster.cluster)
    )
}

/// Two histograms over each other.
fn bars(bars: &[Vec<u32>; 2], colors: [&str; 2]) -> String {
    let (count, height, step) = (bars[0].len().max(bars[1].len()), 48.0, 10.0);
    let most = bars.iter().flatten().copied().max().unwrap_or(0).max(1);
    let mut out = format!(
        "<svg class=\"hills\" viewBox=\"0 0 {} {height}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Items between the middles\">",
        count as f64 * step
    );
    for (bars, color) in bars.iter().zip(colors) {
        for (at, &bar) in bars.iter().enumerate().filter(|(_, bar)| **bar > 0) {
            let tall = (f64::from(bar) / f64::from(most) * height).max(0.8);
            out += &format!(
                "<rect x=\"{}\" y=\"{:.1}\" width=\"{}\" height=\"{tall:.1}\" style=\"fill:{color}\"/>",
                at as f64 * step,
                height - tall,
                step - 1.0
            );
        }
    }
    out + "</svg>"
}
