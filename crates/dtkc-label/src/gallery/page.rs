//! The page itself.

use std::collections::BTreeMap;
use std::fmt::Write;

use dtkc_item::ItemKind;

use super::Shown;
use super::copies::{CopyPick, CopyPicks};
use super::picks::{Pick, Picks};
use super::thumbnail::Thumbnail;
use crate::tally::{ClusterSummary, Summary};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What stands at the top of the page.
#[derive(Debug, Clone)]
pub struct About {
    /// The model's name.
    pub model: String,
    /// The inputs, as given.
    pub inputs: Vec<String>,
    /// The clusters' names, by id.
    pub names: Vec<String>,
    /// Pictures below it are marked.
    pub min_confidence: Option<f32>,
    /// What is shown.
    pub kind: ItemKind,
}

/// The whole page.
pub fn render(shown: &Shown<'_>, thumbnails: &BTreeMap<u64, Thumbnail>, about: &About) -> String {
    let Shown { summary, picks, copies } = shown;
    let largest = summary.clusters.iter().map(|c| c.images).max().unwrap_or(0);
    let mut clusters = String::new();
    for cluster in &summary.clusters {
        section(&mut clusters, cluster, largest, picks, thumbnails, about);
    }
    // The content is put in last: a name that looks like a mark must not be replaced.
    let parts = [
        ("style", STYLE.to_owned()),
        ("script", SCRIPT.to_owned()),
        ("model", escape(&about.model)),
        ("inputs", escape(&inputs_line(&about.inputs))),
        ("facts", facts(summary, about.kind, copies.as_ref())),
        ("clusters", clusters),
        ("unlike", section_of_unlike(summary, picks, thumbnails, about)),
        ("copies", copies.as_ref().map_or(String::new(), |copies| section_of_copies(copies, thumbnails))),
    ];
    fill(TEMPLATE, &parts)
}

/// Replaces `{{name}}` once each, from left to right, without looking at what was put in.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out += before;
        let Some((name, behind)) = after.split_once("}}") else { break };
        out += parts.iter().find(|(key, _)| *key == name).map_or("", |(_, text)| text.as_str());
        rest = behind;
    }
    out + rest
}

fn inputs_line(inputs: &[String]) -> String {
    let shown: Vec<&str> = inputs.iter().take(3).map(|i| if i == "-" { "a list of paths" } else { i }).collect();
    let more = inputs.len().saturating_sub(3);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

fn facts(summary: &Summary, kind: ItemKind, copies: Option<&CopyPicks>) -> String {
    let used = summary.clusters.iter().filter(|c| c.images > 0).count();
    let mut facts = vec![
        (kind.name(), dtkc_human::count(summary.images)),
        ("clusters in use", format!("{used} of {}", summary.clusters.len())),
    ];
    if let Some(unsure) = &summary.unsure {
        facts.push(("unsure", dtkc_human::count(unsure.images)));
    }
    if let Some(outliers) = &summary.outliers {
        facts.push(("unlike the training set", dtkc_human::count(outliers.images)));
    }
    if summary.failed > 0 {
        facts.push(("failed", dtkc_human::count(summary.failed)));
    }
    if let Some(copies) = copies {
        facts.push(("near-duplicates", dtkc_human::count(copies.surplus as u64)));
    }
    if let Some(scores) = &summary.scores {
        facts.push(("ACC", format!("{:.3}", scores.acc)));
        facts.push(("NMI", format!("{:.3}", scores.nmi)));
        facts.push(("ARI", format!("{:.3}", scores.ari)));
    }
    facts.iter().map(|(name, value)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>")).collect()
}

fn section(
    out: &mut String,
    cluster: &ClusterSummary,
    largest: u64,
    picks: &Picks,
    thumbnails: &BTreeMap<u64, Thumbnail>,
    about: &About,
) {
    let width = if largest > 0 { cluster.images as f64 / largest as f64 * 100.0 } else { 0.0 };
    let mean = cluster.mean_confidence.map_or("–".to_owned(), percent);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        r#"<section class="cluster" data-cluster="{id}" data-images="{images}" data-confidence="{confidence}">
<header><h2><span class="id">{id}</span> {name}</h2><p class="numbers"><b>{count}</b> {kind} · {share} · mean confidence {mean}{mostly}</p>
<div class="size" aria-hidden="true"><i style="width:{width:.2}%"></i></div></header>
"#,
        kind = about.kind,
        id = cluster.cluster,
        images = cluster.images,
        confidence = cluster.mean_confidence.unwrap_or(0.0),
        name = escape(&cluster.name),
        count = dtkc_human::count(cluster.images),
        share = percent(cluster.share),
        mostly = cluster.mostly.as_ref().map_or(String::new(), |m| format!(
            " · mostly <b>{}</b> ({})",
            escape(&m.class),
            percent(m.share)
        )),
    );
    let least: Vec<&Pick> = picks.least(cluster.cluster).collect();
    let most: Vec<&Pick> = picks.most(cluster.cluster).iter().collect();
    if most.is_empty() {
        let one = if about.kind == ItemKind::Images { "image" } else { "sequence" };
        let _ = writeln!(out, "<p class=\"empty\">No {one} fell into this cluster.</p>");
    }
    let marks = |pick: &Pick| mark(pick, picks, about);
    strip(out, "most certain", &most, thumbnails, about, &marks);
    strip(out, "least certain", &least, thumbnails, about, &marks);
    *out += "</section>\n";
}

/// Percent and words below a picture.
fn mark(pick: &Pick, picks: &Picks, about: &About) -> String {
    let unsure = about.min_confidence.is_some_and(|minimum| pick.confidence < minimum);
    let (unsure, unlike) =
        (if unsure { " <i>unsure</i>" } else { "" }, if picks.is_unlike(pick) { " <i>unlike</i>" } else { "" });
    format!("{}{unsure}{unlike}", percent(f64::from(pick.confidence)))
}

/// The images that are unlike anything in the training set; nothing where the model does not tell.
fn section_of_unlike(summary: &Summary, picks: &Picks, thumbnails: &BTreeMap<u64, Thumbnail>, about: &About) -> String {
    let Some(outliers) = summary.outliers.as_ref().filter(|outliers| outliers.images > 0) else { return String::new() };
    let (all, shown) = (outliers.images, picks.unlike().len());
    let part = if (shown as u64) < all { format!("; the {shown} farthest are shown") } else { String::new() };
    let mut out = format!(
        "<section class=\"copies\" id=\"unlike\"><div class=\"cluster\"><h2>Unlike anything in the training set</h2><p \
         class=\"numbers\"><b>{}</b> {} ({}){part}, the farthest first. Their clusters may mean nothing.</p>\n",
        dtkc_human::count(all),
        if all == 1 { about.kind.name().trim_end_matches('s') } else { about.kind.name() },
        percent(outliers.share),
    );
    let cluster = |pick: &Pick| escape(about.names.get(pick.cluster as usize).map_or("", String::as_str));
    let unlike: Vec<&Pick> = picks.unlike().iter().collect();
    strip(&mut out, "", &unlike, thumbnails, about, &|pick| {
        format!("{:.4} <i>{}</i>", pick.outlier.unwrap_or_default(), cluster(pick))
    });
    out + "</div></section>\n"
}

fn strip(
    out: &mut String,
    title: &str,
    picks: &[&Pick],
    thumbnails: &BTreeMap<u64, Thumbnail>,
    about: &About,
    caption: &dyn Fn(&Pick) -> String,
) {
    if picks.is_empty() {
        return;
    }
    if !title.is_empty() {
        let _ = write!(out, "<h3>{title}</h3>");
    }
    *out += "<ul class=\"strip\">";
    for pick in picks {
        let second = about.names.get(pick.second as usize).map_or("", String::as_str);
        let path = escape(&pick.path);
        let picture = picture(thumbnails.get(&pick.index), &path);
        let _ = write!(
            out,
            "<li><figure title=\"{path}&#10;second: {}\">{picture}<figcaption>{}</figcaption></figure></li>",
            escape(second),
            caption(pick),
        );
    }
    *out += "</ul>\n";
}

/// An image; `path` is escaped already.
fn picture(thumbnail: Option<&Thumbnail>, path: &str) -> String {
    match thumbnail {
        Some(thumbnail) => {
            let class = if thumbnail.tiny { " class=\"tiny\"" } else { "" };
            format!("<img{class} loading=\"lazy\" alt=\"{path}\" src=\"{}\">", thumbnail.source)
        }
        None => "<span class=\"gone\">not readable</span>".to_owned(),
    }
}

fn section_of_copies(copies: &CopyPicks, thumbnails: &BTreeMap<u64, Thumbnail>) -> String {
    let count = |n: usize| dtkc_human::count(n as u64);
    let said = match (copies.total, copies.groups.len()) {
        (0, _) => "No image is a near-duplicate of another.".to_owned(),
        (total, shown) => format!(
            "<b>{}</b> could go, of <b>{}</b> groups{}. The image to keep comes first: the largest. The number is how many of 256 \
             bits of what it looks like differ from that.",
            count(copies.surplus),
            count(total),
            if shown < total { format!("; the {shown} largest are shown") } else { String::new() },
        ),
    };
    let mut out = format!(
        "<section class=\"copies\" id=\"copies\"><div class=\"cluster\"><h2>Near-duplicates</h2><p class=\"numbers\">{said}</p>\n"
    );
    for group in &copies.groups {
        out += "<ul class=\"strip\">";
        group.images.iter().for_each(|image| copy(&mut out, image, thumbnails));
        if group.more > 0 {
            let _ = write!(out, "<li class=\"rest\">and {} more</li>", count(group.more));
        }
        out += "</ul>\n";
    }
    out + "</div></section>\n"
}

fn copy(out: &mut String, image: &CopyPick, thumbnails: &BTreeMap<u64, Thumbnail>) {
    let path = escape(&image.path);
    let (class, about) = match image.distance {
        None => (" class=\"keep\"", "keep".to_owned()),
        Some(distance) => ("", distance.to_string()),
    };
    let _ = write!(
        out,
        "<li><figure{class} title=\"{path}&#10;{}\">{}<figcaption>{about} <i>{}×{}</i></figcaption></figure></li>",
        escape(&image.cluster),
        picture(thumbnails.get(&image.index), &path),
        image.size.0,
        image.size.1,
    );
}

fn percent(share: f64) -> String {
    // 99.96 % must not read as certain.
    let percent = if share < 1.0 { (share * 100.0).min(99.9) } else { 100.0 };
    format!("{percent:.1} %")
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::copies::CopyGroup;
    use crate::row::{Label, Row};
    use crate::tally::OutlierSummary;

    #[test]
    fn the_page_escapes_what_others_named_and_refers_to_nothing_outside() {
        let cluster = ClusterSummary {
            cluster: 0,
            name: "<script>alert(1)</script> {{model}}".into(),
            images: 1,
            share: 1.0,
            mean_confidence: Some(0.9996),
            mostly: None,
        };
        let summary = Summary {
            images: 1,
            labelled: 1,
            failed: 0,
            failures: BTreeMap::new(),
            clusters: vec![cluster],
            unsure: None,
            outliers: Some(OutlierSummary { above: 0.99, images: 9, share: 0.5 }),
            scores: None,
        };
        let mut picks = Picks::new(1, 3).above(Some(0.99));
        let label = Label { cluster: 0, confidence: 0.9996, outlier: Some(0.995), ..Label::default() };
        picks.add(&Row { index: 5, path: "a\"b'.png".into(), truth: None, outcome: Ok(label) });
        let thumbnail = Thumbnail { source: "data:image/png;base64,AA==".into(), tiny: true };
        let about = About {
            model: "digits".into(),
            inputs: vec!["photos".into()],
            names: vec!["x".into()],
            min_confidence: None,
            kind: ItemKind::Images,
        };
        let pick = |index, path: &str, distance| CopyPick {
            index,
            path: path.into(),
            cluster: "<b>".into(),
            size: (8, 9),
            distance,
        };
        let images = vec![pick(5, "<i>kept</i>", None), pick(6, "copy", Some(12))];
        let copies = CopyPicks { groups: vec![CopyGroup { images, more: 3 }], total: 7, surplus: 40 };
        let shown = Shown { summary: &summary, picks: &picks, copies: Some(copies) };
        let html = render(&shown, &[(5, thumbnail)].into(), &about);
        assert!(html.contains("&lt;i&gt;kept&lt;/i&gt;&#10;&lt;b&gt;") && html.contains("12 <i>8×9</i>"), "{html}");
        assert!(html.contains("<b>40</b> could go, of <b>7</b> groups; the 1 largest are shown"), "{html}");
        assert!(html.contains("and 3 more"), "{html}");
        assert!(html.contains("<b>9</b> images (50.0 %); the 1 farthest are shown"), "{html}");
        assert!(html.contains("0.9950 <i>x</i>") && html.contains("99.9 % <i>unlike</i>"), "{html}");
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt; {{model}}"), "{html}");
        assert!(html.contains("a&quot;b&#39;.png") && html.contains("99.9 %"), "{html}");
        assert!(html.contains("src=\"data:image/png;base64,AA==\""));
        for outside in ["http:", "https:", "url(", "@import", "<link", "src=\"/", "href"] {
            assert!(!html.contains(outside), "{outside} in the page");
        }
    }
}
