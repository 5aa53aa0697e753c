//! Inference on tensors.

use std::time::Instant;

use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Bytes, Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};

use super::tensor::{self, BinarySize, InferAnswer, InferRequest, OutputTensor, Values, WantedOutput, bad, short};
use super::{ModelPath, VERSION};
use crate::engine::{Content, Order, Outcome, Row, Upload};
use crate::error::{ApiError, ErrorBody};
use crate::intake::{self, Body};
use crate::models::queue_full;
use crate::pieces::Pieces;
use crate::routes::assign::times;
use crate::state::State;

const JSON_SIZE: &str = "inference-header-content-length";

/// Run the model on tensors.
///
/// The KServe inference request: one input `image`, UINT8 `[images, height, width, channels]`, in JSON or, with the
/// header `Inference-Header-Content-Length`, in Triton's binary form; outputs `cluster`, `probabilities` and
/// `embedding`. The pixels must already have the model's size; `/v1/assign` takes image files.
#[utoipa::path(
    post, path = "/v2/models/{model}/infer", tag = "v2",
    params(("model" = String, Path, description = "The model's name")),
    request_body = InferRequest,
    responses(
        (status = 200, description = "The outputs", body = InferAnswer),
        (status = 404, description = "No model of that name", body = ErrorBody),
        (status = 504, description = "The answer was not ready in time", body = ErrorBody),
    ),
)]
pub async fn infer(
    path: Path<ModelPath>,
    request: HttpRequest,
    payload: Payload,
    state: Data<State>,
) -> Result<HttpResponse, ApiError> {
    path.check_version()?;
    let slot = state.model(&path.model)?;
    let timeout = state.config.request_timeout;
    let deadline = Instant::now() + timeout;
    let served = slot.served();
    let payload = payload.into_inner();
    if let Some((queued, wait)) = served.engine()?.full() {
        intake::drain(request.headers(), payload).await;
        return Err(queue_full(queued, 1, wait));
    }
    let json_size = json_size(&request)?;
    let body = Body::open(request.headers(), payload, state.config.max_body, state.budget.open())?;
    let reading = tokio::time::timeout_at(deadline.into(), body.collect(request.headers()));
    let (body, held) = reading.await.map_err(|_| ApiError::SlowBody(timeout))??;

    let shape = served.model.spec().shape();
    let parse = move |body: &Bytes| {
        let (mut request, binary) = tensor::split(body, json_size)?;
        let (images, pixels) = tensor::image_input(&mut request, binary, shape)?;
        let wanted = wanted(&request)?;
        Ok((request.id, wanted, images, pixels))
    };
    let (id, wanted, images, pixels) = intake::parse_maybe_blocking(body, parse).await?;
    let limit = state.config.images_per_request();
    if images > limit {
        return Err(ApiError::TooManyImages { limit });
    }
    let each = shape.len();
    let content = |n: usize| Content::Pixels(pixels.slice(n * each..(n + 1) * each));
    let order = Order {
        uploads: (0..images).map(|n| Upload { name: String::new(), content: content(n) }).collect(),
        want_embedding: wanted.iter().any(|w| w.name == "embedding"),
        held,
        deadline,
    };
    let (served, answered) = slot.run(order, timeout).await?;
    let rows = rows(&answered.outcomes)?;
    let widths = (served.model.clusters(), served.model.embedding_size());
    let outputs = wanted.iter().map(|wanted| wanted.collect(&rows, widths)).collect();
    let mut response = HttpResponse::Ok();
    times(&mut response, &answered);
    let body = answer(&mut response, slot.name().to_owned(), id, outputs)?;
    Ok(response.body(Pieces::new(body, state.budget.open())?))
}

fn json_size(request: &HttpRequest) -> Result<Option<usize>, ApiError> {
    let Some(value) = request.headers().get(JSON_SIZE) else { return Ok(None) };
    let size = value.to_str().ok().and_then(|text| text.parse().ok());
    size.map(Some).ok_or_else(|| bad("Inference-Header-Content-Length is not a number"))
}

fn rows(outcomes: &[Outcome]) -> Result<Vec<&Row>, ApiError> {
    // Pixels of the right size cannot fail alone, except where a reload changed the size in between.
    outcomes.iter().map(|outcome| outcome.as_ref().map_err(|problem| bad(&problem.message))).collect()
}

/// An output as it was asked for.
#[derive(Clone, Copy)]
struct Wanted {
    name: &'static str,
    binary: bool,
}

fn wanted(request: &InferRequest) -> Result<Vec<Wanted>, ApiError> {
    let all_binary = request.parameters.as_ref().and_then(|p| p.binary_data_output).unwrap_or(false);
    match request.outputs.as_deref() {
        None | Some([]) => Ok(NAMES.map(|name| Wanted { name, binary: all_binary }).to_vec()),
        Some(outputs) => outputs.iter().map(|output| one_wanted(output, all_binary)).collect(),
    }
}

const NAMES: [&str; 3] = ["cluster", "probabilities", "embedding"];

fn one_wanted(output: &WantedOutput, all_binary: bool) -> Result<Wanted, ApiError> {
    let known = NAMES.into_iter().find(|name| *name == output.name);
    let name = known
        .ok_or_else(|| bad(&format!("there is no output '{}'; there are {}", short(&output.name), NAMES.join(", "))))?;
    let parameters = output.parameters.clone().unwrap_or_default();
    if parameters.shared_memory_region.is_some() {
        return Err(bad("shared memory is not offered; leave it out to get the data in the answer"));
    }
    if parameters.classification.is_some_and(|n| n > 0) {
        return Err(bad("class labels are not offered; ask for the output 'cluster'"));
    }
    Ok(Wanted { name, binary: parameters.binary_data.unwrap_or(all_binary) })
}

/// An output with its values, and whether they go behind the JSON.
struct Output {
    name: &'static str,
    shape: Vec<usize>,
    values: Values,
    binary: bool,
}

impl Wanted {
    fn collect(&self, rows: &[&Row], (k, embedding): (usize, usize)) -> Output {
        let images = rows.len();
        let (shape, values) = match self.name {
            "cluster" => (vec![images], Values::Integers(rows.iter().map(|row| row.cluster as i64).collect())),
            "probabilities" => (
                vec![images, k],
                Values::Floats(rows.iter().flat_map(|row| row.probabilities.iter().copied()).collect()),
            ),
            _ => {
                let values = rows.iter().flat_map(|row| row.embedding.iter().flatten().copied());
                (vec![images, embedding], Values::Floats(values.collect()))
            }
        };
        Output { name: self.name, shape, values, binary: self.binary }
    }
}

fn answer(
    response: &mut actix_web::HttpResponseBuilder,
    model_name: String,
    id: Option<String>,
    outputs: Vec<Output>,
) -> Result<Vec<u8>, ApiError> {
    let mut behind = Vec::new();
    let any_binary = outputs.iter().any(|output| output.binary);
    let tensor = |output: Output| {
        let datatype = if matches!(output.values, Values::Integers(_)) { "INT64" } else { "FP32" };
        let mut tensor =
            OutputTensor { name: output.name, datatype, shape: output.shape, parameters: None, data: None };
        if output.binary {
            tensor.parameters = Some(BinarySize { binary_data_size: output.values.bytes() });
            output.values.append_to(&mut behind);
        } else {
            tensor.data = Some(output.values);
        }
        tensor
    };
    let outputs = outputs.into_iter().map(tensor).collect();
    let answer = InferAnswer { model_name, model_version: VERSION, id, outputs };
    let mut body = serde_json::to_vec(&answer).map_err(|_| ApiError::Internal)?;
    if !any_binary {
        response.insert_header((CONTENT_TYPE, "application/json"));
        return Ok(body);
    }
    response.insert_header((JSON_SIZE, body.len())).insert_header((CONTENT_TYPE, "application/octet-stream"));
    body.append(&mut behind);
    Ok(body)
}
