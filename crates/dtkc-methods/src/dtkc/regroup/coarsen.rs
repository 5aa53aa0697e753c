//! Fine clusters into groups.

use super::square::{Square, plogp};

/// Which of k groups each cell of a symmetric joint distribution belongs to. Pairs are joined greedily, those first that
/// lose the least mutual information between row and column, less so much of the entropy of a row: 0 favours groups of equal
/// size, more lets large ones be.
pub(in super::super) fn coarsen(joint: &Square, k: usize, uneven: f64) -> Vec<usize> {
    joined(joint, uneven).nth(joint.side.saturating_sub(k)).unwrap_or_default()
}

/// Mutual information and entropy of a row with 1, 2, 3 and more groups, while cells are joined in the order of [`coarsen`].
pub(in super::super) fn joinings(joint: &Square, uneven: f64) -> Vec<[f64; 2]> {
    let step = |(merged, cells): (usize, Vec<usize>)| {
        let groups = joint.grouped(&cells, joint.side - merged);
        [groups.information(), groups.entropy()]
    };
    let mut steps: Vec<_> = joined(joint, uneven).enumerate().map(step).collect();
    steps.reverse();
    steps
}

/// The group of every cell, numbered from 0: first each is one by itself, then one pair of groups after the other is joined,
/// until there is one group.
fn joined(joint: &Square, uneven: f64) -> impl Iterator<Item = Vec<usize>> {
    let mut groups: Vec<usize> = (0..joint.side).collect();
    let mut merger = Merger::new(joint, uneven);
    (0..joint.side).map(move |merged| {
        if merged > 0 {
            let (a, b) = merger.cheapest();
            merger.join(a, b);
            groups.iter_mut().filter(|group| **group == b).for_each(|group| *group = a);
        }
        let mut left = merger.alive.clone();
        left.sort_unstable();
        groups.iter().map(|group| left.partition_point(|l| l < group)).collect()
    })
}

/// The distribution while cells are joined. What joining a pair costs is kept up to date, because to compute all costs
/// anew after every step would take the fourth power of the number of cells.
struct Merger {
    side: usize,
    joint: Vec<f64>,
    marginal: Vec<f64>,
    /// Information that is lost when a pair is joined, for every pair of living cells.
    loss: Vec<f64>,
    alive: Vec<usize>,
    uneven: f64,
}

impl Merger {
    fn new(joint: &Square, uneven: f64) -> Self {
        let (side, total) = (joint.side, joint.values.iter().sum::<f64>());
        let joint: Vec<f64> = joint.values.iter().map(|value| value / total).collect();
        let marginal = joint.chunks_exact(side).map(|row| row.iter().sum()).collect();
        let mut merger =
            Self { side, joint, marginal, loss: vec![0.0; side * side], alive: (0..side).collect(), uneven };
        for a in 0..side {
            for b in a + 1..side {
                merger.loss[a * side + b] = merger.loss_of(a, b);
            }
        }
        merger
    }

    fn at(&self, a: usize, b: usize) -> f64 {
        self.joint[a * self.side + b]
    }

    /// Part of the loss of (a, b) that comes from another cell, as a row and as a column.
    fn part(&self, a: usize, b: usize, other: usize) -> f64 {
        -2.0 * gain(self.at(a, other), self.at(b, other))
    }

    fn loss_of(&self, a: usize, b: usize) -> f64 {
        let others = self.alive.iter().filter(|&&other| other != a && other != b);
        let corner = [self.at(a, a), self.at(a, b), self.at(b, a), self.at(b, b)];
        let corner = plogp(corner.iter().sum()) - corner.into_iter().map(plogp).sum::<f64>();
        let marginal = (2.0 - self.uneven) * gain(self.marginal[a], self.marginal[b]);
        others.map(|&other| self.part(a, b, other)).sum::<f64>() - corner + marginal
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let alive = &self.alive;
        (0..alive.len()).flat_map(move |i| (i + 1..alive.len()).map(move |j| (alive[i], alive[j])))
    }

    fn cheapest(&self) -> (usize, usize) {
        let loss = |&(a, b): &(usize, usize)| self.loss[a * self.side + b];
        self.pairs().min_by(|x, y| loss(x).total_cmp(&loss(y))).unwrap_or((0, 0))
    }

    /// Joins b to a; a is less than b.
    fn join(&mut self, a: usize, b: usize) {
        let side = self.side;
        self.alive.retain(|&cell| cell != b);
        let mut kept: Vec<(usize, usize)> = self.pairs().filter(|&(c, d)| c != a && d != a).collect();
        for &(c, d) in &kept {
            let before = self.part(c, d, a) + self.part(c, d, b);
            self.loss[c * side + d] -= before;
        }
        for j in 0..side {
            self.joint[a * side + j] += self.joint[b * side + j];
        }
        for i in 0..side {
            self.joint[i * side + a] += self.joint[i * side + b];
        }
        self.marginal[a] += self.marginal[b];
        for (c, d) in kept.drain(..) {
            self.loss[c * side + d] += self.part(c, d, a);
        }
        for c in self.alive.clone() {
            if c != a {
                let (low, high) = (c.min(a), c.max(a));
                self.loss[low * side + high] = self.loss_of(low, high);
            }
        }
    }
}

/// What joining two probabilities adds to the sum of p log p.
fn gain(a: f64, b: f64) -> f64 {
    plogp(a + b) - plogp(a) - plogp(b)
}

#[cfg(test)]
mod tests {
    use super::super::square::tests::square;
    use super::*;

    #[test]
    fn joining_a_pair_costs_what_the_joined_matrix_says_also_after_others_were_joined() {
        let joint = square(7, |i, j| 1.0 + ((i * j) % 4) as f64 + 3.0 * f64::from(i == j));
        let worth = |groups: &[usize]| {
            let grouped = joint.grouped(groups, 7);
            grouped.information() - 0.3 * grouped.entropy()
        };
        let mut merger = Merger::new(&joint, 0.3);
        let mut groups: Vec<usize> = (0..7).collect();
        for (a, b) in [(1, 4), (0, 6), (1, 2)] {
            let before = worth(&groups);
            for (c, d) in merger.pairs() {
                let joined: Vec<usize> = groups.iter().map(|&g| if g == d { c } else { g }).collect();
                let expected = before - worth(&joined);
                assert!((merger.loss[c * 7 + d] - expected).abs() < 1e-12, "{c} {d}");
            }
            merger.join(a, b);
            groups.iter_mut().filter(|g| **g == b).for_each(|g| *g = a);
        }
    }

    #[test]
    fn nothing_is_told_by_one_group_and_all_by_as_many_as_there_are_cells() {
        let joint = square(6, |i, j| 1.0 + 9.0 * f64::from(i == j));
        let found = joinings(&joint, 0.5);
        assert!(found.len() == 6 && found[0].iter().all(|value| value.abs() < 1e-12));
        assert_eq!(found[5], [joint.information(), joint.entropy()]);
        assert!(found.windows(2).all(|pair| pair[0][0] < pair[1][0] && pair[0][1] < pair[1][1]));
    }

    #[test]
    fn cells_that_leak_into_each_other_are_joined() {
        // Cells 0, 3, 6 are one class, 1, 4, 7 another, 2, 5, 8 the third; within a class views change cells.
        let value = |i: usize, j: usize| if i % 3 == j % 3 { 3.0 } else { 0.1 };
        let groups = coarsen(&square(9, |i, j| value(i, j) + 2.0 * f64::from(u8::from(i == j))), 3, 0.0);
        for i in 0..9 {
            for j in 0..9 {
                assert_eq!(groups[i] == groups[j], i % 3 == j % 3, "{groups:?}");
            }
        }
    }
}
