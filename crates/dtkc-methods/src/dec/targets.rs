//! The memberships that the network is drawn to: sharper ones of its own.

use dtkc_core::NamedArray;
use dtkc_core::Values;

use crate::LearnError;
use crate::arrays;

/// The targets of all items, as they were computed last.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Targets {
    /// `[n, k]`; empty before the first time.
    pub values: Vec<f32>,
    /// Soft size of every cluster: the sum of its memberships.
    pub sizes: Vec<f64>,
    /// The cluster of every item.
    pub labels: Vec<u32>,
}

/// `p_ij = (q_ij^2 / f_j) / sum_j (q_ij^2 / f_j)` with the sizes `f_j`.
pub fn sharpened(memberships: &[f32], sizes: &[f64]) -> Vec<f32> {
    let mut targets = Vec::with_capacity(memberships.len());
    let mut row = vec![0.0; sizes.len()];
    for memberships in memberships.chunks_exact(sizes.len().max(1)) {
        for ((weight, &q), &size) in row.iter_mut().zip(memberships).zip(sizes) {
            // A cluster without any membership draws nothing.
            *weight = f64::from(q) * f64::from(q) / size.max(1e-12);
        }
        let sum: f64 = row.iter().sum();
        targets.extend(row.iter().map(|weight| (weight / sum.max(1e-300)) as f32));
    }
    targets
}

/// The sum of the memberships of every cluster.
pub(super) fn sizes(memberships: &[f32], clusters: usize) -> Vec<f64> {
    let mut sizes = vec![0.0; clusters];
    for row in memberships.chunks_exact(clusters.max(1)) {
        sizes.iter_mut().zip(row).for_each(|(size, &q)| *size += f64::from(q));
    }
    sizes
}

impl Targets {
    /// From the memberships of all items, `[n, k]`; says which part of the items changed its cluster.
    pub fn update(&mut self, memberships: &[f32], clusters: usize) -> f64 {
        let largest = |row: &[f32]| (0..row.len()).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0) as u32;
        let labels: Vec<u32> = memberships.chunks_exact(clusters.max(1)).map(largest).collect();
        let changed = labels.iter().zip(&self.labels).filter(|(a, b)| a != b).count();
        let share = match self.labels.len() == labels.len() {
            true => changed as f64 / labels.len().max(1) as f64,
            false => 1.0,
        };
        self.sizes = sizes(memberships, clusters);
        self.values = sharpened(memberships, &self.sizes);
        self.labels = labels;
        share
    }

    pub(super) fn save(&self) -> Vec<NamedArray> {
        vec![
            NamedArray::list("targets.values", Values::F32(self.values.clone())),
            NamedArray::list("targets.sizes", Values::F64(self.sizes.clone())),
            NamedArray::list("targets.labels", Values::U32(self.labels.clone())),
        ]
    }

    pub(super) fn restore(arrays: &[NamedArray]) -> Result<Self, LearnError> {
        Ok(Self {
            values: arrays::f32s(arrays, "targets.values", None)?,
            sizes: arrays::f64s(arrays, "targets.sizes", None)?,
            labels: arrays::u32s(arrays, "targets.labels", None)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_sharper_and_favour_small_clusters() {
        let q = [0.6, 0.4, 0.9, 0.1, 0.5, 0.5];
        let mut targets = Targets::default();
        assert_eq!(targets.update(&q, 2), 1.0);
        // By hand: f = (2, 1); p = q^2 / f: .18 : .16, .405 : .01, .125 : .25.
        let expected = [0.18 / 0.34, 0.16 / 0.34, 0.405 / 0.415, 0.01 / 0.415, 1.0 / 3.0, 2.0 / 3.0];
        assert!(targets.values.iter().zip(expected).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6), "{targets:?}");
        assert_eq!(targets.labels, [0, 0, 0]);
        assert_eq!(targets.update(&[0.6, 0.4, 0.1, 0.9, 0.5, 0.5], 2), 1.0 / 3.0);
    }

    #[test]
    fn a_cluster_without_members_is_no_division_by_zero() {
        assert_eq!(sharpened(&[1.0, 0.0], &[1.0, 0.0]), [1.0, 0.0]);
    }
}
