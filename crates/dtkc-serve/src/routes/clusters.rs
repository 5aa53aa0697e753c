//! Giving clusters names.

use actix_web::http::header::{HeaderMap, IF_MATCH};
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::intake::{self, blocking};
use crate::models::{Served, clean_name};
use crate::routes::assign::mark_model;
use crate::state::State;

/// No name needs more.
const LARGEST_NAME: u64 = 16 << 10;

/// The name for a cluster.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterName {
    /// One line of at most 100 characters; an empty one takes the name away.
    #[schema(max_length = 100, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "sevens")]
    pub name: String,
}

/// A cluster after it was named.
#[derive(Debug, Serialize, ToSchema)]
pub struct NamedCluster {
    /// The model.
    #[schema(example = "mnist")]
    pub model: String,
    /// The cluster.
    pub id: usize,
    /// What it is called now.
    #[schema(example = "sevens")]
    pub name: String,
}

/// Give a cluster a name.
///
/// The name is kept across restarts and belongs to this model file: a retrained model starts without it. With the model's
/// fingerprint in `If-Match` the name is refused where another file has taken its place.
#[utoipa::path(
    put, path = "/v1/models/{model}/clusters/{cluster}", tag = "models",
    params(
        ("model" = String, Path, description = "The model's name"),
        ("cluster" = u32, Path, description = "The cluster's number"),
    ),
    request_body = ClusterName,
    responses(
        (status = 200, description = "What the cluster is called now", body = NamedCluster),
        (status = 404, description = "No such model or cluster", body = ErrorBody),
        (status = 412, description = "Another model file has taken the place of the one in If-Match", body = ErrorBody),
        (status = 422, description = "The name is too long or not one line", body = ErrorBody),
        (status = 500, description = "The name could not be written to the disk", body = ErrorBody),
    ),
)]
pub async fn rename(
    path: Path<(String, String)>,
    request: HttpRequest,
    payload: Payload,
    state: Data<State>,
) -> Result<HttpResponse, ApiError> {
    let (model, cluster) = path.into_inner();
    let served = state.model(&model)?.served();
    check_model(request.headers(), &served)?;
    let k = served.model.metadata().k();
    let unknown = || ApiError::UnknownCluster { id: cluster.chars().take(20).collect(), last: k.saturating_sub(1) };
    let id = cluster.parse::<usize>().ok().filter(|&id| id < k).ok_or_else(unknown)?;

    let body: ClusterName = json_body(&request, payload, &state, LARGEST_NAME).await?;
    let name = clean_name(&body.name).map_err(ApiError::BadName)?.map(str::to_owned);
    blocking({
        let (state, served, model) = (state.clone(), served.clone(), model.clone());
        move || {
            let saved = state.model(&model)?.rename(&served, id, name.as_deref());
            saved.map_err(|error| {
                tracing::error!(model, %error, "a cluster name was not kept");
                ApiError::NotSaved("the side file cannot be written".into())
            })
        }
    })
    .await??;
    let name = served.cluster_names().get(id).cloned().unwrap_or_default();
    tracing::info!(model, cluster = id, name, "a cluster was named");
    let mut response = HttpResponse::Ok().json(NamedCluster { model, id, name });
    mark_model(&mut response, &served);
    Ok(response)
}

/// What a client says about clusters in at most `largest` bytes, in time.
pub(crate) async fn json_body<T: DeserializeOwned + Send + 'static>(
    request: &HttpRequest,
    payload: Payload,
    state: &State,
    largest: u64,
) -> Result<T, ApiError> {
    let timeout = state.config.request_timeout;
    let reading = intake::read_json(request, payload.into_inner(), largest, state.budget.open());
    tokio::time::timeout(timeout, reading).await.map_err(|_| ApiError::SlowBody(timeout))?
}

/// Whoever says in `If-Match` which file is meant does not change the clusters of another one.
pub(crate) fn check_model(headers: &HeaderMap, served: &Served) -> Result<(), ApiError> {
    let Some(wanted) = headers.get(IF_MATCH) else { return Ok(()) };
    let is_ours = |tag: &str| tag == "*" || tag.trim_matches('"') == served.fingerprint;
    let is_meant = wanted.to_str().is_ok_and(|tags| tags.split(',').map(str::trim).any(is_ours));
    if is_meant { Ok(()) } else { Err(ApiError::ModelChanged) }
}
