//! Images in groups of several sizes, by a graph of who is near whom.

use crate::LearnError;
use crate::kmeans::{KmeansOptions, Points, kmeans};
use crate::spectral::{Affinity, Graph, SpectralOptions, eigenvectors, to_length_one};

/// Fewer images than this say nothing about themselves.
pub(super) const FEWEST: usize = 10;

/// Starts and iterations of k-means.
const STARTS: usize = 5;
const ITERATIONS: usize = 100;
const TOLERANCE: f64 = 1e-4;

/// How many groups there shall be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grains<'a> {
    /// Number of clusters.
    pub(super) clusters: usize,
    /// Groups for every two clusters, fewest first.
    pub(super) for_two: &'a [usize],
    /// How well eigenvectors must fit.
    pub(super) residual: f64,
    pub(super) seed: u64,
}

/// Groups of images.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grouping {
    /// How many there are.
    pub(super) groups: usize,
    /// The group of every image.
    pub(super) of: Vec<u32>,
}

impl Grouping {
    /// The images of every group.
    pub(super) fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.groups];
        self.of.iter().enumerate().for_each(|(image, &group)| members[group as usize].push(image));
        members
    }
}

/// Spectral clusterings of a graph in several sizes. There are none in which groups would have next to no images, more of them
/// than clusters, or that are fewer than the parts into which the graph falls.
pub(super) fn groupings(
    graph: &Graph,
    grains: &Grains<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Grouping>, LearnError> {
    let (k, seed, parts) = (grains.clusters, grains.seed, graph.components());
    let has_enough = |groups: usize| groups >= parts && (groups <= k || groups * FEWEST <= graph.len());
    let sizes = grains.for_two.iter().map(|for_two| (for_two * k).div_ceil(2));
    let sizes: Vec<usize> = sizes.filter(|&groups| has_enough(groups)).collect();
    let Some(&most) = sizes.last() else { return Ok(Vec::new()) };
    let options =
        SpectralOptions { clusters: most, neighbours: 0, affinity: Affinity::Mutual, residual: grains.residual, seed };
    let found = match eigenvectors(graph, &options, stop) {
        Err(LearnError::Unsuitable(_)) => return Ok(Vec::new()),
        found => found?,
    };
    let width = found.values.len();
    let grouping = |groups: usize| {
        let rows = found.vectors.chunks_exact(width).flat_map(|row| &row[..groups.min(width)]);
        let mut rows: Vec<f32> = rows.map(|&value| value as f32).collect();
        let width = groups.min(width);
        rows.chunks_exact_mut(width).for_each(to_length_one);
        let options =
            KmeansOptions { clusters: groups, starts: STARTS, iterations: ITERATIONS, tolerance: TOLERANCE, seed };
        Ok(Grouping { groups, of: kmeans(Points { values: &rows, width }, &options, stop)?.labels })
    };
    sizes.into_iter().map(grouping).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::nearest::Neighbours;
    use crate::random::Random;

    /// Four heaps of 30 images, the first two far from the others.
    fn heaps() -> Graph {
        let mut random = Random::new(7, b"test....", 0);
        let middles = [0.0, 2.0, 20.0, 22.0];
        let rows: Vec<f32> = (0..240).map(|i| middles[i / 60] * (i % 2) as f32 + random.unit() as f32).collect();
        Graph::mutual(&[&Neighbours::find(&Points { values: &rows, width: 2 }, 35, &|| false).unwrap()])
    }

    fn sizes(for_two: &[usize]) -> Vec<Grouping> {
        let grains = Grains { clusters: 2, for_two, residual: 1e-6, seed: 1 };
        groupings(&heaps(), &grains, &|| false).unwrap()
    }

    #[test]
    fn heaps_are_found_in_every_size() {
        let found = sizes(&[2, 4]);
        assert_eq!(found.iter().map(|grouping| grouping.groups).collect::<Vec<_>>(), [2, 4]);
        for (grouping, images) in found.iter().zip([60, 30]) {
            let members = grouping.members();
            assert!(members.iter().all(|members| members.len() == images), "{members:?}");
            assert!(members.iter().all(|members| members.iter().all(|image| image / images == members[0] / images)));
        }
    }

    #[test]
    fn there_are_no_groups_of_next_to_no_images_and_none_across_parts() {
        assert_eq!(sizes(&[13]), Vec::new(), "13 groups of 120 images");
        assert_eq!(sizes(&[1]), Vec::new(), "one group of two parts");
        assert_eq!(sizes(&[]), Vec::new());
    }
}
