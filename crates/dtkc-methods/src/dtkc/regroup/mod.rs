//! A way out of the usual local optimum, one class in two clusters while two classes share one.
//!
//! The fine clusters of the second output layer are nearly pure. Joined into k groups so that the groups of two views
//! tell as much as possible about each other, they make a new output layer. Where it beats the present clusters by that
//! measure, it takes their place. No labels are involved.
//!
//! The present output layer was trained for its clusters and a new one was not. To compare the clusters and not the
//! training, both are made into output layers in the same way, by least squares on the embedding.

mod coarsen;
mod cut;
mod square;

use burn::tensor::Tensor;

use coarsen::coarsen;
use cut::group;
use dtkc_core::{Output, OutputLayer};
use square::{Square, add_outer};

/// Nats by which the groups must beat the present clusters.
const MARGIN: f64 = 0.01;
/// Logit of an image that is certain of its group.
const CERTAIN: f64 = 8.0;
/// Ridge of the least squares, as a part of the mean diagonal.
const RIDGE: f64 = 1e-3;

/// Least squares cost the cube of the embedding's size: a wider one is left alone.
const WIDEST: usize = 1024;

/// What paired batches say, from which a new output layer follows.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    clusters: usize,
    /// Joint distribution of the fine clusters of two views, times the number of pairs.
    fine: Square,
    /// The same, each view counted for its likeliest fine cluster alone.
    hard: Square,
    /// `E^T E` of the embeddings with a column of ones.
    gram: Square,
    /// `E^T U` with the memberships U.
    with_clusters: Vec<f64>,
    /// `E^T F` with the fine memberships F.
    with_fine: Vec<f64>,
    /// The embeddings of the first and of the second views.
    embeddings: [Vec<f64>; 2],
}

impl Evidence {
    /// Adds the output for a paired batch. Does nothing without fine clusters.
    pub fn add(&mut self, output: &Output) {
        let Some(fine) = &output.fine else { return };
        if output.embedding.dims()[1] > WIDEST {
            return;
        }
        let (membership, fine) = (Rows::read(&output.membership), Rows::read(fine));
        let embedding = Rows::read(&output.embedding).with_ones();
        self.clusters = membership.width;
        self.fine.add_joint(&fine);
        self.hard.add_joint(&fine.likeliest());
        self.gram.resize(embedding.width);
        self.with_clusters.resize(embedding.width * membership.width, 0.0);
        self.with_fine.resize(embedding.width * fine.width, 0.0);
        for (i, e) in embedding.iter().enumerate() {
            add_outer(&mut self.gram.values, e, e);
            add_outer(&mut self.with_clusters, e, membership.row(i));
            add_outer(&mut self.with_fine, e, fine.row(i));
        }
        let (first, second) = embedding.values.split_at(embedding.values.len() / 2);
        self.embeddings[0].extend(first);
        self.embeddings[1].extend(second);
    }

    /// A better output layer, if there is one.
    pub fn propose(&self) -> Option<OutputLayer> {
        let k = self.clusters;
        if self.fine.side <= k || k == 0 {
            return None;
        }
        let groups = coarsen(&self.fine, k);
        let (new, present) = (self.fit(self.targets(&groups))?, self.fit(self.with_clusters.clone())?);
        let better = self.information(&new) - self.information(&present);
        if better.is_nan() || better < MARGIN {
            return None;
        }
        self.layer(new)
    }

    /// `E^T G` with the memberships G in groups of fine clusters.
    fn targets(&self, groups: &[usize]) -> Vec<f64> {
        let k = self.clusters;
        let mut with_groups = vec![0.0; self.gram.side * k];
        for (row, fine) in with_groups.chunks_exact_mut(k).zip(self.with_fine.chunks_exact(groups.len())) {
            groups.iter().zip(fine).for_each(|(&group, value)| row[group] += value);
        }
        with_groups
    }

    fn layer(&self, weights: Vec<f64>) -> Option<OutputLayer> {
        let k = self.clusters;
        let mut values = weights.into_iter().map(|value| (CERTAIN * value) as f32);
        let weight: Vec<f32> = values.by_ref().take((self.gram.side - 1) * k).collect();
        let layer = OutputLayer { weight, bias: values.collect() };
        layer.weight.iter().chain(&layer.bias).all(|value| value.is_finite()).then_some(layer)
    }

    /// An output layer for groups of fine clusters, whatever the present clusters are.
    pub fn groups(&self) -> Option<OutputLayer> {
        let k = self.clusters;
        if self.fine.side <= k || k == 0 {
            return None;
        }
        self.layer(self.fit(self.targets(&group(&self.hard, k)))?)
    }

    /// Ridge regression on the embedding: weights `[hidden + 1, k]`, the bias last.
    fn fit(&self, mut with_targets: Vec<f64>) -> Option<Vec<f64>> {
        let side = self.gram.side;
        let mut left = self.gram.clone();
        let ridge = RIDGE * (0..side).map(|i| left.values[i * side + i]).sum::<f64>() / side as f64;
        (0..side).for_each(|i| left.values[i * side + i] += ridge);
        left.solve(&mut with_targets, self.clusters)?;
        Some(with_targets)
    }

    /// Mutual information between the clusters to which these weights assign the two views.
    fn information(&self, weights: &[f64]) -> f64 {
        let mut joint = Square::default();
        joint.resize(self.clusters);
        let [first, second] = &self.embeddings;
        let width = self.gram.side;
        for (a, b) in first.chunks_exact(width).zip(second.chunks_exact(width)) {
            let (a, b) = (assigned(a, weights, self.clusters), assigned(b, weights, self.clusters));
            joint.values[a * self.clusters + b] += 1.0;
            joint.values[b * self.clusters + a] += 1.0;
        }
        joint.information()
    }
}

/// The cluster of an embedding.
fn assigned(embedding: &[f64], weights: &[f64], k: usize) -> usize {
    let mut logits = vec![0.0; k];
    for (row, e) in weights.chunks_exact(k).zip(embedding) {
        logits.iter_mut().zip(row).for_each(|(logit, weight)| *logit += weight * e);
    }
    (0..k).max_by(|&a, &b| logits[a].total_cmp(&logits[b]).then(b.cmp(&a))).unwrap_or(0)
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

    fn with_ones(self) -> Self {
        let rows = self.iter().flat_map(|row| row.iter().copied().chain([1.0])).collect();
        Self { width: self.width + 1, values: rows }
    }

    /// 1 for the largest value of every row, 0 for the others.
    fn likeliest(&self) -> Self {
        let mut values = vec![0.0; self.values.len()];
        for (to, row) in values.chunks_exact_mut(self.width).zip(self.iter()) {
            let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a))).unwrap_or(0);
            to[best] = 1.0;
        }
        Self { width: self.width, values }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..][..self.width]
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
