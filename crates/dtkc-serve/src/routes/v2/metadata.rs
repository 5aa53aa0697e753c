//! What the server and its models say about themselves.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use dtkc_item::ItemShape;
use serde::Serialize;
use utoipa::ToSchema;

use super::{ModelPath, VERSION};
use crate::error::{ApiError, ErrorBody};
use crate::models::Slot;
use crate::state::{Phase, State};

/// The server.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerMetadata {
    /// The program.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Extensions of the protocol that work here.
    pub extensions: Vec<&'static str>,
}

impl ServerMetadata {
    /// This program, by a protocol with those extensions.
    pub fn new(extensions: Vec<&'static str>) -> Self {
        Self { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION"), extensions }
    }
}

/// A model's tensors.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelMetadata {
    /// The model.
    #[schema(example = "mnist")]
    pub name: String,
    /// Always `1`.
    pub versions: Vec<&'static str>,
    /// What runs it.
    pub platform: &'static str,
    /// The input `image`, or `values` and `lengths` of sequences.
    pub inputs: Vec<TensorMetadata>,
    /// The outputs `cluster`, `probabilities`, `embedding` and, where the model has it, `outlier`.
    pub outputs: Vec<TensorMetadata>,
}

impl ModelMetadata {
    /// The tensors of the file that is serving now.
    pub fn of(slot: &Slot) -> Self {
        let served = slot.served();
        let model = &served.model;
        let (k, embedding) = (model.clusters(), model.embedding_size());
        let tensor = |name, datatype, sizes: &[usize]| TensorMetadata {
            name,
            datatype,
            shape: std::iter::once(-1).chain(sizes.iter().map(|&size| size as i64)).collect(),
        };
        let inputs = match model.shape() {
            ItemShape::Image(shape) => vec![tensor("image", "UINT8", &[shape.height, shape.width, shape.channels])],
            ItemShape::Sequence { dim } => vec![
                TensorMetadata { name: "values", datatype: "FP32", shape: vec![-1, -1, dim as i64] },
                tensor("lengths", "INT64", &[]),
            ],
            // No model file takes features.
            ItemShape::Features(_) => Vec::new(),
        };
        Self {
            name: slot.name().to_owned(),
            versions: vec![VERSION],
            platform: "onnxruntime_onnx",
            inputs,
            outputs: [
                tensor("cluster", "INT64", &[]),
                tensor("probabilities", "FP32", &[k]),
                tensor("embedding", "FP32", &[embedding]),
            ]
            .into_iter()
            .chain(model.outlier().map(|_| tensor("outlier", "FP32", &[])))
            .collect(),
        }
    }
}

/// One tensor.
#[derive(Debug, Serialize, ToSchema)]
pub struct TensorMetadata {
    /// Its name.
    pub name: &'static str,
    /// Type of its values.
    pub datatype: &'static str,
    /// Its sizes; -1 is the number of images or sequences, and the longest one's steps.
    pub shape: Vec<i64>,
}

/// A sign of life.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerLive {
    /// Always true.
    pub live: bool,
}

/// Whether requests can be sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerReady {
    /// Always true: a server that is not ready answers 503.
    pub ready: bool,
}

/// Whether requests for one model can be sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelReady {
    /// The model.
    #[schema(example = "mnist")]
    pub name: String,
    /// Always true: a model that is not ready answers 503.
    pub ready: bool,
}

/// The server's name, version and extensions.
#[utoipa::path(
    get, path = "/v2", tag = "v2",
    responses(
        (status = 200, description = "The server", body = ServerMetadata),
    ),
)]
pub async fn server() -> HttpResponse {
    HttpResponse::Ok().json(ServerMetadata::new(vec!["binary_tensor_data", "model_repository", "statistics"]))
}

/// Is the server alive?
#[utoipa::path(
    get, path = "/v2/health/live", tag = "v2",
    responses((status = 200, description = "It is", body = ServerLive)),
)]
pub async fn live() -> HttpResponse {
    HttpResponse::Ok().json(ServerLive { live: true })
}

/// Is every model ready?
#[utoipa::path(
    get, path = "/v2/health/ready", tag = "v2",
    responses(
        (status = 200, description = "They are", body = ServerReady),
        (status = 503, description = "Starting or stopping", body = ErrorBody),
    ),
)]
pub async fn ready(state: Data<State>) -> Result<HttpResponse, ApiError> {
    match state.phase() {
        Phase::Starting => Err(ApiError::Starting),
        Phase::Ready => Ok(HttpResponse::Ok().json(ServerReady { ready: true })),
        Phase::Stopping => Err(ApiError::Stopping),
    }
}

/// The tensors of one model.
#[utoipa::path(
    get, path = "/v2/models/{model}", tag = "v2",
    params(("model" = String, Path, description = "The model's name")),
    responses(
        (status = 200, description = "The tensors", body = ModelMetadata),
        (status = 404, description = "No model of that name", body = ErrorBody),
    ),
)]
pub async fn model(path: Path<ModelPath>, state: Data<State>) -> Result<HttpResponse, ApiError> {
    path.check_version()?;
    Ok(HttpResponse::Ok().json(ModelMetadata::of(state.model(&path.model)?)))
}

/// Is one model ready?
#[utoipa::path(
    get, path = "/v2/models/{model}/ready", tag = "v2",
    params(("model" = String, Path, description = "The model's name")),
    responses(
        (status = 200, description = "It is", body = ModelReady),
        (status = 404, description = "No model of that name", body = ErrorBody),
        (status = 503, description = "Starting", body = ErrorBody),
    ),
)]
pub async fn model_ready(path: Path<ModelPath>, state: Data<State>) -> Result<HttpResponse, ApiError> {
    path.check_version()?;
    let slot = state.model(&path.model)?;
    slot.served().engine()?;
    Ok(HttpResponse::Ok().json(ModelReady { name: slot.name().to_owned(), ready: true }))
}
