//! The protocol's extension for repositories: which models there are, loading and unloading them.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use serde::Serialize;
use utoipa::ToSchema;

use super::VERSION;
use crate::error::{ApiError, ErrorBody};
use crate::intake::blocking;
use crate::models::Slot;
use crate::routes::models::reload_model;
use crate::state::State;

/// A model of the repository.
#[derive(Debug, Serialize, ToSchema)]
pub struct RepositoryModel {
    /// The model.
    #[schema(example = "mnist")]
    pub name: String,
    /// Always `1`.
    pub version: &'static str,
    /// `READY`, `LOADING` or `UNAVAILABLE`.
    #[schema(example = "READY")]
    pub state: &'static str,
    /// Why it is not ready; empty where it is.
    pub reason: String,
}

/// List the models and whether each can be used.
#[utoipa::path(
    post, path = "/v2/repository/index", tag = "v2",
    responses((status = 200, description = "The models", body = [RepositoryModel])),
)]
pub async fn index(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(state.models.iter().map(RepositoryModel::of).collect::<Vec<_>>())
}

/// Load a model: again if its file has changed, or after it was unloaded.
#[utoipa::path(
    post, path = "/v2/repository/models/{model}/load", tag = "v2",
    params(("model" = String, Path, description = "The model's name")),
    responses(
        (status = 200, description = "It is loaded"),
        (status = 404, description = "No model of that name", body = ErrorBody),
        (status = 409, description = "The file cannot be used, or a reload is under way", body = ErrorBody),
    ),
)]
pub async fn load(model: Path<String>, state: Data<State>) -> Result<HttpResponse, ApiError> {
    let name = state.model(&model)?.name().to_owned();
    blocking(move || reload_model(&state, &name)).await??;
    Ok(HttpResponse::Ok().finish())
}

/// Unload a model: what was accepted is answered, its memory is given back, and it can be loaded again.
#[utoipa::path(
    post, path = "/v2/repository/models/{model}/unload", tag = "v2",
    params(("model" = String, Path, description = "The model's name")),
    responses(
        (status = 200, description = "It is unloaded"),
        (status = 404, description = "No model of that name", body = ErrorBody),
        (status = 409, description = "A reload is under way", body = ErrorBody),
    ),
)]
pub async fn unload(model: Path<String>, state: Data<State>) -> Result<HttpResponse, ApiError> {
    take_out(&state, &model)?;
    Ok(HttpResponse::Ok().finish())
}

impl RepositoryModel {
    /// How a model is now.
    pub fn of(slot: &Slot) -> Self {
        let (state, reason) = match slot.served().engine() {
            Ok(_) => ("READY", String::new()),
            Err(ApiError::Starting) => ("LOADING", ApiError::Starting.to_string()),
            Err(error) => ("UNAVAILABLE", error.to_string()),
        };
        Self { name: slot.name().to_owned(), version: VERSION, state, reason }
    }
}

/// Takes a model out of service.
pub(crate) fn take_out(state: &State, model: &str) -> Result<(), ApiError> {
    let slot = state.model(model)?;
    slot.unload(&state.metrics)?;
    tracing::info!(model = slot.name(), "the model was unloaded");
    Ok(())
}
