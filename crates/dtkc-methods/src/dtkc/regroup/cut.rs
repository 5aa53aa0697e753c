//! Fine clusters into groups whose items keep to them.

use super::square::Square;

/// Rounds of moving single cells; each round that changes anything raises a bounded sum.
const MOST_ROUNDS: usize = 100;
/// Least gain that counts as one.
const LEAST_GAIN: f64 = 1e-9;

/// Which of k groups each cell of a symmetric joint distribution belongs to, so that the second view of an image is in
/// the group of the first as often as possible in every group: the sum over groups of `P(g, g) / P(g)` is large, which
/// is k less the normalised cut. Unlike mutual information it does not ask for groups of equal size.
///
/// Pairs are joined greedily; then single cells move as long as that helps. Cells that nothing is in go to the group
/// that is joined first.
pub(super) fn cut(joint: &Square, k: usize) -> Vec<usize> {
    let side = joint.side;
    let mut sums = Sums::new(joint);
    let mut groups: Vec<usize> = (0..side).collect();
    let mut alive = groups.clone();
    while alive.len() > k {
        let Some((a, b)) = cheapest(&sums, &alive) else { break };
        sums.join(a, b);
        alive.retain(|&group| group != b);
        groups.iter_mut().filter(|group| **group == b).for_each(|group| *group = a);
    }
    let mut groups: Vec<usize> = groups.iter().map(|group| alive.partition_point(|g| g < group)).collect();
    refine(joint, &mut groups, alive.len());
    groups
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
