//! What measures mean, in plain words, and numbers as text.

use crate::model::About;

/// What a measure over the epochs tells; nothing for one that nobody described.
pub fn measure(name: &str, stage: Option<&str>) -> &'static str {
    if stage.is_some() && name == "loss" {
        return "What the network is trained to make small before it clusters anything.";
    }
    match name {
        "loss" => "What training makes small. It should fall and then stay level.",
        "separation" => "Items of different clusters should be far apart, those of one close together.",
        "simplex" => "Every item should belong to one cluster and not to several in parts.",
        "orthogonality" => "Different items should not all belong to the same cluster.",
        "consistency" => "Two views of one item should get the same cluster.",
        "mutual_information" => "The cluster of one view should tell that of the other: lower is more told.",
        "self_label" => "Items that the network is sure of teach it about their other views.",
        "clustering" => "Items should be clearly in their cluster, close to its middle.",
        "overclustering" => "The same for fine clusters, of which there are several for each cluster.",
        "balance" => "Clusters should not all be one.",
        "certainty" => "Items should be clearly in a cluster.",
        "given" => "Learns the clusters that the graph of neighbours gave.",
        "reconstruction" => "How far items are from what the network can draw from their code.",
        "used clusters" => "Clusters that have any item. Fewer than asked for means that some are empty.",
        "learning rate" => "How large the steps of training are.",
        "entropy" => "How unsure the network is: 0 where every item is certain, 1 where none is.",
        "largest share" => "Part of all items in the largest cluster.",
        "ACC" => "Items whose cluster is matched with their class.",
        "NMI" => "How much clusters tell about classes: 1 all, 0 nothing.",
        name if name.starts_with("contrast") => {
            "Two views of one item should look alike inside the network, different items should not."
        }
        name if name.starts_with("companion") => "The same as the clusters, seen in a layer inside the network.",
        _ => "A part of the loss.",
    }
}

/// A gap below this is none: one heap that was cut in two has 2.65, an even band 3.46.
pub const NO_GAP: f64 = 3.0;
/// A gap above this is clear.
pub const CLEAR_GAP: f64 = 4.5;

/// What a run is about that has no clusters yet.
pub fn without_clusters(about: &About) -> String {
    format!(
        "{} {} ({}), to be sorted into {} by {} ({}): there are none yet, only what training has written down so far.",
        dtkc_human::count(about.items as u64),
        about.kind,
        about.shape,
        dtkc_human::many(about.clusters, "cluster"),
        about.method,
        about.preset
    )
}

/// What a gap between two groups means.
pub fn gap(width: f64) -> &'static str {
    match width {
        width if width < NO_GAP => "no gap between them",
        width if width < CLEAR_GAP => "hardly a gap between them",
        _ => "a clear gap between them",
    }
}

/// The command that makes one cluster of two in a run's model file.
pub fn merge([a, b]: [usize; 2]) -> String {
    format!("dtkc-train clusters RUN/model.onnx --merge {a},{b}")
}

/// The command that makes two clusters of one there.
pub fn split(cluster: usize) -> String {
    format!("dtkc-train clusters RUN/model.onnx --split {cluster} --data DATA.h5")
}

/// A part of a whole as percent. 99.96 % must not read as all.
pub fn percent(share: f64) -> String {
    let percent = if share < 1.0 { (share * 100.0).min(99.9) } else { 100.0 };
    format!("{percent:.1} %")
}

/// A number with the digits that matter.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".into(),
        size if size >= 10_000.0 => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

/// A gap as text: beyond a hundred spreads the number says no more.
pub fn gap_text(width: f64) -> String {
    if width > 99.0 { "over 99".into() } else { format!("{width:.1}") }
}

/// How far restarts agree, from their mean NMI.
pub fn agreement(mean: f64) -> &'static str {
    match mean {
        mean if mean >= 0.9 => {
            "Restarts found nearly the same clusters: they are in the data and no accident of the beginning."
        }
        mean if mean >= 0.7 => {
            "Restarts agree about most items: the core of the clusters can be relied on, their edges less."
        }
        mean if mean >= 0.5 => "Restarts agree in part: look at which clusters they share before you rely on them.",
        _ => "Restarts found different clusters: what is shown is one way among several to sort these items.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_matter() {
        assert_eq!([0.0, 1234.5, 0.25, 0.000_012, -3.333].map(number), ["0", "1234", "0.2500", "1.2e-5", "-3.33"]);
        assert_eq!([0.9996, 1.0, 0.123].map(percent), ["99.9 %", "100.0 %", "12.3 %"]);
        assert_eq!((gap_text(2.649), gap_text(1e6)), ("2.6".into(), "over 99".into()));
    }
}
