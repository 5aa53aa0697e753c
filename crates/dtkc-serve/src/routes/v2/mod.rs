//! The KServe Open Inference Protocol (v2) over REST, with JSON tensors and Triton's binary extension.

pub mod infer;
pub mod metadata;
pub mod repository;
pub(crate) mod sequences;
pub mod statistics;
pub(crate) mod tensor;

use actix_web::web::{self, ServiceConfig};

use super::{get, post, read};
use crate::error::ApiError;

/// The one version of every model.
pub(crate) const VERSION: &str = "1";

/// Registers the paths under /v2/health, which are never behind a key.
pub fn health(config: &mut ServiceConfig) {
    config
        .service(get("/v2/health/live").route(read().to(metadata::live)))
        .service(get("/v2/health/ready").route(read().to(metadata::ready)));
}

/// Registers the other paths under /v2.
pub fn routes(config: &mut ServiceConfig) {
    config
        .service(get("/v2").route(read().to(metadata::server)))
        .service(get("/v2/").route(read().to(metadata::server)))
        .service(post("/v2/repository/index").route(web::post().to(repository::index)))
        .service(post("/v2/repository/models/{model}/load").route(web::post().to(repository::load)))
        .service(post("/v2/repository/models/{model}/unload").route(web::post().to(repository::unload)))
        .service(get("/v2/models/stats").route(read().to(statistics::all)))
        .service(get("/v2/models/{model}/stats").route(read().to(statistics::one)))
        .service(get("/v2/models/{model}/versions/{version}/stats").route(read().to(statistics::one)))
        .service(get("/v2/models/{model}").route(read().to(metadata::model)))
        .service(get("/v2/models/{model}/ready").route(read().to(metadata::model_ready)))
        .service(post("/v2/models/{model}/infer").route(web::post().to(infer::infer)))
        .service(get("/v2/models/{model}/versions/{version}").route(read().to(metadata::model)))
        .service(get("/v2/models/{model}/versions/{version}/ready").route(read().to(metadata::model_ready)))
        .service(post("/v2/models/{model}/versions/{version}/infer").route(web::post().to(infer::infer)));
}

/// The model and, in some paths, the version.
#[derive(Debug, serde::Deserialize)]
pub struct ModelPath {
    /// The model's name.
    pub model: String,
    /// Only `1` exists.
    #[serde(default)]
    pub version: Option<String>,
}

impl ModelPath {
    /// Refuses versions that do not exist.
    fn check_version(&self) -> Result<(), ApiError> {
        check_version(self.version.as_deref())
    }
}

/// Refuses versions that do not exist.
pub(crate) fn check_version(version: Option<&str>) -> Result<(), ApiError> {
    match version {
        None | Some(VERSION) => Ok(()),
        Some(other) => Err(ApiError::UnknownVersion(other.chars().take(20).collect())),
    }
}
