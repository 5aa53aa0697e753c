//! Clusters that clients merge and split in the file of a served model, and how that is taken back.

use std::collections::BTreeMap;

use dtkc_map::Cut;
use dtkc_onnx::{Edit, Metadata, OnnxError, Split};

use super::points::Points;
use crate::error::ApiError;

/// What a client wants of the clusters.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Two or more become one.
    Merge(Vec<usize>),
    /// One becomes two, between the two heaps that items of it make in the embedding.
    Split(usize, Points),
    /// The last change is taken back.
    Undo,
}

impl Change {
    /// The content of the file after it. Names that were given beside the file go into it first: an edited file is another
    /// one, and ids may have moved.
    pub(super) fn apply(
        &self,
        bytes: &[u8],
        metadata: &Metadata,
        given: &BTreeMap<usize, String>,
    ) -> Result<Vec<u8>, ApiError> {
        let wanted = match self {
            Self::Merge(merged) => Edit::Merge(merged.clone()),
            Self::Split(cluster, points) => Edit::Split(split(*cluster, points, metadata)?),
            Self::Undo => return dtkc_onnx::undo(bytes).map_err(refused),
        };
        let is_new = |id: usize, name: &str| metadata.clusters.get(id).is_some_and(|c| c.name.as_deref() != Some(name));
        let names = given.iter().filter(|(id, name)| is_new(**id, name));
        let names = names.map(|(id, name)| Edit::Name(*id, Some(name.clone())));
        let mut edited = bytes.to_vec();
        for edit in names.chain([wanted]) {
            edited = dtkc_onnx::edit(&edited, &edit).map_err(refused)?;
        }
        Ok(edited)
    }

    /// What is done, for the log.
    pub fn words(&self) -> String {
        match self {
            Self::Merge(merged) => format!("merge {merged:?}"),
            Self::Split(cluster, points) => format!("split {cluster} by {} items", points.count()),
            Self::Undo => "undo".into(),
        }
    }
}

/// Where a cluster is cut, by items of it. Nobody has the training set here: what a client has seen of the cluster stands for it.
fn split(cluster: usize, points: &Points, metadata: &Metadata) -> Result<Split, ApiError> {
    let wrong = |reason: String| Err(ApiError::BadEdit(reason));
    let Some(known) = metadata.clusters.get(cluster) else {
        let last = metadata.k().saturating_sub(1);
        return wrong(format!("there is no cluster {cluster}; the model has clusters 0 to {last}"));
    };
    if points.count() > 0 && points.width() != metadata.embedding_size {
        let (has, wants) = (points.width(), metadata.embedding_size);
        return wrong(format!(
            "the embeddings have {has} values each, and the model's {wants}; send those that it gave"
        ));
    }
    let group: Vec<u32> = (0..points.count() as u32).collect();
    let Some(cut) = Cut::through(points.values(), points.width(), &group) else {
        let count = points.count();
        return wrong(format!(
            "cluster {cluster} cannot be split by {count} items: four that differ are needed; add more of it"
        ));
    };
    let size = (cut.share * known.size as f64).round() as u64;
    Ok(Split { cluster, direction: cut.direction, offset: cut.offset, size })
}

fn refused(error: OnnxError) -> ApiError {
    match error {
        OnnxError::Edit(reason) => ApiError::BadEdit(reason),
        other => ApiError::BadEdit(other.to_string()),
    }
}
