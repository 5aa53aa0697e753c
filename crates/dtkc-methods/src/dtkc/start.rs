//! How clusters begin. A network that has to name k clusters from its first step settles on whatever splits the images
//! evenly (one class in two clusters while two others share one) and rarely leaves it. So the first part of the training
//! learns something else, and the clusters are made of that.

use dtkc_core::ConfigError;
use serde::{Deserialize, Serialize};

use super::partners::Partners;
use crate::LearnError;
use crate::learner::Passes;
use crate::spectral::{Affinity, SpectralOptions, of_neighbours};

/// More clusters than this have too few images in a batch for several fine clusters each.
pub(super) const MANY: usize = 25;

/// How well eigenvectors must fit: their clusters are a beginning, and no digit of them counts.
const RESIDUAL: f64 = 1e-4;

/// Where the first clusters come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartKind {
    /// Random weights: everything is learnt at once.
    #[default]
    Random,
    /// Fine clusters alone are learnt first, several for each cluster, and then joined.
    Fine,
    /// A spectral clustering of the graph of near neighbours, which the network learns.
    Graph,
    /// `graph` for the first restart, `fine` for the second and so on in turn; always `graph` where there are many clusters.
    Auto,
}

/// How clusters are made of what the first part of the training has learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Join {
    /// Fine clusters are joined between which the views of images change.
    #[default]
    Fine,
    /// A spectral clustering of who is near whom as the network sees it, with views.
    Near,
}

/// The first part of the training.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StartConfig {
    /// Where the first clusters come from.
    pub from: StartKind,
    /// Part of the epochs that it takes; clusters of a graph are learnt to the end.
    pub share: f64,
    /// How clusters are made at its end: `fine` or `near`.
    pub join: Join,
    /// With `near`: whether groups of images that lie in one cluster and by outlines belong to another move there.
    pub strays: bool,
}

impl StartConfig {
    /// Refuses numbers that cannot work.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match (0.0..=1.0).contains(&self.share) {
            true => Ok(()),
            false => {
                let (name, range) = ("start.share".into(), "between 0 and 1");
                Err(ConfigError::Range { name, value: self.share, range })
            }
        }
    }

    /// What it means for one restart with so many clusters. A graph can be right where fine clusters are not (SVHN) and the other
    /// way round; the loss of what becomes of them tells which, without labels. The graph comes first because it has clusters from
    /// the first epoch on, and fine clusters beside them, of which better ones are made half-way where it was wrong.
    pub(super) fn kind(&self, clusters: usize, restart: usize) -> StartKind {
        match self.from {
            StartKind::Auto if clusters > MANY || restart.is_multiple_of(2) => StartKind::Graph,
            StartKind::Auto => StartKind::Fine,
            other => other,
        }
    }

    /// Whether a restart of a run with so many clusters begins with fine ones.
    pub(super) fn has_fine(&self, clusters: usize) -> bool {
        self.share > 0.0 && (0..2).any(|restart| self.kind(clusters, restart) == StartKind::Fine)
    }

    /// Whether clusters come from the graph and stay: a batch has so few images of each of so many clusters that what it says
    /// of them made them worse (COIL-100: .925 before, .918 after).
    pub(super) fn is_given(&self, clusters: usize) -> bool {
        clusters > MANY && matches!(self.from, StartKind::Auto | StartKind::Graph)
    }

    /// Epochs of the first part; at least one is left for the clusters themselves, unless they are given.
    pub(super) fn epochs(&self, clusters: usize, of: usize) -> usize {
        match self.is_given(clusters) {
            true => of,
            false => ((self.share * of as f64).round() as usize).min(of.saturating_sub(1)),
        }
    }
}

/// Clusters of all images by the graph of their neighbours; `None`, with a word, where the graph does not bear it.
pub(super) fn graph_clusters(
    partners: &Partners,
    clusters: usize,
    seed: u64,
    data: &dyn Passes,
) -> Result<Option<Vec<u32>>, LearnError> {
    let nearest = partners.nearest();
    let options =
        SpectralOptions { clusters, neighbours: nearest.count, affinity: Affinity::Mutual, residual: RESIDUAL, seed };
    match of_neighbours(nearest, &options, &|text| data.note(text), &|| data.stop()) {
        Ok(found) => Ok(Some(found.clustering.labels)),
        Err(LearnError::Unsuitable(reason)) => {
            data.say(&format!("no first clusters from the graph of neighbours: {reason}"));
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_clusters_start_from_the_graph() {
        let auto = StartConfig { from: StartKind::Auto, share: 0.5, ..StartConfig::default() };
        assert_eq!(
            [2, 25, 26, 300].map(|k| auto.kind(k, 1)),
            [StartKind::Fine, StartKind::Fine, StartKind::Graph, StartKind::Graph]
        );
        assert_eq!(StartConfig::default().kind(100, 0), StartKind::Random);
        assert!(auto.is_given(26) && !auto.is_given(25) && !StartConfig::default().is_given(100));
    }

    #[test]
    fn restarts_begin_in_turn_with_the_graph_and_with_fine_clusters() {
        let found = |from, share| {
            [0, 1, 2, 3].map(|restart| StartConfig { from, share, ..StartConfig::default() }.kind(10, restart))
        };
        assert_eq!(found(StartKind::Auto, 0.5), [StartKind::Graph, StartKind::Fine, StartKind::Graph, StartKind::Fine]);
        assert_eq!(found(StartKind::Fine, 0.5), [StartKind::Fine; 4]);
    }

    #[test]
    fn an_epoch_is_left_for_the_clusters() {
        let epochs = |share, of| StartConfig { from: StartKind::Fine, share, ..StartConfig::default() }.epochs(10, of);
        assert_eq!([epochs(0.5, 20), epochs(0.5, 3), epochs(0.5, 1), epochs(1.0, 8), epochs(0.0, 8)], [10, 2, 0, 7, 0]);
        let graph = StartConfig { from: StartKind::Graph, share: 0.5, ..StartConfig::default() };
        assert_eq!((graph.epochs(10, 20), graph.epochs(100, 20)), (10, 20));
        assert!(StartConfig { from: StartKind::Fine, share: 1.5, ..StartConfig::default() }.check().is_err());
    }
}
