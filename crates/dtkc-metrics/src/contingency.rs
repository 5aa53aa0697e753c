//! How often every label meets every cluster.

use crate::MetricError;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Largest dense table of counts; beyond it pairs are sorted.
const DENSE: usize = 1 << 22;

/// Counts of every pair (label, cluster) that occurs.
#[derive(Debug, Clone)]
pub(crate) struct Contingency {
    /// Distinct labels, ascending.
    pub(crate) classes: Vec<i64>,
    /// Distinct clusters, ascending.
    pub(crate) clusters: Vec<i64>,
    /// Class index, cluster index, count; only counts above zero, in ascending order.
    pub(crate) cells: Vec<(usize, usize, u64)>,
    /// Rows that count.
    pub(crate) total: u64,
}

impl Contingency {
    pub(crate) fn new(truth: &[i64], clusters: &[i64]) -> Result<Self, MetricError> {
        if truth.len() != clusters.len() {
            return Err(MetricError::Length { truth: truth.len(), clusters: clusters.len() });
        }
        let kept = || truth.iter().zip(clusters).filter(|(t, c)| **t >= 0 && **c >= 0);
        let (class_values, class_index) = index(kept().map(|(t, _)| *t));
        let (cluster_values, cluster_index) = index(kept().map(|(_, c)| *c));
        if class_values.is_empty() {
            return Err(MetricError::Empty);
        }
        let pairs = kept().map(|(t, c)| (class_index.of(*t), cluster_index.of(*c)));
        let cells = match class_values.len() * cluster_values.len() {
            size if size <= DENSE => dense(pairs, class_values.len(), cluster_values.len()),
            _ => sorted(pairs),
        };
        let total = cells.iter().map(|cell| cell.2).sum();
        Ok(Self { classes: class_values, clusters: cluster_values, cells, total })
    }

    /// From (label, cluster, count), in any order.
    pub(crate) fn from_counts(counts: &[(i64, i64, u64)]) -> Result<Self, MetricError> {
        let mut merged = BTreeMap::new();
        for &(class, cluster, count) in counts.iter().filter(|c| c.0 >= 0 && c.1 >= 0 && c.2 > 0) {
            *merged.entry((class, cluster)).or_insert(0) += count;
        }
        let (classes, class_index) = index(merged.keys().map(|key: &(i64, i64)| key.0));
        let (clusters, cluster_index) = index(merged.keys().map(|key| key.1));
        if classes.is_empty() {
            return Err(MetricError::Empty);
        }
        let cell = |(key, count): (&(i64, i64), &u64)| (class_index.of(key.0), cluster_index.of(key.1), *count);
        let cells = merged.iter().map(cell).collect();
        Ok(Self { classes, clusters, cells, total: merged.values().sum() })
    }

    /// Size of every class.
    pub(crate) fn class_sizes(&self) -> Vec<u64> {
        self.sizes(self.classes.len(), |cell| cell.0)
    }

    /// Size of every cluster.
    pub(crate) fn cluster_sizes(&self) -> Vec<u64> {
        self.sizes(self.clusters.len(), |cell| cell.1)
    }

    fn sizes(&self, len: usize, side: impl Fn(&(usize, usize, u64)) -> usize) -> Vec<u64> {
        let mut sizes = vec![0; len];
        self.cells.iter().for_each(|cell| sizes[side(cell)] += cell.2);
        sizes
    }
}

fn dense(pairs: impl Iterator<Item = (usize, usize)>, rows: usize, columns: usize) -> Vec<(usize, usize, u64)> {
    let mut counts = vec![0u64; rows * columns];
    pairs.for_each(|(row, column)| counts[row * columns + column] += 1);
    let cells = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
    cells.map(|(at, count)| (at / columns, at % columns, count)).collect()
}

fn sorted(pairs: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize, u64)> {
    let mut pairs: Vec<(usize, usize)> = pairs.collect();
    pairs.sort_unstable();
    pairs.chunk_by(|a, b| a == b).map(|run| (run[0].0, run[0].1, run.len() as u64)).collect()
}

/// Where each distinct value stands in ascending order.
enum Index {
    /// By value: labels are usually small numbers.
    Table(Vec<u32>),
    Map(HashMap<i64, usize>),
}

impl Index {
    fn of(&self, value: i64) -> usize {
        match self {
            Index::Table(table) => table[value as usize] as usize,
            Index::Map(map) => map[&value],
        }
    }
}

fn index(values: impl Iterator<Item = i64> + Clone) -> (Vec<i64>, Index) {
    const SMALL: i64 = 1 << 20;
    if values.clone().all(|v| v < SMALL) {
        let top = values.clone().max().map_or(0, |v| v as usize + 1);
        let mut table = vec![0u32; top];
        values.for_each(|v| table[v as usize] = 1);
        let distinct: Vec<i64> = (0..top as i64).filter(|v| table[*v as usize] == 1).collect();
        distinct.iter().enumerate().for_each(|(at, v)| table[*v as usize] = at as u32);
        return (distinct, Index::Table(table));
    }
    let distinct: Vec<i64> = values.collect::<BTreeSet<_>>().into_iter().collect();
    let map = distinct.iter().enumerate().map(|(at, v)| (*v, at)).collect();
    (distinct, Index::Map(map))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_negative_values() {
        let table = Contingency::new(&[5, 5, -1, 9, 9], &[0, 0, 0, -7, 2]).unwrap();
        assert_eq!((table.classes, table.clusters), (vec![5, 9], vec![0, 2]));
        assert_eq!(table.cells, [(0, 0, 2), (1, 1, 1)]);
        assert_eq!(table.total, 3);
    }

    #[test]
    fn huge_label_values_and_many_classes() {
        let truth: Vec<i64> = (0..5000).map(|i| i * 1_000_000_007).collect();
        let clusters: Vec<i64> = (0..5000).rev().collect();
        let table = Contingency::new(&truth, &clusters).unwrap();
        assert_eq!(table.cells.len(), 5000);
        assert_eq!(table.cells[0], (0, 4999, 1));
        assert_eq!(table.class_sizes(), vec![1; 5000]);
    }

    #[test]
    fn dense_and_sorted_agree() {
        let pairs = || (0..1000usize).map(|i| (i * i % 17, i * 3 % 5));
        assert_eq!(dense(pairs(), 17, 5), sorted(pairs()));
    }

    #[test]
    fn bad_input_is_refused() {
        assert_eq!(Contingency::new(&[1], &[]).unwrap_err(), MetricError::Length { truth: 1, clusters: 0 });
        assert_eq!(Contingency::new(&[], &[]).unwrap_err(), MetricError::Empty);
        assert_eq!(Contingency::new(&[-1], &[3]).unwrap_err(), MetricError::Empty);
    }
}
