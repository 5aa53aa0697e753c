//! Clusters of a model file that people merge, split and name.

use dtkc_infer::Names;
use dtkc_onnx::{Edit, Metadata, Split};

use crate::error::TrainError;
use crate::outliers::Seen;

/// Two-means begins with draws from it.
const SEED: u64 = 0;
/// The variance along the direction is at least this part of the squared distance of the halves' middles.
const LEAST: f64 = 1e-4;

/// What should be done with the clusters of a file. All ids are those from before any of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Clusters that become one, each group by itself.
    pub merge: Vec<Vec<usize>>,
    /// Clusters that become two.
    pub split: Vec<usize>,
    /// Names of clusters.
    pub name: Vec<(usize, String)>,
}

impl Wishes {
    /// Whether nothing is wished for.
    pub fn is_empty(&self) -> bool {
        self.merge.is_empty() && self.split.is_empty() && self.name.is_empty()
    }

    /// The edits in an order in which the ids stay those from before: names change none, splits add some at the end, and merges
    /// come last, from the highest id down.
    pub fn edits(&self, metadata: &Metadata, seen: Option<&Seen>) -> Result<Vec<Edit>, TrainError> {
        self.check(metadata.k())?;
        let mut edits = Vec::new();
        let mut names = Names::default();
        for (id, name) in &self.name {
            names.set(*id, name, metadata.k()).map_err(TrainError::Setting)?;
            edits.push(Edit::Name(*id, Some(name.trim().to_owned())));
        }
        for &cluster in &self.split {
            let seen = seen.ok_or_else(|| {
                let text = "to split a cluster its items are needed; name the dataset that the model was trained on with --data";
                TrainError::Setting(text.into())
            })?;
            edits.push(Edit::Split(cut(seen, cluster, metadata.clusters[cluster].size)?));
        }
        let mut groups = self.merge.clone();
        edits.extend(in_turn(&mut groups).into_iter().map(Edit::Merge));
        Ok(edits)
    }

    fn check(&self, k: usize) -> Result<(), TrainError> {
        let ids = self.merge.iter().flatten().chain(&self.split);
        if let Some(id) = ids.clone().find(|&&id| id >= k) {
            let text = format!("there is no cluster {id}; the model has clusters 0 to {}", k.saturating_sub(1));
            return Err(TrainError::Setting(text));
        }
        let mut all: Vec<usize> = ids.copied().collect();
        all.sort_unstable();
        match all.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(TrainError::Setting(format!(
                "cluster {} is to be merged or split twice; do one after the other",
                pair[0]
            ))),
            None => Ok(()),
        }
    }
}

/// Groups to merge, one after the other, each with the ids that it has when its turn comes: a merge moves the ids above those that
/// are gone down.
fn in_turn(groups: &mut [Vec<usize>]) -> Vec<Vec<usize>> {
    let mut turns = Vec::new();
    for turn in 0..groups.len() {
        let group = groups[turn].clone();
        let lowest = group.iter().copied().min().unwrap_or(0);
        let gone = |below: usize| group.iter().filter(|&&id| id != lowest && id < below).count();
        for later in groups[turn + 1..].iter_mut().flatten() {
            *later -= gone(*later);
        }
        turns.push(group);
    }
    turns
}

/// Where a cluster of `size` training items is cut: two-means of its items in the embedding, and between the middles of the halves a plane.
/// How sure an item is of its side is what it would be if both were heaps of one width: the slope is the distance of the middles over the
/// variance along their line.
pub fn cut(seen: &Seen, cluster: usize, size: u64) -> Result<Split, TrainError> {
    let members: Vec<u32> =
        (0..seen.clusters.len()).filter(|&item| seen.clusters[item] == cluster).map(|item| item as u32).collect();
    let Some(halves) = dtkc_map::halves(&seen.embedding, seen.width, &members, SEED) else {
        return Err(TrainError::Mismatch(format!(
            "cluster {cluster} cannot be split: {} of the items that were looked at are in it, and four that differ are needed; \
             use a larger dataset",
            members.len()
        )));
    };
    let row = |&item: &u32| &seen.embedding[item as usize * seen.width..][..seen.width];
    let mean = |part: &[u32]| {
        let mut sums = vec![0.0; seen.width];
        for item in part {
            sums.iter_mut().zip(row(item)).for_each(|(sum, value)| *sum += f64::from(*value) / part.len() as f64);
        }
        sums
    };
    let (first, second) = (mean(&halves.first), mean(&halves.second));
    let line: Vec<f64> = second.iter().zip(&first).map(|(b, a)| b - a).collect();
    let square: f64 = line.iter().map(|value| value * value).sum();
    let along = |point: &[f64]| point.iter().zip(&line).map(|(value, part)| value * part).sum::<f64>();
    let spread = |part: &[u32], middle: &[f64]| {
        let middle = along(middle);
        let apart = part.iter().map(|item| {
            let at: f64 = row(item).iter().zip(&line).map(|(value, part)| f64::from(*value) * part).sum();
            (at - middle).powi(2)
        });
        apart.sum::<f64>()
    };
    // Along the line itself, which is as long as the middles are apart.
    let sums = spread(&halves.first, &first) + spread(&halves.second, &second);
    let variance = (sums / members.len() as f64 / square).max(LEAST * square);
    let middle = (along(&first) + along(&second)) / 2.0;
    let share = halves.second.len() as f64 / members.len() as f64;
    Ok(Split {
        cluster,
        direction: line.iter().map(|part| (part / variance) as f32).collect(),
        offset: (-middle / variance) as f32,
        size: (share * size as f64).round() as u64,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_cut_between_its_heaps() {
        // Cluster 0: six items around (0, 5) and four around (10, 5), each with a variance of .25 along the line; another cluster far away.
        let heap = |x: f32, count: usize| (0..count).flat_map(move |i| [x + if i % 2 == 0 { 0.5 } else { -0.5 }, 5.0]);
        let embedding: Vec<f32> = heap(0.0, 6).chain(heap(10.0, 4)).chain(heap(100.0, 2)).collect();
        let clusters = [vec![0; 10], vec![1; 2]].concat();
        let split = cut(&Seen { width: 2, embedding, clusters }, 0, 1000).unwrap();
        // By hand: z = (x - 5) 10 / .25.
        assert!((split.direction[0] - 40.0).abs() < 1e-3 && split.direction[1].abs() < 1e-3, "{split:?}");
        assert!((split.offset + 200.0).abs() < 1e-2, "{split:?}");
        assert_eq!((split.cluster, split.size), (0, 400));
    }

    #[test]
    fn too_few_items_are_refused() {
        let seen = Seen { width: 1, embedding: vec![1.0; 9], clusters: vec![0; 9] };
        assert!(cut(&seen, 0, 9).unwrap_err().to_string().contains("cluster 0 cannot be split: 9 of the items"));
        assert!(cut(&seen, 1, 9).unwrap_err().to_string().contains("0 of the items"));
    }

    #[test]
    fn ids_are_those_from_before_whatever_comes_first() {
        // Of 0 1 2 3 4 5 6: {1, 3} leaves 0 1 2 4 5 6 as 0 1 2 3 4 5, where {4, 2, 6} are 3, 2 and 5.
        assert_eq!(in_turn(&mut [vec![3, 1], vec![4, 2, 6]]), [vec![3, 1], vec![3, 2, 5]]);
        let wishes = Wishes { merge: vec![vec![1, 2]], split: vec![2], ..Wishes::default() };
        assert!(wishes.check(4).unwrap_err().to_string().contains("cluster 2 is to be merged or split twice"));
        let wishes = Wishes { split: vec![4], ..Wishes::default() };
        assert!(wishes.check(4).unwrap_err().to_string().contains("clusters 0 to 3"));
    }
}
