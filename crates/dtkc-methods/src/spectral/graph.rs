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
    /// [`Affinity::Mutual`]: see [`mutual`](Self::mutual).
    pub fn new(neighbours: &Neighbours, affinity: Affinity) -> Self {
        let scale = match affinity {
            Affinity::Mutual => return Self::mutual(&[neighbours]),
            Affinity::Rbf => 2.0 * neighbours.median_distance(SCALE_RANK).powi(2),
            Affinity::Connectivity => 0.0,
        };
        let weight = |at: usize| match affinity {
            // Where most items are equal to their neighbours, there is no distance to weigh them by.
            Affinity::Rbf if scale > 0.0 => (-f64::from(neighbours.squares[at]) / scale).exp(),
            _ => 1.0,
        };
        Self::joined(&[(neighbours, 1.0)], weight, |there, back| (there + back) / 2.0)
    }

    /// With A the number of tables in which one item has another as its neighbour: `min(A, A^T)`, and a little for what one
    /// direction has more than the other.
    pub fn mutual(tables: &[&Neighbours]) -> Self {
        Self::weighted(&tables.iter().map(|&table| (table, 1.0)).collect::<Vec<_>>())
    }

    /// The same with A the sum of the weights of those tables.
    pub fn weighted(tables: &[(&Neighbours, f64)]) -> Self {
        Self::joined(tables, |_| 1.0, |there, back| there.min(back) + ONE_SIDED * (there - back).abs())
    }

    /// Edges wherever a table has one: `weight` of its place in the table times that of the table, summed over tables and then
    /// joined over the two directions.
    fn joined(tables: &[(&Neighbours, f64)], weight: impl Fn(usize) -> f64, join: impl Fn(f64, f64) -> f64) -> Self {
        let items = |(table, _): &(&Neighbours, f64)| table.items.len().checked_div(table.count).unwrap_or(0);
        let n = tables.iter().map(items).max().unwrap_or(0);
        let mut edges: Vec<Vec<(u32, [f64; 2])>> = vec![Vec::new(); n];
        for (table, of_table) in tables {
            for (at, &other) in table.items.iter().enumerate() {
                let (item, weight) = (at / table.count, of_table * weight(at));
                edges[item].push((other, [weight, 0.0]));
                edges[other as usize].push((item as u32, [0.0, weight]));
            }
        }
        let mut graph = Self { starts: vec![0], ends: Vec::new(), weights: Vec::new() };
        for mut row in edges {
            row.sort_by_key(|edge| edge.0);
            for same in row.chunk_by(|one, other| one.0 == other.0) {
                let sum = |direction: usize| same.iter().map(|(_, weights)| weights[direction]).sum();
                graph.ends.push(same[0].0);
                graph.weights.push(join(sum(0), sum(1)));
            }
            graph.starts.push(graph.ends.len());
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
    fn edges_of_several_tables_add_up() {
        // 0 has 1 in both tables, 1 has 0 in the first alone; 2 and 3 have each other in different ones.
        let table = |items: [u32; 4]| Neighbours { count: 1, items: items.to_vec(), squares: vec![1.0; 4] };
        let graph = Graph::mutual(&[&table([1, 0, 3, 0]), &table([1, 2, 0, 2])]);
        assert_eq!(graph.edges(0), (&[1, 2, 3][..], &[1.0 + ONE_SIDED, ONE_SIDED, ONE_SIDED][..]));
        assert_eq!(graph.edges(2), (&[0, 1, 3][..], &[ONE_SIDED, ONE_SIDED, 1.0][..]));
        // A table that counts half, twice.
        let [once, twice] = [1.0, 0.5].map(|weight| {
            let table = table([1, 0, 3, 2]);
            Graph::weighted(&vec![(&table, weight); (1.0 / weight) as usize])
        });
        assert_eq!(once, twice);
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
