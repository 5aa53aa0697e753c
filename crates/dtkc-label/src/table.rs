//! The table at the end of a run.

use dtkc_item::ItemKind;

use crate::tally::{ClusterSummary, Summary};

/// Beyond this many clusters only the largest are shown.
const MAX_ROWS: usize = 40;

/// The summary as people read it.
pub fn render(summary: &Summary, kind: ItemKind) -> String {
    let with_truth = summary.clusters.iter().any(|c| c.mostly.is_some());
    let mut rows = vec![header(with_truth, kind)];
    let shown = shown(&summary.clusters);
    rows.extend(shown.iter().map(|cluster| cluster_row(cluster, with_truth)));
    let hidden = summary.clusters.len() - shown.len();
    if hidden > 0 {
        let images: u64 =
            summary.clusters.iter().map(|c| c.images).sum::<u64>() - shown.iter().map(|c| c.images).sum::<u64>();
        let share = if summary.labelled > 0 { images as f64 / summary.labelled as f64 } else { 0.0 };
        rows.push(vec!["".into(), format!("{hidden} smaller ones"), dtkc_human::count(images), percent(share)]);
    }
    if let Some(unsure) = &summary.unsure {
        let name = format!("unsure (below {})", unsure.below);
        rows.push(vec![
            "".into(),
            name,
            dtkc_human::count(unsure.images),
            percent(unsure.share),
            mean(unsure.mean_confidence),
        ]);
    }
    let mut text = align(&rows);
    if let Some(outliers) = summary.outliers.as_ref().filter(|outliers| outliers.images > 0) {
        let said = match outliers.images {
            1 => format!("1 {} ({}) is", kind.name().trim_end_matches('s'), percent(outliers.share)),
            more => format!("{} {kind} ({}) are", dtkc_human::count(more), percent(outliers.share)),
        };
        // Somebody who labels the training set itself would wonder.
        let own = percent(1.0 - f64::from(outliers.above));
        text += &format!("\n{said} unlike the training set; of its own {kind} {own} are\n");
    }
    if let Some(scores) = &summary.scores {
        let counted = dtkc_human::count(scores.counted as u64);
        text += &format!(
            "\nACC {:.4}   NMI {:.4}   ARI {:.4}   ({counted} {kind} with a known class)\n",
            scores.acc, scores.nmi, scores.ari
        );
    }
    text
}

/// The clusters in order of their id, or the largest where there are too many.
fn shown(clusters: &[ClusterSummary]) -> Vec<&ClusterSummary> {
    let mut shown: Vec<&ClusterSummary> = clusters.iter().collect();
    if shown.len() > MAX_ROWS {
        shown.sort_by_key(|c| (std::cmp::Reverse(c.images), c.cluster));
        shown.truncate(MAX_ROWS);
    }
    shown
}

fn header(with_truth: bool, kind: ItemKind) -> Vec<String> {
    let mut cells = vec!["cluster".to_owned(), "name".into(), kind.to_string(), "share".into(), "confidence".into()];
    cells.extend(with_truth.then(|| "mostly".to_owned()));
    cells
}

fn cluster_row(cluster: &ClusterSummary, with_truth: bool) -> Vec<String> {
    let mut cells = vec![
        cluster.cluster.to_string(),
        shorten(&cluster.name, 32),
        dtkc_human::count(cluster.images),
        percent(cluster.share),
        mean(cluster.mean_confidence),
    ];
    if with_truth {
        let mostly = cluster.mostly.as_ref();
        cells.push(mostly.map_or("-".into(), |m| format!("{} ({})", shorten(&m.class, 24), percent(m.share))));
    }
    cells
}

fn shorten(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn mean(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{v:.3}"))
}

/// Columns side by side: names to the left, numbers to the right.
fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(c, cell)| {
            let pad = " ".repeat(widths[c] - cell.chars().count());
            if matches!(c, 1 | 5) { format!("{cell}{pad}") } else { format!("{pad}{cell}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(cluster: usize, name: &str, images: u64) -> ClusterSummary {
        let mean_confidence = (images > 0).then_some(0.98765);
        ClusterSummary {
            cluster,
            name: name.into(),
            images,
            share: images as f64 / 1300.0,
            mean_confidence,
            mostly: None,
        }
    }

    fn summary(clusters: Vec<ClusterSummary>) -> Summary {
        let failures = Default::default();
        Summary {
            images: 1300,
            labelled: 1300,
            failed: 0,
            failures,
            clusters,
            unsure: None,
            outliers: None,
            scores: None,
        }
    }

    #[test]
    fn columns_line_up() {
        let text = render(
            &summary(vec![cluster(0, "cats", 1234), cluster(1, "a name", 66), cluster(2, "", 0)]),
            ItemKind::Images,
        );
        let expected = "\
cluster  name    images   share  confidence
      0  cats     1,234  94.9 %       0.988
      1  a name      66   5.1 %       0.988
      2               0   0.0 %           -
";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_unlike_the_training_set_has_a_line() {
        let line = |images: u64| {
            let outliers = Some(crate::tally::OutlierSummary { above: 0.99, images, share: 0.1 });
            let text = render(&Summary { outliers, ..summary(vec![cluster(0, "cats", 1300)]) }, ItemKind::Images);
            text.lines().nth(3).map(str::to_owned)
        };
        assert_eq!(
            line(1037).as_deref(),
            Some("1,037 images (10.0 %) are unlike the training set; of its own images 1.0 % are")
        );
        assert_eq!(
            line(1).as_deref(),
            Some("1 image (10.0 %) is unlike the training set; of its own images 1.0 % are")
        );
        assert_eq!(line(0), None);
    }

    #[test]
    fn many_clusters_are_cut_to_the_largest() {
        let text = render(&summary((0..100).map(|i| cluster(i, "n", i as u64)).collect()), ItemKind::Images);
        assert_eq!(text.lines().count(), 42);
        assert!(text.lines().nth(1).is_some_and(|line| line.contains("99")), "{text}");
        assert!(text.contains("60 smaller ones"), "{text}");
    }
}
