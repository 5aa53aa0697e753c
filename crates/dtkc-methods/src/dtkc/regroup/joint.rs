//! How many groups the fine clusters make.

use dtkc_core::Output;

use super::Rows;
use super::cut::{group, without_small_cells};
use super::square::Square;
use crate::symmetric::eigen;

/// How often the two views of an item are in each pair of fine clusters, both orders counted. The number of clusters can be
/// read from it: see [`Joint::numbers`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Joint {
    counts: Square,
}

/// What speaks for a number of groups into which the fine clusters are joined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grouping {
    /// The number of groups.
    pub clusters: usize,
    /// How much more the last of them explains of what both views have in common than a further one would.
    pub drop: f64,
    /// Part of the items whose two views are in the same group.
    pub stay: f64,
    /// By how much that is more than chance, which is the sum of the squared shares of the groups: their modularity.
    pub beyond_chance: f64,
}

impl Joint {
    /// From [`counts`](Self::counts); `None` where they are not those of a square.
    pub fn of_counts(counts: Vec<f64>) -> Option<Self> {
        let side = counts.len().isqrt();
        (side * side == counts.len()).then_some(Self { counts: Square { side, values: counts } })
    }

    /// The matrix, row-major.
    pub fn counts(&self) -> &[f64] {
        &self.counts.values
    }

    /// Adds the output for a paired batch. Does nothing without fine clusters.
    pub(in super::super) fn add(&mut self, output: &Output) {
        if let Some(fine) = &output.fine {
            self.counts.add_joint(&Rows::read(fine).likeliest());
        }
    }

    /// Looks at every number of groups from `first` to `last`.
    ///
    /// With P the normalised matrix, D its row sums on a diagonal and `l1 = 1 >= l2 >= ...` the eigenvalues of
    /// `D^-1/2 P D^-1/2`, the dependence between the two views (Pearson's chi-square over the number of pairs) is
    /// `l2^2 + l3^2 + ...`: what is called inertia in correspondence analysis. Between k groups that views do not leave it
    /// is k - 1, so that `lk^2` is what the k-th group adds, and `lk^2 - l(k+1)^2` is large where a further group would cut
    /// through what belongs together. Sizes do not matter. Where kinds of items merge gradually no number has a large drop;
    /// what stays beyond chance has an optimum also then.
    pub fn numbers(&self, first: usize, last: usize) -> Vec<Grouping> {
        let explained = self.explained();
        let of = |k: usize| k.checked_sub(1).and_then(|i| explained.get(i)).copied().unwrap_or(0.0);
        let number = |clusters| {
            let (stay, chance) = self.stay(clusters);
            Grouping { clusters, drop: of(clusters) - of(clusters + 1), stay, beyond_chance: stay - chance }
        };
        (first..=last).map(number).collect()
    }

    /// Squared eigenvalues, largest first. Cells that hardly anything is in say next to nothing, and what they say is chance.
    fn explained(&self) -> Vec<f64> {
        let Square { side, values } = without_small_cells(&self.counts, 1).0;
        let sums: Vec<f64> = values.chunks_exact(side.max(1)).map(|row| row.iter().sum()).collect();
        let scaled = |(at, value): (usize, &f64)| {
            let size = (sums[at / side] * sums[at % side]).sqrt();
            if size > 0.0 { value / size } else { 0.0 }
        };
        let scaled = values.iter().enumerate().map(scaled).collect();
        eigen(scaled, side).values.into_iter().map(|value| value.max(0.0).powi(2)).collect()
    }

    /// Joins the fine clusters into k groups, as a run does: the part of the items whose views stay together, and by chance.
    fn stay(&self, k: usize) -> (f64, f64) {
        let total: f64 = self.counts.values.iter().sum();
        if total <= 0.0 || k == 0 {
            return (0.0, 0.0);
        }
        let joined = self.counts.grouped(&group(&self.counts, k), k);
        let shares = joined.values.chunks_exact(k).map(|row| row.iter().sum::<f64>() / total);
        let stay = (0..k).map(|i| joined.values[i * k + i]).sum::<f64>() / total;
        (stay, shares.map(|share| share * share).sum())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::square::tests::square;
    use super::*;

    /// Cells of the given classes; views stay in their cell, go to another of the class, or leave it, so often.
    fn cells(class: &[usize], within: f64, without: f64) -> Joint {
        let value = |i: usize, j: usize| match (i == j, class[i] == class[j]) {
            (true, _) => 10.0,
            (_, true) => within,
            _ => without,
        };
        Joint { counts: square(class.len(), value) }
    }

    fn best(joint: &Joint) -> usize {
        let numbers = joint.numbers(2, 15);
        numbers.iter().max_by(|a, b| a.drop.total_cmp(&b.drop)).unwrap().clusters
    }

    #[test]
    fn the_number_of_classes_has_the_largest_drop() {
        for classes in [2, 3, 5, 7, 10, 12] {
            let class: Vec<usize> = (0..4 * classes).map(|cell| cell % classes).collect();
            assert_eq!(best(&cells(&class, 2.0, 0.02)), classes);
        }
        let uneven = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4];
        assert_eq!(best(&cells(&uneven, 2.0, 0.05)), 5, "sizes differ");
    }

    #[test]
    fn a_cell_that_hardly_anything_is_in_makes_no_group() {
        let mut joint = cells(&[0, 0, 0, 1, 1, 1, 2], 2.0, 0.02);
        // The only cell of class 2 has one pair of views, both in it.
        (0..7).for_each(|i| (joint.counts.values[6 * 7 + i], joint.counts.values[i * 7 + 6]) = (0.0, 0.0));
        joint.counts.values[48] = 1.0;
        assert_eq!(best(&joint), 2);
    }

    #[test]
    fn figures_of_a_known_matrix() {
        // Rows sum to 14. Eigenvalues 1, (10 + 2 - 2) / 14 and twice (10 - 2) / 14, by hand.
        let joint = cells(&[0, 0, 1, 1], 2.0, 1.0);
        let found = joint.numbers(2, 2)[0];
        let expected = [(100.0 - 64.0) / 196.0, 24.0 / 28.0, 24.0 / 28.0 - 0.5];
        let values = [found.drop, found.stay, found.beyond_chance];
        assert!(values.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        // Pearson's chi-square over the sum of the counts, NumPy: ((P - p p^T)^2 / p p^T).sum() = 228 / 196.
        let all: f64 = joint.explained()[1..].iter().sum();
        assert!((all - 228.0 / 196.0).abs() < 1e-12, "{all}");
    }

    #[test]
    fn fewer_cells_than_groups_and_no_items_are_no_reason_to_panic() {
        let joint = cells(&[0, 1, 2], 2.0, 0.1);
        assert_eq!(best(&joint), 3);
        assert_eq!(joint.numbers(5, 5)[0].drop, 0.0);
        for empty in [Joint::default(), Joint::of_counts(vec![0.0; 9]).unwrap()] {
            assert!(empty.numbers(2, 4).iter().all(|number| number.drop == 0.0 && number.beyond_chance == 0.0));
        }
        assert_eq!(Joint::of_counts(vec![0.0; 8]), None);
        assert_eq!(Joint::of_counts(joint.counts().to_vec()), Some(joint));
    }
}
