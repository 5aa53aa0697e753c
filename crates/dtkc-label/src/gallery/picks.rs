//! The most and least certain images of each cluster, remembered while rows go by.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::row::{Label, Row};

/// One image worth showing.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    /// Its position in the input.
    pub index: u64,
    /// Where it came from.
    pub path: String,
    /// Its probability.
    pub confidence: f32,
    /// The second most probable cluster.
    pub second: u32,
    /// Its cluster.
    pub cluster: u32,
    /// How far it is from everything in the training set, where the model tells.
    pub outlier: Option<f32>,
}

/// The picks of all clusters. At most `2 * each` per cluster, and four times `each` that are unlike anything in the training set, are
/// held, however many rows go by.
#[derive(Debug, Clone)]
pub struct Picks {
    each: usize,
    clusters: Vec<Extremes>,
    threshold: Option<f32>,
    unlike: Vec<Pick>,
}

#[derive(Debug, Clone, Default)]
struct Extremes {
    most: Vec<Pick>,
    least: Vec<Pick>,
}

impl Picks {
    /// Nothing picked yet; `each` images of each kind and cluster will be.
    pub fn new(clusters: usize, each: usize) -> Self {
        Self { each, clusters: vec![Extremes::default(); clusters], threshold: None, unlike: Vec::new() }
    }

    /// The same, which also picks the images that are farthest above a model's threshold.
    #[must_use]
    pub fn above(self, threshold: Option<f32>) -> Self {
        Self { threshold, ..self }
    }

    /// Looks at one row.
    pub fn add(&mut self, row: &Row) {
        let Ok(label) = &row.outcome else { return };
        let Some(cluster) = self.clusters.get_mut(label.cluster as usize) else { return };
        let &Label { cluster: id, confidence, second, outlier, .. } = label;
        let pick = || Pick { index: row.index, path: row.path.clone(), confidence, second, cluster: id, outlier };
        insert(&mut cluster.most, self.each, |other| other.confidence.total_cmp(&label.confidence).reverse(), pick);
        insert(&mut cluster.least, self.each, |other| other.confidence.total_cmp(&label.confidence), pick);
        if let (Some(threshold), Some(value)) = (self.threshold, outlier)
            && value > threshold
        {
            let order = |other: &Pick| other.outlier.unwrap_or(0.0).total_cmp(&value).reverse();
            insert(&mut self.unlike, 4 * self.each, order, pick);
        }
    }

    /// The most certain images of a cluster, best first.
    pub fn most(&self, cluster: usize) -> &[Pick] {
        self.clusters.get(cluster).map_or(&[], |c| &c.most)
    }

    /// The least certain ones, worst first, without those that are among the most certain.
    pub fn least(&self, cluster: usize) -> impl Iterator<Item = &Pick> {
        let shown: BTreeSet<u64> = self.most(cluster).iter().map(|pick| pick.index).collect();
        let least = self.clusters.get(cluster).map_or(&[][..], |c| &c.least);
        least.iter().filter(move |pick| !shown.contains(&pick.index))
    }

    /// Images that are unlike anything in the training set, the farthest first.
    pub fn unlike(&self) -> &[Pick] {
        &self.unlike
    }

    /// Whether a picked image is one of these.
    pub fn is_unlike(&self, pick: &Pick) -> bool {
        matches!((self.threshold, pick.outlier), (Some(threshold), Some(value)) if value > threshold)
    }

    /// The positions of all picks.
    pub fn indices(&self) -> BTreeSet<u64> {
        let of_clusters = self.clusters.iter().flat_map(|c| c.most.iter().chain(&c.least));
        of_clusters.chain(&self.unlike).map(|pick| pick.index).collect()
    }
}

/// Keeps `list` sorted and short. Rows come in order, so of equals the earlier one stays in front.
fn insert(list: &mut Vec<Pick>, most: usize, order: impl Fn(&Pick) -> Ordering, pick: impl Fn() -> Pick) {
    let at = list.partition_point(|other| order(other) != Ordering::Greater);
    if at < most {
        list.insert(at, pick());
        list.truncate(most);
    }
}

#[cfg(test)]
mod tests {
    use dtkc_item::ItemError;

    use super::*;

    fn row(index: u64, cluster: u32, confidence: f32) -> Row {
        let label = Label { cluster, confidence, ..Label::default() };
        Row { index, path: String::new(), truth: None, outcome: Ok(label) }
    }

    #[test]
    fn the_extremes_stay_and_earlier_ones_win_ties() {
        let mut picks = Picks::new(2, 2);
        for (index, confidence) in [0.5, 0.9, 0.9, 0.2, 0.9, 0.2, 0.7].into_iter().enumerate() {
            picks.add(&row(index as u64, 1, confidence));
        }
        picks.add(&Row { outcome: Err(ItemError::new("empty", "")), ..row(9, 0, 0.0) });
        let most: Vec<u64> = picks.most(1).iter().map(|p| p.index).collect();
        let least: Vec<u64> = picks.least(1).map(|p| p.index).collect();
        assert_eq!((most, least), (vec![1, 2], vec![3, 5]));
        assert!(picks.most(0).is_empty());
        assert_eq!(picks.indices().into_iter().collect::<Vec<_>>(), [1, 2, 3, 5]);
    }

    #[test]
    fn the_farthest_are_picked_whatever_their_cluster() {
        let mut picks = Picks::new(3, 1).above(Some(0.5));
        for (index, value) in [0.4, 0.9, 0.6, 0.5, 0.7, 0.8, 0.9].into_iter().enumerate() {
            let mut row = row(index as u64, index as u32 % 3, 0.9);
            row.outcome.as_mut().map(|label| label.outlier = Some(value)).unwrap_or_default();
            picks.add(&row);
        }
        assert_eq!(picks.unlike().iter().map(|pick| pick.index).collect::<Vec<_>>(), [1, 6, 5, 4]);
        assert!(picks.indices().contains(&6) && picks.is_unlike(&picks.unlike()[0]));
        assert!(!picks.is_unlike(&picks.most(0)[0]), "a value of .4");
    }

    #[test]
    fn a_small_cluster_shows_no_image_twice() {
        let mut picks = Picks::new(1, 3);
        (0..4).for_each(|i| picks.add(&row(i, 0, i as f32 / 10.0)));
        let least: Vec<u64> = picks.least(0).map(|p| p.index).collect();
        assert_eq!((picks.most(0).len(), least), (3, vec![0]));
    }
}
