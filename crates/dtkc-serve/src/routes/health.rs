//! For machines that watch over the service. Never behind a key.

use actix_web::HttpResponse;
use actix_web::web::Data;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::state::{Phase, State};

/// A sign of life.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// `ok` or `ready`.
    #[schema(example = "ok")]
    pub status: &'static str,
}

/// Is the process alive?
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "It is", body = Health)))]
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(Health { status: "ok" })
}

/// Is every model loaded and warmed up?
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses(
        (status = 200, description = "Send requests", body = Health),
        (status = 503, description = "Starting or stopping: send none", body = ErrorBody),
    ),
)]
pub async fn readyz(state: Data<State>) -> Result<HttpResponse, ApiError> {
    match state.phase() {
        Phase::Starting => Err(ApiError::Starting),
        Phase::Ready => Ok(HttpResponse::Ok().json(Health { status: "ready" })),
        Phase::Stopping => Err(ApiError::Stopping),
    }
}

/// Counters and times for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain")),
)]
pub async fn metrics(state: Data<State>) -> HttpResponse {
    let queued = |slot: &crate::models::Slot| slot.served().engine().map_or(0, |engine| engine.queued());
    let queues: Vec<(&str, usize)> = state.models.iter().map(|slot| (slot.name(), queued(slot))).collect();
    let text =
        state.metrics.render(state.phase() == Phase::Ready, state.budget.used(), state.places.taken_in_all(), &queues);
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text)
}
