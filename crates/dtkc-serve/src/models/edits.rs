//! Clusters that clients merge in the file of a served model, and how that is taken back.

use std::collections::BTreeMap;

use dtkc_onnx::{Edit, Metadata, OnnxError};

use crate::error::ApiError;

/// What a client wants of the clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Two or more become one.
    Merge(Vec<usize>),
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
        let Self::Merge(merged) = self else { return dtkc_onnx::undo(bytes).map_err(refused) };
        let is_new = |id: usize, name: &str| metadata.clusters.get(id).is_some_and(|c| c.name.as_deref() != Some(name));
        let names = given.iter().filter(|(id, name)| is_new(**id, name));
        let names = names.map(|(id, name)| Edit::Name(*id, Some(name.clone())));
        let mut edited = bytes.to_vec();
        for edit in names.chain([Edit::Merge(merged.clone())]) {
            edited = dtkc_onnx::edit(&edited, &edit).map_err(refused)?;
        }
        Ok(edited)
    }
}

fn refused(error: OnnxError) -> ApiError {
    match error {
        OnnxError::Edit(reason) => ApiError::BadEdit(reason),
        other => ApiError::BadEdit(other.to_string()),
    }
}
