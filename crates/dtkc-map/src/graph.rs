//! Who is how near to whom, as weights between 0 and 1.

/// Rounds in which the scale of a point is halved in.
const ROUNDS: usize = 40;

/// A symmetric graph of neighbours: for every point those it is tied to, and how strongly.
///
/// As in UMAP (McInnes, Healy, Melville): a point is tied to its nearest neighbour with weight 1 and to others with
/// `exp(-(d - nearest) / scale)`, where its own scale makes the weights add up to log2 of their number, so that crowded and
/// sparse regions look alike. Two points are tied by `a + b - a b` of the weights that each gives the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Where the ties of each point begin, `[n + 1]`.
    pub starts: Vec<usize>,
    /// The others, ascending for each point.
    pub others: Vec<u32>,
    /// The weights.
    pub weights: Vec<f32>,
}

impl Graph {
    /// From the `count` nearest others of every point and their squared distances, `[n, count]`, nearest first.
    pub fn of(count: usize, items: &[u32], squares: &[f32]) -> Self {
        let n = items.len().checked_div(count).unwrap_or(0);
        let mut ties: Vec<(u32, u32, f32)> = Vec::with_capacity(2 * items.len());
        for (point, (items, squares)) in
            (0u32..).zip(items.chunks_exact(count.max(1)).zip(squares.chunks_exact(count.max(1))))
        {
            let distances: Vec<f64> = squares.iter().map(|&square| f64::from(square.max(0.0)).sqrt()).collect();
            for (&other, weight) in items.iter().zip(weights(&distances)) {
                // Both directions, so that a pair is found side by side.
                ties.push((point, other, weight));
                ties.push((other, point, -weight));
            }
        }
        ties.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        let mut graph = Self { starts: Vec::with_capacity(n + 1), others: Vec::new(), weights: Vec::new() };
        for (at, &(point, other, weight)) in ties.iter().enumerate() {
            let weight = weight.abs();
            if at > 0 && (ties[at - 1].0, ties[at - 1].1) == (point, other) {
                if let Some(before) = graph.weights.last_mut() {
                    *before += weight - *before * weight;
                }
                continue;
            }
            while graph.starts.len() <= point as usize {
                graph.starts.push(graph.others.len());
            }
            graph.others.push(other);
            graph.weights.push(weight);
        }
        graph.starts.resize(n + 1, graph.others.len());
        graph
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ties of a point.
    pub fn of_point(&self, point: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let range = self.starts[point]..self.starts[point + 1];
        self.others[range.clone()].iter().zip(&self.weights[range]).map(|(&other, &weight)| (other as usize, weight))
    }
}

/// The weights that a point gives its neighbours.
fn weights(distances: &[f64]) -> Vec<f32> {
    let nearest = distances.first().copied().unwrap_or(0.0);
    let target = (distances.len() as f64).log2().max(1.0);
    let sum = |scale: f64| distances.iter().map(|d| (-(d - nearest) / scale).exp()).sum::<f64>();
    let mean = distances.iter().sum::<f64>() / distances.len().max(1) as f64;
    let (mut low, mut high) = (mean * 1e-6 + f64::MIN_POSITIVE, mean * 1e3 + 1e-12);
    for _ in 0..ROUNDS {
        let middle = (low * high).sqrt();
        if sum(middle) > target { high = middle } else { low = middle }
    }
    distances.iter().map(|d| (-(d - nearest) / high).exp() as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_to_the_logarithm_of_their_number() {
        let found = weights(&[1.0, 1.5, 2.0, 2.2, 3.0, 3.5, 4.0, 6.0]);
        assert!((found.iter().sum::<f32>() - 3.0).abs() < 1e-3, "{found:?}");
        assert_eq!(found[0], 1.0);
        assert!(found.is_sorted_by(|a, b| a >= b));
        // Copies of one point are all as near as can be.
        assert!(weights(&[0.0; 5]).iter().all(|&w| w == 1.0));
    }

    #[test]
    fn ties_hold_in_both_directions() {
        // 0 and 1 are each other's nearest; 2 sees 1, which does not see it.
        let graph = Graph::of(1, &[1, 0, 1], &[1.0, 1.0, 4.0]);
        assert_eq!(graph.len(), 3);
        let ties = |point: usize| graph.of_point(point).collect::<Vec<_>>();
        assert_eq!(ties(0), [(1, 1.0)]);
        assert_eq!(ties(1), [(0, 1.0), (2, 1.0)]);
        assert_eq!(ties(2), [(1, 1.0)]);
        assert!(Graph::of(0, &[], &[]).is_empty());
    }
}
