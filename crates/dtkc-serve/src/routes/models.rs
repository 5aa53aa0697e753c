//! What models are served, and loading a changed file.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::web::{Data, Json, Path};
use dtkc_item::ItemKind;
use dtkc_onnx::InputSpec;
use serde::Serialize;
use utoipa::ToSchema;

use crate::config::ServeConfig;
use crate::error::{ApiError, ErrorBody};
use crate::intake::blocking;
use crate::models::{Reloaded, Slot};
use crate::state::State;

/// The models of this service.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// The model that `/v1/assign` uses.
    #[schema(example = "mnist")]
    pub default: String,
    /// All models, the default one first.
    pub models: Vec<Model>,
    /// What one request may hold.
    pub limits: RequestLimits,
}

/// What one request may hold.
#[derive(Debug, Serialize, ToSchema)]
pub struct RequestLimits {
    /// Bytes of the body.
    pub max_body: u64,
    /// Images or sequences.
    pub max_images: usize,
    /// Pixels per image.
    pub max_image_pixels: u64,
}

impl RequestLimits {
    fn of(config: &ServeConfig) -> Self {
        Self {
            max_body: config.max_body,
            max_images: config.images_per_request(),
            max_image_pixels: config.max_image_pixels,
        }
    }
}

/// One model.
#[derive(Debug, Serialize, ToSchema)]
pub struct Model {
    /// Its name here.
    #[schema(example = "mnist")]
    pub name: String,
    /// What it takes.
    pub input: Input,
    /// Number of clusters.
    pub k: usize,
    /// Width of the embedding.
    pub embedding_size: usize,
    /// What is above it, of the `outlier` of an image, is unlike anything in the training set: 99 % of that stay below. Absent where
    /// the model does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, maximum = 1)]
    pub outlier_threshold: Option<f32>,
    /// The clusters, by id.
    pub clusters: Vec<Cluster>,
    /// Scores when the model was exported.
    pub metrics: BTreeMap<String, f64>,
    /// Changes of the clusters since training, the last one at the end.
    #[schema(example = json!(["merge 3,7"]))]
    pub edits: Vec<String>,
    /// Whether clusters can be merged here.
    pub editable: bool,
    /// Where the model comes from.
    pub provenance: Provenance,
    /// SHA-256 of the model file.
    pub fingerprint: String,
}

/// What a model takes: what an image is turned into before inference, or sequences as they are.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Input {
    /// Images of one size.
    Image(ImagesTaken),
    /// Sequences of any length.
    Sequence(SequencesTaken),
}

/// What an image is turned into before inference.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImagesTaken {
    /// `images`.
    #[schema(value_type = String, example = "images")]
    pub kind: ItemKind,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// 1 or 3.
    pub channels: usize,
    /// `gray` or `rgb`.
    pub color: String,
    /// How other sizes are brought to this one: `fit`, `stretch` or `crop`.
    pub resize: String,
    /// The resize filter.
    pub filter: String,
}

/// Sequences that a model takes.
#[derive(Debug, Serialize, ToSchema)]
pub struct SequencesTaken {
    /// `sequences`.
    #[schema(value_type = String, example = "sequences")]
    pub kind: ItemKind,
    /// Values of a time step.
    pub dim: usize,
    /// The most steps.
    pub max_steps: usize,
}

/// One cluster.
#[derive(Debug, Serialize, ToSchema)]
pub struct Cluster {
    /// Its number.
    pub id: usize,
    /// What it is called: a given name, or `cluster N`.
    pub name: String,
    /// Training items in it.
    pub size: u64,
    /// Share of the training items.
    #[schema(minimum = 0, maximum = 1)]
    pub share: f64,
}

/// Where a model comes from.
#[derive(Debug, Serialize, ToSchema)]
pub struct Provenance {
    /// The method.
    pub method: String,
    /// The preset it started from.
    pub preset: String,
    /// Hash of the training configuration.
    pub config_hash: String,
    /// Seed of the run.
    pub seed: u64,
    /// Name of the dataset.
    pub dataset: String,
    /// Fingerprint of the dataset's content.
    pub dataset_fingerprint: String,
    /// Version of the program that exported it.
    pub tool_version: String,
}

/// What a reload did.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReloadAnswer {
    /// The model.
    #[schema(example = "mnist")]
    pub model: String,
    /// False where the file has the same content as before.
    pub changed: bool,
    /// SHA-256 of the file that serves now.
    pub fingerprint: String,
}

/// List the models and the limits of one request.
#[utoipa::path(
    get, path = "/v1/models", tag = "models",
    responses(
        (status = 200, description = "The models", body = ModelList),
    ),
)]
pub async fn list(state: Data<State>) -> Result<Json<ModelList>, ApiError> {
    Ok(Json(ModelList {
        default: state.default_model()?.name().to_owned(),
        models: state.models.iter().map(|slot| describe(slot, &state.config)).collect(),
        limits: RequestLimits::of(&state.config),
    }))
}

/// Describe one model: input, clusters with names, sizes and shares, scores, provenance.
#[utoipa::path(
    get, path = "/v1/models/{model}", tag = "models",
    params(("model" = String, Path, description = "The model's name")),
    responses(
        (status = 200, description = "The model", body = Model),
        (status = 404, description = "No model of that name", body = ErrorBody),
    ),
)]
pub async fn show(model: Path<String>, state: Data<State>) -> Result<Json<Model>, ApiError> {
    Ok(Json(describe(state.model(&model)?, &state.config)))
}

/// Load the model's file again.
///
/// A changed file is swapped in after a warm-up inference, with no failed request; a file that cannot be used
/// leaves the old one serving. SIGHUP does the same for every model. Which file that is was decided when the
/// service was started.
#[utoipa::path(
    post, path = "/v1/models/{model}/reload", tag = "models",
    params(("model" = String, Path, description = "The model's name")),
    responses(
        (status = 200, description = "The file that serves now", body = ReloadAnswer),
        (status = 404, description = "No model of that name", body = ErrorBody),
        (status = 409, description = "The file cannot be used and the old one keeps serving, or a reload is under way", body = ErrorBody),
    ),
)]
pub async fn reload(model: Path<String>, state: Data<State>) -> Result<HttpResponse, ApiError> {
    let name = state.model(&model)?.name().to_owned();
    let reloaded = blocking({
        let (state, name) = (state.clone(), name.clone());
        move || reload_model(&state, &name)
    })
    .await??;
    let fingerprint = state.model(&name)?.served().fingerprint.clone();
    Ok(HttpResponse::Ok().json(ReloadAnswer { model: name, changed: reloaded == Reloaded::Swapped, fingerprint }))
}

/// Reloads one model and writes down how that went. Blocks.
pub(crate) fn reload_model(state: &State, name: &str) -> Result<Reloaded, ApiError> {
    let result = state.model(name)?.reload(&state.runtime, &state.engine_options(), &state.metrics);
    match &result {
        Ok(Reloaded::Swapped) => tracing::info!(model = name, "the changed model file is serving"),
        Ok(Reloaded::Unchanged) => tracing::info!(model = name, "the model file has not changed"),
        // What is wrong with the file is in the log already.
        Err(_) => {}
    }
    result
}

pub(crate) fn describe(slot: &Slot, config: &ServeConfig) -> Model {
    let served = slot.served();
    let (metadata, names) = (served.model.metadata(), served.cluster_names());
    let kind = served.model.shape().kind();
    let input = match &metadata.input {
        InputSpec::Image(input) => Input::Image(ImagesTaken {
            kind,
            height: input.image.height,
            width: input.image.width,
            channels: input.image.color.channels(),
            color: input.image.color.to_string(),
            resize: input.image.resize.to_string(),
            filter: input.filter.clone(),
        }),
        InputSpec::Sequence { dim } => {
            let spec = served.model.sequences(config.max_steps as usize);
            Input::Sequence(SequencesTaken { kind, dim: *dim, max_steps: spec.map_or(0, |spec| spec.max_steps) })
        }
    };
    let cluster = |(id, cluster): (usize, &dtkc_onnx::Cluster)| Cluster {
        id,
        name: names.get(id).cloned().unwrap_or_default(),
        size: cluster.size,
        share: metadata.cluster_share(id),
    };
    let from = metadata.provenance.clone();
    Model {
        name: slot.name().to_owned(),
        input,
        k: metadata.k(),
        embedding_size: metadata.embedding_size,
        outlier_threshold: metadata.outlier.map(|outlier| outlier.threshold),
        clusters: metadata.clusters.iter().enumerate().map(cluster).collect(),
        metrics: metadata.metrics.clone(),
        edits: metadata.edits.iter().map(|past| past.what.clone()).collect(),
        editable: config.allow_edits && slot.is_own_file(),
        provenance: Provenance {
            method: from.method,
            preset: from.preset,
            config_hash: from.config_hash,
            seed: from.seed,
            dataset: from.dataset,
            dataset_fingerprint: from.dataset_fingerprint,
            tool_version: from.tool_version,
        },
        fingerprint: served.fingerprint.clone(),
    }
}
