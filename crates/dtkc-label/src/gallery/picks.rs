//! The most and least certain images of each cluster, remembered while rows go by.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::row::Row;

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
}

/// The picks of all clusters. At most `2 * each` per cluster are held, however many rows go by.
#[derive(Debug, Clone)]
pub struct Picks {
    each: usize,
    clusters: Vec<Extremes>,
}

#[derive(Debug, Clone, Default)]
struct Extremes {
    most: Vec<Pick>,
    least: Vec<Pick>,
}

impl Picks {
    /// Nothing picked yet; `each` images of each kind and cluster will be.
    pub fn new(clusters: usize, each: usize) -> Self {
        Self { each, clusters: vec![Extremes::default(); clusters] }
    }

    /// Looks at one row.
    pub fn add(&mut self, row: &Row) {
        let Ok(label) = &row.outcome else { return };
        let Some(cluster) = self.clusters.get_mut(label.cluster as usize) else { return };
        let pick =
            || Pick { index: row.index, path: row.path.clone(), confidence: label.confidence, second: label.second };
        insert(&mut cluster.most, self.each, |other| other.confidence.total_cmp(&label.confidence).reverse(), pick);
        insert(&mut cluster.least, self.each, |other| other.confidence.total_cmp(&label.confidence), pick);
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

    /// The positions of all picks.
    pub fn indices(&self) -> BTreeSet<u64> {
        self.clusters.iter().flat_map(|c| c.most.iter().chain(&c.least)).map(|pick| pick.index).collect()
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
    use crate::row::Label;

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
    fn a_small_cluster_shows_no_image_twice() {
        let mut picks = Picks::new(1, 3);
        (0..4).for_each(|i| picks.add(&row(i, 0, i as f32 / 10.0)));
        let least: Vec<u64> = picks.least(0).map(|p| p.index).collect();
        assert_eq!((picks.most(0).len(), least), (3, vec![0]));
    }
}
