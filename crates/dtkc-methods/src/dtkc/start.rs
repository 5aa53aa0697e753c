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
    /// `fine`, or `graph` where there are many clusters.
    Auto,
}

/// The first part of the training.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StartConfig {
    /// Where the first clusters come from.
    pub from: StartKind,
    /// Part of the epochs that it takes; clusters of a graph are learnt to the end.
    pub share: f64,
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

    /// What it means for so many clusters.
    pub(super) fn kind(&self, clusters: usize) -> StartKind {
        match self.from {
            StartKind::Auto if clusters > MANY => StartKind::Graph,
            StartKind::Auto => StartKind::Fine,
            other => other,
        }
    }

    /// Epochs of the first part. Fine clusters leave at least one for the clusters that are made of them. Clusters of the
    /// graph are learnt in all of them: a batch has so few images of each of so many clusters that what it says of them
    /// made them worse (COIL-100: .925 before, .918 after).
    pub(super) fn epochs(&self, kind: StartKind, of: usize) -> usize {
        match kind {
            StartKind::Graph => of,
            _ => ((self.share * of as f64).round() as usize).min(of.saturating_sub(1)),
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
        let auto = StartConfig { from: StartKind::Auto, share: 0.5 };
        assert_eq!(
            [2, 25, 26, 300].map(|k| auto.kind(k)),
            [StartKind::Fine, StartKind::Fine, StartKind::Graph, StartKind::Graph]
        );
        assert_eq!(StartConfig::default().kind(100), StartKind::Random);
    }

    #[test]
    fn an_epoch_is_left_for_the_clusters() {
        let epochs = |share, of| StartConfig { from: StartKind::Fine, share }.epochs(StartKind::Fine, of);
        assert_eq!([epochs(0.5, 20), epochs(0.5, 3), epochs(0.5, 1), epochs(1.0, 8), epochs(0.0, 8)], [10, 2, 0, 7, 0]);
        assert!(StartConfig { from: StartKind::Fine, share: 1.5 }.check().is_err());
    }
}
