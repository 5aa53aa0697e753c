//! Merging and splitting clusters in the model file, and taking that back.

use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::intake::blocking;
use crate::models::{Change, Points};
use crate::routes::assign::mark_model;
use crate::routes::clusters::{check_model, json_body};
use crate::routes::models::{Model, describe};
use crate::state::State;

/// Embeddings as text, with room for every digit: see [`Points`] for how many there may be.
const LARGEST_EDIT: u64 = 16 << 20;

/// A change of a model's clusters: one of the three.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterEdit {
    /// Ids of two or more clusters that become one. It has the lowest of them; ids above those that are gone move down.
    #[schema(example = json!([3, 7]))]
    pub merge: Option<Vec<usize>>,
    /// A cluster that becomes two.
    pub split: Option<ClusterSplit>,
    /// Take the last change back.
    #[serde(default)]
    pub undo: bool,
}

/// Where a cluster is split: between the two heaps that items of it make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterSplit {
    /// Its id; the smaller half gets the next free one.
    pub cluster: usize,
    /// Embeddings of items of the cluster, as the model gave them (`embedding=true`): at least four that differ, better hundreds.
    #[schema(value_type = Vec<Vec<f32>>)]
    pub embeddings: Points,
}

impl ClusterEdit {
    fn change(self) -> Result<Change, ApiError> {
        match (self.merge, self.split, self.undo) {
            (Some(ids), None, false) => Ok(Change::Merge(ids)),
            (None, Some(split), false) => Ok(Change::Split(split.cluster, split.embeddings)),
            (None, None, true) => Ok(Change::Undo),
            _ => Err(ApiError::BadEdit(
                r#"write {"merge": [3, 7]}, {"split": {"cluster": 2, "embeddings": [[...], ...]}} or {"undo": true}"#
                    .into(),
            )),
        }
    }
}

/// Merge clusters, split one, or take the last change back.
///
/// The model's own file is changed, so that everybody who uses it sees the same clusters; it holds its history. Only where the service
/// was started with `--allow-edits`. With the model's fingerprint in `If-Match` a change is refused where another file has taken its place.
#[utoipa::path(
    post, path = "/v1/models/{model}/edits", tag = "models",
    params(("model" = String, Path, description = "The model's name")),
    request_body = ClusterEdit,
    responses(
        (status = 200, description = "The model as it is now", body = Model),
        (status = 403, description = "Clusters are not edited here", body = ErrorBody),
        (status = 404, description = "No model of that name", body = ErrorBody),
        (status = 409, description = "The model is a bundled one, or is being reloaded", body = ErrorBody),
        (status = 412, description = "Another model file has taken the place of the one in If-Match", body = ErrorBody),
        (status = 422, description = "The clusters cannot be changed like that", body = ErrorBody),
        (status = 500, description = "The file could not be written", body = ErrorBody),
    ),
)]
pub async fn edit(
    model: Path<String>,
    request: HttpRequest,
    payload: Payload,
    state: Data<State>,
) -> Result<HttpResponse, ApiError> {
    let name = state.model(&model)?.name().to_owned();
    if !state.config.allow_edits {
        return Err(ApiError::EditsOff);
    }
    let served = state.model(&name)?.served();
    check_model(request.headers(), &served)?;
    let change = json_body::<ClusterEdit>(&request, payload, &state, LARGEST_EDIT).await?.change()?;
    let words = change.words();
    blocking({
        let (state, name) = (state.clone(), name.clone());
        move || {
            let slot = state.model(&name)?;
            slot.edit(&served, &change, &state.runtime, &state.engine_options(), &state.metrics)
        }
    })
    .await??;
    tracing::info!(model = name, change = words, "the clusters were changed");
    let slot = state.model(&name)?;
    let mut response = HttpResponse::Ok().json(describe(slot, &state.config));
    mark_model(&mut response, &slot.served());
    Ok(response)
}
