//! The protocol's extension for statistics: how often each model was used, and where the time went.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use serde::Serialize;
use utoipa::ToSchema;

use super::{ModelPath, VERSION};
use crate::error::{ApiError, ErrorBody};
use crate::models::Slot;
use crate::state::State;
use crate::totals::Time;

/// The statistics of some models.
#[derive(Debug, Serialize, ToSchema)]
pub struct Statistics {
    /// One entry per model.
    pub model_stats: Vec<ModelStatistics>,
}

/// The statistics of one model since its file was loaded.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelStatistics {
    /// The model.
    #[schema(example = "mnist")]
    pub name: String,
    /// Always `1`.
    pub version: &'static str,
    /// When it last ran, in milliseconds since 1970; 0 where it never did.
    pub last_inference: u64,
    /// Images that were assigned.
    pub inference_count: u64,
    /// Inference calls, each with one or more images.
    pub execution_count: u64,
    /// Where the time went.
    pub inference_stats: Times,
}

/// Where the time went.
#[derive(Debug, Serialize, ToSchema)]
pub struct Times {
    /// Images that were assigned.
    pub success: Time,
    /// Images that could not be used.
    pub fail: Time,
    /// Requests, in the queue.
    pub queue: Time,
    /// Batches, while they were decoded.
    pub compute_input: Time,
    /// Inference calls.
    pub compute_infer: Time,
}

/// The statistics of every model.
#[utoipa::path(
    get, path = "/v2/models/stats", tag = "v2",
    responses((status = 200, description = "The statistics", body = Statistics)),
)]
pub async fn all(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(Statistics { model_stats: state.models.iter().map(describe).collect() })
}

/// The statistics of one model.
#[utoipa::path(
    get, path = "/v2/models/{model}/stats", tag = "v2",
    params(("model" = String, Path, description = "The model's name")),
    responses(
        (status = 200, description = "The statistics", body = Statistics),
        (status = 404, description = "No model of that name", body = ErrorBody),
    ),
)]
pub async fn one(path: Path<ModelPath>, state: Data<State>) -> Result<HttpResponse, ApiError> {
    path.check_version()?;
    Ok(HttpResponse::Ok().json(Statistics { model_stats: vec![describe(state.model(&path.model)?)] }))
}

fn describe(slot: &Slot) -> ModelStatistics {
    let totals = slot.served().metrics.totals();
    ModelStatistics {
        name: slot.name().to_owned(),
        version: VERSION,
        last_inference: totals.last_ms,
        inference_count: totals.assigned.count,
        execution_count: totals.inference.count,
        inference_stats: Times {
            success: totals.assigned,
            fail: totals.failed,
            queue: totals.queue,
            compute_input: totals.decoding,
            compute_infer: totals.inference,
        },
    }
}
