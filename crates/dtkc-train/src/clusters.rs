//! Clusters of a model file that people merge, split and name.

use dtkc_infer::Names;
use dtkc_onnx::{Edit, Metadata, Split};

use crate::error::TrainError;
use crate::outliers::Seen;

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

/// Where a cluster of `size` training items is cut, by those of them that were seen.
pub fn cut(seen: &Seen, cluster: usize, size: u64) -> Result<Split, TrainError> {
    let members: Vec<u32> =
        (0..seen.clusters.len()).filter(|&item| seen.clusters[item] == cluster).map(|item| item as u32).collect();
    let Some(cut) = dtkc_map::Cut::through(&seen.embedding, seen.width, &members) else {
        return Err(TrainError::Mismatch(format!(
            "cluster {cluster} cannot be split: {} of the items that were looked at are in it, and four that differ are needed; \
             use a larger dataset",
            members.len()
        )));
    };
    let size = (cut.share * size as f64).round() as u64;
    Ok(Split { cluster, direction: cut.direction, offset: cut.offset, size })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_cut_among_its_own_items() {
        let seen = Seen {
            width: 1,
            embedding: vec![0.0, 90.0, 0.1, 9.0, 0.2, 9.1, 0.3, 91.0, 0.4, 0.5],
            clusters: vec![0, 1, 0, 0, 0, 0, 0, 1, 0, 0],
        };
        let split = cut(&seen, 0, 1000).unwrap();
        assert_eq!((split.cluster, split.size), (0, 250));
        let side = |x: f32| split.direction[0] * x + split.offset > 0.0;
        assert!(!side(0.5) && side(9.0), "{split:?}");
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
