//! Clusters from fine clusters.
//!
//! Fine clusters, several for each cluster, are nearly pure, and are learnt without a network's having to decide which of
//! them belong together. Here they are joined into k groups: those between which the two views of an image change most
//! often. By least squares on the embedding the groups become an output layer. No labels are involved.

mod coarsen;
mod cut;
mod square;

use burn::tensor::Tensor;

pub(super) use coarsen::{coarsen, joinings};
use cut::group;
use dtkc_core::{Output, OutputLayer};
pub(super) use square::Square;
use square::add_outer;

use crate::kmeans::Points;

/// Logit of an image that is certain of its group.
const CERTAIN: f64 = 8.0;
/// Ridge of the least squares, as a part of the mean diagonal.
const RIDGE: f64 = 1e-3;

/// Least squares cost the cube of the embedding's size: a wider one is left alone.
const WIDEST: usize = 1024;

/// Part of a mean cluster's share below which a cluster counts as empty.
const EMPTY: f64 = 0.02;

/// What paired batches say, from which a new output layer follows.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Views in every cluster.
    clusters: Vec<f64>,
    /// How often the two views of an image are in each pair of fine clusters, both orders counted.
    joint: Square,
    /// `E^T E` of the embeddings with a column of ones.
    gram: Square,
    /// `E^T F` with the fine memberships F.
    with_fine: Vec<f64>,
}

impl Evidence {
    /// Adds the output for a paired batch. Does nothing without fine clusters.
    pub fn add(&mut self, output: &Output) {
        let Some(fine) = &output.fine else { return };
        if output.embedding.dims()[1] > WIDEST {
            return;
        }
        let (membership, fine) = (Rows::read(&output.membership).likeliest(), Rows::read(fine));
        let embedding = Rows::read(&output.embedding).with_ones();
        self.clusters.resize(membership.width, 0.0);
        let likeliest = fine.likeliest();
        let (first, second) = likeliest.values.split_at(likeliest.values.len() / 2);
        self.joint.add_joint(first, second, fine.width);
        self.gram.resize(embedding.width);
        self.with_fine.resize(embedding.width * fine.width, 0.0);
        for (i, e) in embedding.iter().enumerate() {
            self.clusters.iter_mut().zip(membership.row(i)).for_each(|(sum, member)| *sum += member);
            add_outer(&mut self.gram.values, e, e);
            add_outer(&mut self.with_fine, e, fine.row(i));
        }
    }

    /// Adds what neighbours say: `fine` is the fine cluster of every image, `None` where it is not known, and `neighbours`
    /// names those of each. They count as much as all views together: views tell what may change in an image, neighbours
    /// which images differ by no more than that, and both are wrong in their own way.
    pub fn add_neighbours<'a>(&mut self, fine: &[Option<u32>], neighbours: impl Fn(usize) -> &'a [u32]) {
        let side = self.joint.side;
        let mut joint = Square::default();
        joint.resize(side);
        let known =
            |item: usize| fine.get(item).copied().flatten().map(|cell| cell as usize).filter(|&cell| cell < side);
        for item in 0..fine.len() {
            let Some(own) = known(item) else { continue };
            for other in neighbours(item).iter().filter_map(|&other| known(other as usize)) {
                joint.add_pair(own, other);
            }
        }
        let (views, total): (f64, f64) = (self.joint.values.iter().sum(), joint.values.iter().sum());
        if total > 0.0 {
            self.joint.values.iter_mut().zip(&joint.values).for_each(|(sum, value)| *sum += value * views / total);
        }
    }

    /// Whether a cluster has no images, or next to none.
    pub fn has_empty_cluster(&self) -> bool {
        let least = EMPTY * self.clusters.iter().sum::<f64>() / self.clusters.len().max(1) as f64;
        self.clusters.iter().any(|&count| count < least)
    }

    /// An output layer for clusters that are known for some embeddings; `None` where it cannot be.
    pub fn layer_of(rows: Points<'_>, clusters: &[u32], k: usize) -> Option<OutputLayer> {
        if rows.width > WIDEST {
            return None;
        }
        let mut gram = Square::default();
        gram.resize(rows.width + 1);
        let mut with_clusters = vec![0.0; gram.side * k];
        for (i, &cluster) in clusters.iter().enumerate() {
            let row: Vec<f64> = rows.row(i).iter().map(|&value| f64::from(value)).chain([1.0]).collect();
            add_outer(&mut gram.values, &row, &row);
            row.iter().enumerate().for_each(|(at, value)| with_clusters[at * k + cluster as usize] += value);
        }
        layer(&gram, with_clusters, k)
    }

    /// An output layer whose clusters are groups of fine clusters; `None` where there are not enough of them.
    pub fn groups(&self) -> Option<OutputLayer> {
        let k = self.clusters.len();
        if self.joint.side <= k || k == 0 {
            return None;
        }
        layer(&self.gram, self.targets(&group(&self.joint, k)), k)
    }

    /// `E^T G` with the memberships G in groups of fine clusters.
    fn targets(&self, groups: &[usize]) -> Vec<f64> {
        let k = self.clusters.len();
        let mut with_groups = vec![0.0; self.gram.side * k];
        for (row, fine) in with_groups.chunks_exact_mut(k).zip(self.with_fine.chunks_exact(groups.len())) {
            groups.iter().zip(fine).for_each(|(&group, value)| row[group] += value);
        }
        with_groups
    }
}

/// The output layer that fits `E^T G` best, E the embeddings with a column of ones and G the memberships in k clusters: ridge
/// regression.
fn layer(gram: &Square, mut with_clusters: Vec<f64>, k: usize) -> Option<OutputLayer> {
    let side = gram.side;
    let mut left = gram.clone();
    let ridge = RIDGE * (0..side).map(|i| left.values[i * side + i]).sum::<f64>() / side as f64;
    (0..side).for_each(|i| left.values[i * side + i] += ridge);
    left.solve(&mut with_clusters, k)?;
    // Weights `[hidden + 1, k]`, the bias last.
    let mut values = with_clusters.into_iter().map(|value| (CERTAIN * value) as f32);
    let weight: Vec<f32> = values.by_ref().take((side - 1) * k).collect();
    let layer = OutputLayer { weight, bias: values.collect() };
    layer.weight.iter().chain(&layer.bias).all(|value| value.is_finite()).then_some(layer)
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
        assert_eq!(evidence.groups(), None);
        evidence.add(&paired_output([0, 1, 2, 2, 2, 2]));
        let layer = evidence.groups().unwrap();
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
    fn neighbours_join_what_no_view_joins() {
        // Views never leave their cell. By neighbours 0 and 3, 1 and 4, 2 and 5 belong together.
        let cells: Vec<Option<u32>> = (0..12).map(|item| Some(item / 2)).chain([None]).collect();
        let neighbours: Vec<[u32; 2]> = (0..13u32).map(|item| [(item + 6) % 12, item ^ 1]).collect();
        let mut output = paired_output([0, 0, 1, 1, 2, 2]);
        output.fine = Some(output.fine.unwrap().narrow(0, 0, 12).repeat_dim(0, 2));
        let mut evidence = Evidence::default();
        evidence.add(&output);
        evidence.add_neighbours(&cells, |item| &neighbours[item]);
        let groups = group(&evidence.joint, 3);
        assert!((0..3).all(|cell| groups[cell] == groups[cell + 3]), "{groups:?}");
        let before = evidence.joint.clone();
        evidence.add_neighbours(&[None; 3], |_| &[0, 1]);
        assert_eq!(evidence.joint, before, "nothing is known, nothing changes");
    }

    #[test]
    fn an_empty_cluster_is_seen() {
        let found = |cluster_of| {
            let mut evidence = Evidence::default();
            evidence.add(&paired_output(cluster_of));
            evidence.has_empty_cluster()
        };
        assert!(found([0, 0, 0, 0, 1, 1]));
        assert!(!found([0, 0, 0, 1, 1, 2]));
    }
}
