//! The graph of neighbours as a sparse symmetric matrix.

use serde::{Deserialize, Serialize};

use crate::nearest::Neighbours;

/// What an edge of the graph weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Affinity {
    /// 1.
    Connectivity,
    /// `exp(-d^2 / 2 s^2)`, s the median distance to the seventh neighbour.
    Rbf,
    /// 1 between items that are neighbours of each other, little where only one is the other's: what joins classes is
    /// mostly one-sided. The eigenvectors of an item are then scaled to the length 1 (Ng, Jordan and Weiss).
    Mutual,
}

/// Weight of an edge of [`Affinity::Mutual`] of which only one end has the other as its neighbour.
const ONE_SIDED: f64 = 0.025;

/// The neighbour whose median distance is the scale of [`Affinity::Rbf`] (Zelnik-Manor and Perona's choice).
const SCALE_RANK: usize = 7;

/// A symmetric graph: the weights of the edges of every item, by rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Where the edges of each item begin, and the end.
    pub(super) starts: Vec<usize>,
    /// The other end of each edge, in order.
    pub(super) ends: Vec<u32>,
    /// Its weight.
    pub(super) weights: Vec<f64>,
}

impl Graph {
    /// `(A + A^T) / 2`, A the weights of the edges from every item to its neighbours: as scikit-learn makes it.
    pub fn new(neighbours: &Neighbours, affinity: Affinity) -> Self {
        let n = neighbours.items.len().checked_div(neighbours.count).unwrap_or(0);
        let scale = match affinity {
            Affinity::Rbf => 2.0 * neighbours.median_distance(SCALE_RANK).powi(2),
            _ => 0.0,
        };
        let weight = |at: usize| match affinity {
            // Where most items are equal to their neighbours, there is no distance to weigh them by.
            Affinity::Rbf if scale > 0.0 => (-f64::from(neighbours.squares[at]) / scale).exp() / 2.0,
            _ => 0.5,
        };
        let mut edges: Vec<Vec<(u32, f64)>> = vec![Vec::with_capacity(2 * neighbours.count); n];
        for item in 0..n {
            for (place, &other) in neighbours.of(item).iter().enumerate() {
                let weight = weight(item * neighbours.count + place);
                edges[item].push((other, weight));
                edges[other as usize].push((item as u32, weight));
            }
        }
        let mut graph = Self { starts: vec![0], ends: Vec::new(), weights: Vec::new() };
        for mut row in edges {
            row.sort_by_key(|edge| edge.0);
            for (end, weight) in row {
                let is_new = graph.ends.len() == graph.starts.last().copied().unwrap_or(0);
                match (graph.ends.last(), graph.weights.last_mut()) {
                    (Some(&last), Some(sum)) if !is_new && last == end => *sum += weight,
                    _ => {
                        graph.ends.push(end);
                        graph.weights.push(weight);
                    }
                }
            }
            graph.starts.push(graph.ends.len());
        }
        if affinity == Affinity::Mutual {
            // Both directions add up to 1, one of them is a half.
            graph.weights.iter_mut().filter(|weight| **weight < 0.75).for_each(|weight| *weight = ONE_SIDED);
        }
        graph
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The edges of an item: other ends and weights.
    pub fn edges(&self, item: usize) -> (&[u32], &[f64]) {
        let range = self.starts[item]..self.starts[item + 1];
        (&self.ends[range.clone()], &self.weights[range])
    }

    /// The sum of the weights of every item's edges.
    pub fn degrees(&self) -> Vec<f64> {
        (0..self.len()).map(|item| self.edges(item).1.iter().sum()).collect()
    }

    /// Into how many parts without an edge between them it falls.
    pub fn components(&self) -> usize {
        let mut seen = vec![false; self.len()];
        let mut found = 0;
        let mut open = Vec::new();
        for start in 0..self.len() {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            found += 1;
            open.push(start);
            while let Some(item) = open.pop() {
                for &end in self.edges(item).0 {
                    if !std::mem::replace(&mut seen[end as usize], true) {
                        open.push(end as usize);
                    }
                }
            }
        }
        found
    }

    /// The weights divided by the roots of the degrees of both ends: its eigenvalues are between -1 and 1, and those of the
    /// normalised Laplacian are 1 less them.
    pub(super) fn normalised(mut self) -> Self {
        let roots: Vec<f64> = self.degrees().iter().map(|degree| degree.sqrt()).collect();
        for item in 0..self.len() {
            for at in self.starts[item]..self.starts[item + 1] {
                self.weights[at] /= roots[item] * roots[self.ends[at] as usize];
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 - 1 - 2 with 2's nearest being 1, and a pair apart.
    fn neighbours() -> Neighbours {
        Neighbours { count: 1, items: vec![1, 0, 1, 4, 3], squares: vec![1.0, 1.0, 4.0, 1.0, 1.0] }
    }

    #[test]
    fn edges_of_both_directions_are_halved_and_added() {
        let graph = Graph::new(&neighbours(), Affinity::Connectivity);
        assert_eq!(graph.edges(0), (&[1][..], &[1.0][..]));
        assert_eq!(graph.edges(1), (&[0, 2][..], &[1.0, 0.5][..]));
        assert_eq!(graph.edges(2), (&[1][..], &[0.5][..]));
        assert_eq!(graph.degrees(), [1.0, 1.5, 0.5, 1.0, 1.0]);
        assert_eq!((graph.len(), graph.components()), (5, 2));
    }

    #[test]
    fn one_sided_edges_weigh_little_beside_mutual_ones() {
        let graph = Graph::new(&neighbours(), Affinity::Mutual);
        assert_eq!(graph.edges(1), (&[0, 2][..], &[1.0, ONE_SIDED][..]));
        assert_eq!(graph.edges(2), (&[1][..], &[ONE_SIDED][..]));
        assert_eq!(graph.components(), 2);
    }

    #[test]
    fn near_edges_weigh_more_with_a_kernel() {
        let graph = Graph::new(&neighbours(), Affinity::Rbf);
        // The median distance is 1.
        assert!((graph.edges(0).1[0] - (-0.5f64).exp()).abs() < 1e-12);
        assert!((graph.edges(2).1[0] - (-2f64).exp() / 2.0).abs() < 1e-12);
        let equal = Neighbours { count: 1, items: vec![1, 0], squares: vec![0.0, 0.0] };
        assert_eq!(Graph::new(&equal, Affinity::Rbf).edges(0).1, [1.0]);
    }
}
