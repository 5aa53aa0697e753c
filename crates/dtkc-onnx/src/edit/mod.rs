//! Clusters that are merged, split and named after training, in the model file itself.
//!
//! An edit stands behind the network: it takes the probabilities from before and gives others, and `cluster` is the largest of those.
//! So any ONNX runtime gives the edited answers, edits follow one another, and nothing of the network changes. The last edit can
//! always be taken back ([`undo`]): what is left are the bytes from before.
//!
//! - Merging adds probabilities up (a product with a matrix of 0 and 1). The merged cluster has the lowest of the ids, and ids above
//!   those that are gone move down.
//! - Splitting shares the probability `p` of a cluster by a plane in the embedding: `p sigmoid(-z)` stays, `p sigmoid(z)` goes to
//!   a new cluster with the next free id, where `z` is the embedding times a direction plus an offset.
//! - A name changes the metadata alone.
//!
//! Ids stay where they can, and are not put in the order of sizes again: people know clusters by their ids. The metadata has a history
//! ([`Past`]), which holds the clusters from before each edit.

mod nodes;

use serde::{Deserialize, Serialize};

use crate::outlier::change_graph;
use crate::proto::Graph;
use crate::read::{append_metadata, read, without_metadata};
use crate::{Cluster, Metadata, OnnxError};

/// Edits of one file, at most: each is a few more nodes.
const MOST_EDITS: usize = 1000;

/// A change of a model's clusters.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Two or more clusters become one, which has the lowest of their ids.
    Merge(Vec<usize>),
    /// A cluster becomes two.
    Split(Split),
    /// A cluster gets a name, or loses it.
    Name(usize, Option<String>),
}

/// Where a cluster is cut.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Which one.
    pub cluster: usize,
    /// What the embedding is multiplied with.
    pub direction: Vec<f32>,
    /// What is added then; above 0 an item belongs to the new cluster.
    pub offset: f32,
    /// Training items of the new cluster.
    pub size: u64,
}

/// An edit that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// What was done, in words.
    pub what: String,
    /// Whether the graph was changed, and not only the metadata.
    pub graph: bool,
    /// The clusters from before.
    pub clusters: Vec<Cluster>,
}

/// The same model file with one more edit.
pub fn edit(bytes: &[u8], edit: &Edit) -> Result<Vec<u8>, OnnxError> {
    let (graph, metadata) = read(bytes)?;
    if metadata.edits.len() >= MOST_EDITS {
        return Err(wrong(format!("it has {MOST_EDITS} edits already; undo some")));
    }
    let clusters = after(&metadata, edit)?;
    let past = Past { what: words(edit), graph: !matches!(edit, Edit::Name(..)), clusters: metadata.clusters.clone() };
    let number = nodes::edits(&graph) + 1;
    let changed = match edit {
        Edit::Name(..) => None,
        Edit::Merge(merged) => Some(nodes::merge(number, metadata.k(), merged)),
        Edit::Split(split) => Some(nodes::split(number, metadata.k(), split)),
    };
    let mut out = without_metadata(bytes)?;
    if let Some(part) = changed {
        out = change_graph(&out, |graph| nodes::add(graph, number, clusters.len(), &part))?;
    }
    let mut edits = metadata.edits.clone();
    edits.push(past);
    append_metadata(&mut out, &Metadata { clusters, edits, ..metadata })?;
    Ok(out)
}

/// The same model file without its last edit, as it was before that.
pub fn undo(bytes: &[u8]) -> Result<Vec<u8>, OnnxError> {
    let (graph, mut metadata) = read(bytes)?;
    let Some(past) = metadata.edits.pop() else {
        return Err(wrong("nobody has edited them, so there is nothing to undo".into()));
    };
    let number = nodes::edits(&graph);
    let mut out = without_metadata(bytes)?;
    if past.graph {
        if number == 0 {
            return Err(OnnxError::Disagreement("the history has an edit that the graph has not".into()));
        }
        out = change_graph(&out, |graph| nodes::take_away(graph, number, past.clusters.len()))?;
    }
    append_metadata(&mut out, &Metadata { clusters: past.clusters, ..metadata })?;
    // A file may claim any past.
    read(&out)?;
    Ok(out)
}

/// Whether the graph's answers are those of edited clusters.
pub(crate) fn is_edited(graph: &Graph) -> bool {
    nodes::edits(graph) > 0
}

fn wrong(reason: String) -> OnnxError {
    OnnxError::Edit(reason)
}

/// The clusters after an edit, where it can be made.
fn after(metadata: &Metadata, edit: &Edit) -> Result<Vec<Cluster>, OnnxError> {
    let mut clusters = metadata.clusters.clone();
    let there = |id: usize| match id < metadata.k() {
        true => Ok(()),
        false => Err(wrong(format!("there is no cluster {id}; the model has clusters 0 to {}", metadata.k() - 1))),
    };
    match edit {
        Edit::Name(id, name) => {
            there(*id)?;
            clusters[*id].name.clone_from(name);
        }
        Edit::Merge(merged) => {
            merged.iter().try_for_each(|&id| there(id))?;
            let ids = sorted(merged);
            if ids.len() < 2 || ids.len() != merged.len() {
                return Err(wrong("a merge needs two or more different clusters".into()));
            }
            if ids.len() == metadata.k() {
                return Err(wrong("a merge of all clusters leaves nothing to tell apart".into()));
            }
            let size = ids.iter().map(|&id| clusters[id].size).fold(0, u64::saturating_add);
            clusters[ids[0]] = Cluster { name: joined(&ids, &clusters), size };
            ids[1..].iter().rev().for_each(|&id| drop(clusters.remove(id)));
        }
        Edit::Split(split) => {
            there(split.cluster)?;
            if split.direction.len() != metadata.embedding_size
                || !split.direction.iter().chain([&split.offset]).all(|value| value.is_finite())
            {
                let width = metadata.embedding_size;
                return Err(wrong(format!("a plane that cuts an embedding of {width} values has as many numbers")));
            }
            let cluster = &mut clusters[split.cluster];
            let part = |name: &Option<String>, part: u8| name.as_ref().map(|name| format!("{name} ({part})"));
            let second = Cluster { name: part(&cluster.name, 2), size: split.size.min(cluster.size) };
            *cluster = Cluster { name: part(&cluster.name, 1), size: cluster.size - second.size };
            clusters.push(second);
        }
    }
    Ok(clusters)
}

fn sorted(ids: &[usize]) -> Vec<usize> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The names of merged clusters that have some, each once.
fn joined(ids: &[usize], clusters: &[Cluster]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for name in ids.iter().filter_map(|&id| clusters[id].name.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| names.join(" + "))
}

fn words(edit: &Edit) -> String {
    match edit {
        Edit::Merge(merged) => {
            let ids: Vec<String> = sorted(merged).iter().map(usize::to_string).collect();
            format!("merge {}", ids.join(","))
        }
        Edit::Split(split) => format!("split {}", split.cluster),
        Edit::Name(id, Some(name)) => format!("name {id}={name}"),
        Edit::Name(id, None) => format!("name {id}="),
    }
}

#[cfg(test)]
#[path = "../edit_tests.rs"]
mod tests;
