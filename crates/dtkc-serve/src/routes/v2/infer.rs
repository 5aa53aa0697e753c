//! Inference on tensors.

use std::time::Instant;

use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Bytes, Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};

use super::tensor::{self, BinarySize, InferAnswer, InferRequest, OutputTensor, Values, WantedOutput, bad, short};
use super::{ModelPath, VERSION};
use crate::client;
use crate::engine::{Content, Order, Outcome, Row, Upload};
use crate::error::{ApiError, ErrorBody};
use crate::extent::Extent;
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
    let client = client::of(&request);
    if let Some((queued, wait)) = served.engine()?.full(client) {
        intake::drain(request.headers(), payload).await;
        return Err(queue_full(queued, 1, wait));
    }
    let json_size = json_size(&request)?;
    let body = Body::open(request.headers(), payload, state.config.max_body, state.budget.open_for(client))?;
    let (shape, limit) = (served.model.spec().shape(), state.config.images_per_request());
    let reading = async {
        let (body, mut held) = body.collect(request.headers()).await?;
        let parse = move |body: &Bytes| {
            // What is read out of the JSON is never larger than the JSON.
            held.grow(json_size.map_or(body.len(), |size| size.min(body.len())) as u64)?;
            let (mut request, binary) = tensor::split(body, json_size)?;
            let (images, pixels) = tensor::image_input(&mut request, binary, shape, limit)?;
            let wanted = wanted(&request)?;
            Ok((request.id, wanted, images, pixels, held))
        };
        intake::parse_maybe_heavy(body, parse).await
    };
    let read = tokio::time::timeout_at(deadline.into(), reading).await;
    let (id, wanted, images, pixels, held) = read.map_err(|_| ApiError::SlowBody(timeout))??;
    let widths = (served.model.clusters(), served.model.embedding_size());
    let want_embedding = wanted.iter().any(|wanted| wanted.name == "embedding");
    let size = Extent::new(images, &served, want_embedding).infer(wanted.iter().map(|wanted| wanted.size(widths)));
    let answer_held = state.budget.answer(size, &held)?;
    let each = shape.len();
    let content = |n: usize| Content::Pixels(pixels.slice(n * each..(n + 1) * each));
    let uploads = (0..images).map(|n| Upload { name: String::new(), content: content(n) }).collect();
    let order = Order { uploads, want_embedding, held, deadline, client };
    drop(pixels);
    let (served, mut answered) = slot.run(order, timeout).await?;
    let outcomes = std::mem::take(&mut answered.outcomes);
    let widths = (served.model.clusters(), served.model.embedding_size());
    let model = slot.name().to_owned();
    let write = move || answer(model, id, &wanted, &outcomes, widths);
    let Written { body, json_size } = if Extent::is_large(size) { intake::heavy(write).await?? } else { write()? };
    let mut response = HttpResponse::Ok();
    times(&mut response, &answered);
    match json_size {
        None => response.insert_header((CONTENT_TYPE, "application/json")),
        Some(size) => {
            response.insert_header((JSON_SIZE, size)).insert_header((CONTENT_TYPE, "application/octet-stream"))
        }
    };
    Ok(response.body(Pieces::new(body, answer_held)?))
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
    match request.outputs.as_ref().map(|outputs| outputs.0.as_slice()) {
        None | Some([]) => Ok(NAMES.map(|name| Wanted { name, binary: all_binary }).to_vec()),
        Some(outputs) => {
            let wanted: Vec<Wanted> =
                outputs.iter().map(|output| one_wanted(output, all_binary)).collect::<Result<_, _>>()?;
            let twice = |n: usize| wanted[..n].iter().any(|earlier| earlier.name == wanted[n].name);
            match (0..wanted.len()).find(|&n| twice(n)) {
                Some(n) => Err(bad(&format!("the output '{}' is asked for twice; ask for it once", wanted[n].name))),
                None => Ok(wanted),
            }
        }
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
    /// Values per image, and whether they go behind the JSON.
    fn size(&self, (k, embedding): (usize, usize)) -> (u64, bool) {
        let values = match self.name {
            "cluster" => 1,
            "probabilities" => k,
            _ => embedding,
        };
        (values as u64, self.binary)
    }

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

/// An answer's bytes; where some of them are not JSON, how many are.
struct Written {
    body: Vec<u8>,
    json_size: Option<usize>,
}

fn answer(
    model_name: String,
    id: Option<String>,
    wanted: &[Wanted],
    outcomes: &[Outcome],
    widths: (usize, usize),
) -> Result<Written, ApiError> {
    let rows = rows(outcomes)?;
    let mut behind = Vec::new();
    let any_binary = wanted.iter().any(|wanted| wanted.binary);
    let tensor = |wanted: &Wanted| {
        let Output { name, shape, values, binary } = wanted.collect(&rows, widths);
        let datatype = if matches!(values, Values::Integers(_)) { "INT64" } else { "FP32" };
        let mut tensor = OutputTensor { name, datatype, shape, parameters: None, data: None };
        if binary {
            tensor.parameters = Some(BinarySize { binary_data_size: values.bytes() });
            values.append_to(&mut behind);
        } else {
            tensor.data = Some(values);
        }
        tensor
    };
    let outputs = wanted.iter().map(tensor).collect();
    let answer = InferAnswer { model_name, model_version: VERSION, id, outputs };
    let mut body = serde_json::to_vec(&answer).map_err(|_| ApiError::Internal)?;
    let json_size = any_binary.then_some(body.len());
    body.append(&mut behind);
    Ok(Written { body, json_size })
}
