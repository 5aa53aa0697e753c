//! Fine clusters into groups whose items keep to them.

use super::coarsen::coarsen;
use super::square::Square;

/// Rounds of moving single cells; each round that changes anything raises a bounded sum.
const MOST_ROUNDS: usize = 100;
/// Part of a mean cell's share below which a cell is joined to another before all else.
const SMALL: f64 = 0.2;
/// Least gain that counts as one.
const LEAST_GAIN: f64 = 1e-9;

/// Which of k groups each cell of a symmetric joint distribution belongs to, so that the second view of an image is in
/// the group of the first as often as possible in every group: the sum over groups of `P(g, g) / P(g)` is large, which
/// is k less the normalised cut. Unlike mutual information it does not ask for groups of equal size.
///
/// Cells that hardly anything is in are joined to others first. Two greedy groupings, one that keeps mutual information
/// and one that keeps the cut small, are improved by moving single cells; what then has more mutual information wins.
pub(super) fn group(joint: &Square, k: usize) -> Vec<usize> {
    let (small, cells) = without_small_cells(joint, k);
    let improved = |mut groups: Vec<usize>| {
        refine(&small, &mut groups, k);
        (small.grouped(&groups, k).information(), groups)
    };
    let (by_cut, by_information) = (improved(greedy_cut(&small, k)), improved(coarsen(&small, k, 0.0)));
    let best = if by_information.0 > by_cut.0 { by_information.1 } else { by_cut.1 };
    cells.iter().map(|&cell| best[cell]).collect()
}

/// Joins cells with less than a fifth of a mean cell's share to those they share most with, relative to size: a cell
/// without items would else be a group of its own. Returns the new matrix and the new cell of every old one.
pub(super) fn without_small_cells(joint: &Square, k: usize) -> (Square, Vec<usize>) {
    let mut sums = Sums::new(joint);
    let least = SMALL * sums.marginal.iter().sum::<f64>() / joint.side.max(1) as f64;
    let mut cells: Vec<usize> = (0..joint.side).collect();
    let mut alive = cells.clone();
    while alive.len() > k.max(2) {
        let smallest = alive.iter().copied().min_by(|&a, &b| sums.marginal[a].total_cmp(&sums.marginal[b]));
        let Some(small) = smallest.filter(|&cell| sums.marginal[cell] < least) else { break };
        let share = |other: usize| kept(sums.joint[small * sums.side + other], sums.marginal[other]);
        let others = alive.iter().copied().filter(|&other| other != small);
        let Some(to) = others.max_by(|&a, &b| share(a).total_cmp(&share(b)).then(b.cmp(&a))) else { break };
        sums.join(to, small);
        alive.retain(|&cell| cell != small);
        cells.iter_mut().filter(|cell| **cell == small).for_each(|cell| *cell = to);
    }
    let numbers: Vec<usize> = cells.iter().map(|cell| alive.partition_point(|a| a < cell)).collect();
    (joint.grouped(&numbers, alive.len()), numbers)
}

/// Pairs are joined greedily, those first that raise the cut least.
fn greedy_cut(joint: &Square, k: usize) -> Vec<usize> {
    let mut sums = Sums::new(joint);
    let mut groups: Vec<usize> = (0..joint.side).collect();
    let mut alive = groups.clone();
    while alive.len() > k {
        let Some((a, b)) = cheapest(&sums, &alive) else { break };
        sums.join(a, b);
        alive.retain(|&group| group != b);
        groups.iter_mut().filter(|group| **group == b).for_each(|group| *group = a);
    }
    groups.iter().map(|group| alive.partition_point(|g| g < group)).collect()
}

/// The pair whose joining costs the least.
fn cheapest(sums: &Sums, alive: &[usize]) -> Option<(usize, usize)> {
    let pairs = alive.iter().enumerate().flat_map(|(i, &a)| alive[i + 1..].iter().map(move |&b| (a, b)));
    pairs.min_by(|&(a, b), &(c, d)| sums.loss(a, b).total_cmp(&sums.loss(c, d)))
}

/// The joint distribution of groups while cells are joined.
struct Sums {
    side: usize,
    joint: Vec<f64>,
    marginal: Vec<f64>,
}

impl Sums {
    fn new(joint: &Square) -> Self {
        let marginal = joint.values.chunks_exact(joint.side.max(1)).map(|row| row.iter().sum()).collect();
        Self { side: joint.side, joint: joint.values.clone(), marginal }
    }

    fn loss(&self, a: usize, b: usize) -> f64 {
        let at = |i: usize, j: usize| self.joint[i * self.side + j];
        let both = at(a, a) + at(b, b) + at(a, b) + at(b, a);
        let (p, q) = (self.marginal[a], self.marginal[b]);
        kept(at(a, a), p) + kept(at(b, b), q) - kept(both, p + q)
    }

    /// Joins b to a.
    fn join(&mut self, a: usize, b: usize) {
        let side = self.side;
        for j in 0..side {
            self.joint[a * side + j] += self.joint[b * side + j];
        }
        for i in 0..side {
            self.joint[i * side + a] += self.joint[i * side + b];
        }
        self.marginal[a] += self.marginal[b];
    }
}

/// Part of a group that stays in it.
fn kept(inside: f64, all: f64) -> f64 {
    if all > 0.0 { inside / all } else { 0.0 }
}

/// Moves single cells to the group where the sum grows most, until none helps.
fn refine(joint: &Square, groups: &mut [usize], k: usize) {
    let side = joint.side;
    let mut marginal = vec![0.0; k];
    let mut inside = vec![0.0; k];
    let rows: Vec<f64> = joint.values.chunks_exact(side.max(1)).map(|row| row.iter().sum()).collect();
    let mut cells = vec![0usize; k];
    for (i, &g) in groups.iter().enumerate() {
        marginal[g] += rows[i];
        cells[g] += 1;
        let same = (0..side).filter(|&j| groups[j] == g);
        inside[g] += same.map(|j| joint.values[i * side + j]).sum::<f64>();
    }
    for _ in 0..MOST_ROUNDS {
        let mut moved = false;
        for i in 0..side {
            let from = groups[i];
            if cells[from] < 2 {
                continue;
            }
            // What the cell shares with every group, both as first and as second view.
            let mut shared = vec![0.0; k];
            for j in (0..side).filter(|&j| j != i) {
                shared[groups[j]] += joint.values[i * side + j] + joint.values[j * side + i];
            }
            let own = joint.values[i * side + i];
            let left = kept(inside[from] - shared[from] - own, marginal[from] - rows[i]);
            let lost = kept(inside[from], marginal[from]) - left;
            let gain = |to: usize| {
                kept(inside[to] + shared[to] + own, marginal[to] + rows[i]) - kept(inside[to], marginal[to]) - lost
            };
            let best = (0..k).filter(|&to| to != from).max_by(|&a, &b| gain(a).total_cmp(&gain(b)).then(b.cmp(&a)));
            let Some(to) = best.filter(|&to| gain(to) > LEAST_GAIN) else { continue };
            inside[from] -= shared[from] + own;
            inside[to] += shared[to] + own;
            marginal[from] -= rows[i];
            marginal[to] += rows[i];
            cells[from] -= 1;
            cells[to] += 1;
            groups[i] = to;
            moved = true;
        }
        if !moved {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::square::tests::square;
    use super::*;

    fn same_groups(found: &[usize], expected: &[usize]) -> bool {
        (0..found.len()).all(|i| (0..found.len()).all(|j| (found[i] == found[j]) == (expected[i] == expected[j])))
    }

    #[test]
    fn a_large_class_is_not_split_for_the_sake_of_equal_sizes() {
        // Class 0 has six cells among which views move freely, classes 1 and 2 one cell each; there are 3 groups.
        let class = [0, 0, 0, 0, 0, 0, 1, 2];
        let joint = square(8, |i, j| match (i == j, class[i] == class[j]) {
            (true, _) => 5.0,
            (false, true) => 3.0,
            _ => 0.1,
        });
        assert!(same_groups(&group(&joint, 3), &class));
    }

    #[test]
    fn a_cell_without_items_is_no_group() {
        // Cells 0 1 | 2 3 | 4 5 are classes; cell 6 is empty and cell 7 nearly so, beside cell 4.
        let class = [0, 0, 1, 1, 2, 2];
        let joint = square(8, |i, j| match (i.min(j), i.max(j)) {
            (_, 6) | (6, _) => 0.0,
            (7, 7) => 0.01,
            (4, 7) => 0.02,
            (_, 7) => 0.0,
            (a, b) if a == b => 6.0,
            (a, b) if class[a] == class[b] => 2.0,
            _ => 0.2,
        });
        let groups = group(&joint, 3);
        assert!(same_groups(&groups[..6], &class), "{groups:?}");
        assert_eq!(groups[7], groups[4]);
    }

    #[test]
    fn moving_cells_never_lowers_what_it_raises() {
        let joint = square(9, |i, j| 1.0 + ((i * 7 + j * 7) % 5) as f64 + 4.0 * f64::from(i == j));
        let stay = |groups: &[usize]| {
            let sums = joint.grouped(groups, 3);
            (0..3).map(|g| sums.values[g * 3 + g] / sums.values[g * 3..g * 3 + 3].iter().sum::<f64>()).sum::<f64>()
        };
        let mut groups: Vec<usize> = (0..9).map(|i| i % 3).collect();
        let before = stay(&groups);
        refine(&joint, &mut groups, 3);
        assert!(stay(&groups) >= before);
        assert!((0..3).all(|g| groups.contains(&g)), "no group is emptied: {groups:?}");
    }
}
