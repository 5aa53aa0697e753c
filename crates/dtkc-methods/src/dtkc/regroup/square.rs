//! Square matrices: joint distributions and systems of equations.

/// A square matrix, row-major.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in super::super) struct Square {
    pub(super) side: usize,
    pub(super) values: Vec<f64>,
}

impl Square {
    pub(super) fn resize(&mut self, side: usize) {
        self.side = side;
        self.values.resize(side * side, 0.0);
    }

    /// Adds `U^T V + V^T U` of the rows of U and V, so wide each.
    pub(super) fn add_joint(&mut self, first: &[f64], second: &[f64], width: usize) {
        self.resize(width);
        for (u, v) in first.chunks_exact(width).zip(second.chunks_exact(width)) {
            add_outer(&mut self.values, u, v);
            add_outer(&mut self.values, v, u);
        }
    }

    /// How often two of so many clusters come in a pair, both orders counted.
    pub(in super::super) fn of_pairs(side: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut counts = Self { side, values: vec![0.0; side * side] };
        pairs.for_each(|(one, other)| counts.add_pair(one as usize, other as usize));
        counts
    }

    /// The mean of distributions of the same size, of which each counts as much whatever its sum; `None` of none.
    pub(in super::super) fn mean(joints: &[Self]) -> Option<Self> {
        let mut mean = Self { side: joints.first()?.side, values: vec![0.0; joints[0].values.len()] };
        for joint in joints {
            let total = joint.values.iter().sum::<f64>().max(f64::MIN_POSITIVE) * joints.len() as f64;
            mean.values.iter_mut().zip(&joint.values).for_each(|(sum, value)| *sum += value / total);
        }
        Some(mean)
    }

    /// Counts a pair in both orders.
    pub(super) fn add_pair(&mut self, one: usize, other: usize) {
        self.values[one * self.side + other] += 1.0;
        self.values[other * self.side + one] += 1.0;
    }

    /// Mutual information of row and column under the normalised matrix, nats; 0 without anything in it.
    pub(in super::super) fn information(&self) -> f64 {
        let total = self.values.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        self.values.iter().map(|v| plogp(v / total)).sum::<f64>() + 2.0 * self.entropy()
    }

    /// Entropy of a row under the normalised matrix, nats: that of the sizes of clusters; 0 without anything in it.
    pub(in super::super) fn entropy(&self) -> f64 {
        let total: f64 = self.values.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        -self.values.chunks_exact(self.side.max(1)).map(|row| plogp(row.iter().sum::<f64>() / total)).sum::<f64>()
    }

    /// Sums over the cells of each of k groups.
    pub(super) fn grouped(&self, groups: &[usize], k: usize) -> Self {
        let mut sums = Self { side: k, values: vec![0.0; k * k] };
        for (row, &a) in self.values.chunks_exact(self.side.max(1)).zip(groups) {
            row.iter().zip(groups).for_each(|(value, &b)| sums.values[a * k + b] += value);
        }
        sums
    }

    /// Solves `self * x = right` in place for `columns` right sides, self symmetric and positive definite.
    pub(super) fn solve(mut self, right: &mut [f64], columns: usize) -> Option<()> {
        let side = self.side;
        for pivot in 0..side {
            let diagonal = self.values[pivot * side + pivot];
            if diagonal.is_nan() || diagonal <= 0.0 {
                return None;
            }
            for row in (0..side).filter(|&row| row != pivot) {
                let factor = self.values[row * side + pivot] / diagonal;
                for column in pivot..side {
                    self.values[row * side + column] -= factor * self.values[pivot * side + column];
                }
                for column in 0..columns {
                    right[row * columns + column] -= factor * right[pivot * columns + column];
                }
            }
        }
        for (row, values) in right.chunks_exact_mut(columns).enumerate() {
            values.iter_mut().for_each(|value| *value /= self.values[row * side + row]);
        }
        Some(())
    }
}

/// `p log p`, 0 at 0.
pub(super) fn plogp(p: f64) -> f64 {
    if p > 0.0 { p * p.ln() } else { 0.0 }
}

pub(super) fn add_outer(sums: &mut [f64], a: &[f64], b: &[f64]) {
    for (sums, &a) in sums.chunks_exact_mut(b.len()).zip(a) {
        sums.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn square(side: usize, value: impl Fn(usize, usize) -> f64) -> Square {
        Square { side, values: (0..side * side).map(|i| value(i / side, i % side)).collect() }
    }

    #[test]
    fn information_of_known_distributions() {
        assert!((square(4, |i, j| f64::from(i == j)).information() - 4f64.ln()).abs() < 1e-12);
        assert!(square(3, |_, _| 0.2).information().abs() < 1e-12);
        // sklearn.metrics.mutual_info_score(None, None, contingency=[[4, 1], [1, 4]])
        assert!(
            (square(2, |i, j| if i == j { 4.0 } else { 1.0 }).information() - 0.192_744_757_021_838_7).abs() < 1e-12
        );
        assert_eq!(square(2, |_, _| 0.0).information(), 0.0);
        // Rows of 1/4 and 3/4: scipy.stats.entropy([1, 3]).
        assert!((square(2, |i, j| (i + j + i * j) as f64).entropy() - 0.500_402_423_538_188_1).abs() < 1e-12);
    }

    #[test]
    fn a_mean_weighs_distributions_alike() {
        let pairs = |count: usize, pair: (u32, u32)| Square::of_pairs(2, std::iter::repeat_n(pair, count));
        assert_eq!(pairs(3, (0, 1)).values, [0.0, 3.0, 3.0, 0.0]);
        let mean = Square::mean(&[pairs(1, (0, 1)), pairs(50, (1, 1))]).unwrap();
        assert_eq!(mean.values, [0.0, 0.25, 0.25, 0.5]);
        assert!(Square::mean(&[]).is_none());
    }

    #[test]
    fn the_solution_solves() {
        let matrix = square(4, |i, j| 1.0 / (1 + i + j) as f64 + 2.0 * f64::from(i == j));
        let x: Vec<f64> = (0..8).map(|i| f64::from(i) - 2.5).collect();
        let mut right = vec![0.0; 8];
        for i in 0..4 {
            for j in 0..4 {
                (0..2).for_each(|c| right[i * 2 + c] += matrix.values[i * 4 + j] * x[j * 2 + c]);
            }
        }
        matrix.solve(&mut right, 2).unwrap();
        assert!(right.iter().zip(&x).all(|(a, b)| (a - b).abs() < 1e-9), "{right:?}");
        assert!(square(3, |_, _| 0.0).solve(&mut [0.0; 3], 1).is_none());
    }
}
