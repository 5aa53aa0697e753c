//! A way out of the usual local optimum, one class in two clusters while two classes share one.
//!
//! The fine clusters of the second output layer are nearly pure. Joined into k groups so that the groups of two views
//! tell as much as possible about each other, they make a new output layer. Where those groups beat the present
//! clusters by that measure, the layer takes their place. No labels are involved.
//!
//! Groups are made from memberships, in which views that nearly change places show. They are compared with the present
//! clusters by assignments: how certain the two output layers are differs, and says nothing about the groups.

mod coarsen;
mod square;

use burn::tensor::Tensor;

use crate::Output;
use coarsen::coarsen;
use square::{Square, add_outer};

/// Nats by which the groups must beat the present clusters.
const MARGIN: f64 = 0.01;
/// Logit of an image that is certain of its group.
const CERTAIN: f64 = 8.0;
/// Ridge of the least squares, as a part of the mean diagonal.
const RIDGE: f64 = 1e-3;

/// A new output layer: weight `[hidden, k]` row-major, bias `[k]`.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputLayer {
    /// Weights.
    pub weight: Vec<f32>,
    /// Bias.
    pub bias: Vec<f32>,
}

/// Sums over paired batches, from which a new output layer follows.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// How often two views were assigned to each pair of clusters.
    assigned: Square,
    /// The same of the fine clusters.
    assigned_fine: Square,
    /// Joint distribution of the fine memberships, times the number of pairs.
    fine: Square,
    /// `E^T E` of the embeddings with a column of ones.
    gram: Square,
    /// `E^T F` with the fine memberships F.
    cross: Vec<f64>,
}

impl Evidence {
    /// Adds the output for a paired batch. Does nothing without fine clusters.
    pub fn add(&mut self, output: &Output) {
        let Some(fine) = &output.fine else { return };
        let (membership, embedding) = (Rows::read(&output.membership), Rows::read(&output.embedding).with_ones());
        let fine = Rows::read(fine);
        self.assigned.add_joint(&membership.assigned());
        self.assigned_fine.add_joint(&fine.assigned());
        self.fine.add_joint(&fine);
        self.gram.resize(embedding.width);
        self.cross.resize(embedding.width * fine.width, 0.0);
        for (e, f) in embedding.iter().zip(fine.iter()) {
            add_outer(&mut self.gram.values, e, e);
            add_outer(&mut self.cross, e, f);
        }
    }

    /// A better output layer, if there is one.
    pub fn propose(&self) -> Option<OutputLayer> {
        let k = self.assigned.side;
        if self.fine.side <= k || k == 0 {
            return None;
        }
        let groups = coarsen(&self.fine, k);
        let better = self.assigned_fine.grouped(&groups, k).information() - self.assigned.information();
        if better.is_nan() || better < MARGIN {
            return None;
        }
        self.layer(&groups, k)
    }

    /// Ridge regression of the groups' memberships on the embedding.
    fn layer(&self, groups: &[usize], k: usize) -> Option<OutputLayer> {
        let side = self.gram.side;
        let mut right = vec![0.0; side * k];
        for (row, cross) in right.chunks_exact_mut(k).zip(self.cross.chunks_exact(groups.len())) {
            groups.iter().zip(cross).for_each(|(&group, value)| row[group] += value);
        }
        let mut left = self.gram.clone();
        let ridge = RIDGE * (0..side).map(|i| left.values[i * side + i]).sum::<f64>() / side as f64;
        (0..side).for_each(|i| left.values[i * side + i] += ridge);
        left.solve(&mut right, k)?;
        let mut values = right.into_iter().map(|value| (CERTAIN * value) as f32);
        let weight: Vec<f32> = values.by_ref().take((side - 1) * k).collect();
        let layer = OutputLayer { weight, bias: values.collect() };
        layer.weight.iter().chain(&layer.bias).all(|value| value.is_finite()).then_some(layer)
    }
}

/// Rows read back from the device.
struct Rows {
    width: usize,
    values: Vec<f64>,
}

impl Rows {
    fn read(tensor: &Tensor<2>) -> Self {
        Self { width: tensor.dims()[1], values: tensor.clone().detach().into_data().iter::<f64>().collect() }
    }

    /// 1 at the largest value of every row, 0 elsewhere.
    fn assigned(&self) -> Self {
        let best = |row: &[f64]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a)));
        let ones = |row: &[f64], best: Option<usize>| (0..row.len()).map(move |i| f64::from(u8::from(best == Some(i))));
        Self { width: self.width, values: self.iter().flat_map(|row| ones(row, best(row))).collect() }
    }

    fn with_ones(self) -> Self {
        let rows = self.iter().flat_map(|row| row.iter().copied().chain([1.0])).collect();
        Self { width: self.width + 1, values: rows }
    }

    fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.width)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Twelve pairs of views over six cells, two cells per class; the second views are in either cell of the class.
    fn paired_output(cluster_of: [usize; 6]) -> Output {
        let device = burn::tensor::Device::flex();
        let cells: Vec<usize> = (0..12).map(|i| i / 2).chain((0..12).map(|i| (i / 4) * 2 + i % 2)).collect();
        let one_hot = |width: usize, of: &dyn Fn(usize) -> usize| {
            let values: Vec<f32> = cells
                .iter()
                .flat_map(|&cell| (0..width).map(move |j| (cell, j)))
                .map(|(cell, j)| f32::from(u8::from(of(cell) == j)))
                .collect();
            Tensor::<2>::from_data(burn::tensor::TensorData::new(values, [cells.len(), width]), &device)
        };
        let membership = one_hot(3, &|cell| cluster_of[cell]);
        Output {
            blocks: vec![],
            embedding: one_hot(6, &|cell| cell),
            logits: membership.clone(),
            membership,
            fine: Some(one_hot(6, &|cell| cell)),
            statistics: vec![],
        }
    }

    #[test]
    fn a_split_class_and_a_merged_pair_are_put_right() {
        let mut evidence = Evidence::default();
        evidence.add(&paired_output([0, 1, 2, 2, 2, 2]));
        let layer = evidence.propose().unwrap();
        // The embedding of a cell is a unit vector, so its logits are a row of the weights.
        let best = |cell: usize| {
            let logits: Vec<f32> = (0..3).map(|j| layer.weight[cell * 3 + j] + layer.bias[j]).collect();
            (0..3).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap()
        };
        let groups: Vec<usize> = (0..6).map(best).collect();
        assert!(groups[0] == groups[1] && groups[2] == groups[3] && groups[4] == groups[5], "{groups:?}");
        assert!(groups[0] != groups[2] && groups[2] != groups[4] && groups[0] != groups[4], "{groups:?}");
    }

    #[test]
    fn good_clusters_stay() {
        let mut evidence = Evidence::default();
        assert_eq!(evidence.propose(), None);
        evidence.add(&paired_output([0, 0, 1, 1, 2, 2]));
        assert_eq!(evidence.propose(), None);
    }
}
