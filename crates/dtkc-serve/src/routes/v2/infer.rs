//! Inference on tensors.

use std::time::{Duration, Instant};

use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Bytes, Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use dtkc_infer::SequenceSpec;
use dtkc_item::ItemShape;

use super::sequences::SequenceRequest;
use super::tensor::{
    self, AtMost, BinarySize, InferAnswer, InferRequest, OutputTensor, Parameters, Values, WantedOutput, bad, short,
};
use super::{ModelPath, VERSION, sequences};
use crate::client;
use crate::engine::{Answered, Content, Order, Outcome, Row, Upload};
use crate::error::{ApiError, ErrorBody};
use crate::extent::Extent;
use crate::intake::{self, Body, Held};
use crate::models::{Slot, queue_full};
use crate::pieces::Pieces;
use crate::routes::assign::times;
use crate::state::State;

const JSON_SIZE: &str = "inference-header-content-length";

/// Run the model on tensors.
///
/// The KServe inference request: one input `image`, UINT8 `[images, height, width, channels]`, in JSON or, with the
/// header `Inference-Header-Content-Length`, in Triton's binary form; outputs `cluster`, `probabilities`,
/// `embedding` and, where the model has it, `outlier`. The pixels must already have the model's size; `/v1/assign` takes image files. A model for sequences has
/// two inputs: `values`, FP32 `[sequences, time, dim]`, and `lengths`, INT64 `[sequences]`; what stands behind a length is
/// not looked at.
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
    let (shape, limit) = (served.model.shape(), state.config.images_per_request());
    let spec = served.model.sequences(state.config.max_steps as usize);
    let reading = async {
        let (body, mut held) = body.collect(request.headers()).await?;
        let parse = move |body: &Bytes| {
            let json = json_size.map_or(body.len(), |size| size.min(body.len())) as u64;
            if let Some(spec) = spec {
                // The sequences, and what is read out of the JSON before.
                held.grow(sequences::PER_BYTE * json + body.len() as u64)?;
                return Asked::sequences(sequences::split(body, json_size)?, spec, limit, held);
            }
            // What is read out of the JSON is never larger than the JSON.
            held.grow(json)?;
            Asked::images(tensor::split(body, json_size)?, shape, limit, held)
        };
        intake::parse_maybe_heavy(body, parse).await
    };
    let read = tokio::time::timeout_at(deadline.into(), reading).await;
    let (id, asked) = read.map_err(|_| ApiError::SlowBody(timeout))??;
    let told = asked.run(&state, slot, client, deadline, timeout).await?;
    let model = slot.name().to_owned();
    let (size, mut response) = (told.size, HttpResponse::Ok());
    times(&mut response, &told.answered);
    let write = move || answer(model, id, &told).map(|written| (written, told.held));
    let (Written { body, json_size }, held) =
        if Extent::is_large(size) { intake::heavy(write).await?? } else { write()? };
    match json_size {
        None => response.insert_header((CONTENT_TYPE, "application/json")),
        Some(size) => {
            response.insert_header((JSON_SIZE, size)).insert_header((CONTENT_TYPE, "application/octet-stream"))
        }
    };
    Ok(response.body(Pieces::new(body, held)?))
}

fn json_size(request: &HttpRequest) -> Result<Option<usize>, ApiError> {
    let Some(value) = request.headers().get(JSON_SIZE) else { return Ok(None) };
    let size = value.to_str().ok().and_then(|text| text.parse().ok());
    size.map(Some).ok_or_else(|| bad("Inference-Header-Content-Length is not a number"))
}

/// A request that was read and found good, whichever protocol it came by.
pub(crate) struct Asked {
    /// The outputs, each once.
    pub wanted: Vec<Wanted>,
    /// The images or sequences, at least one.
    pub contents: Vec<Content>,
    /// The memory that they hold.
    pub held: Held,
}

/// What the model said, with room for the answer that is to be written.
pub(crate) struct Told {
    wanted: Vec<Wanted>,
    /// Clusters, and values of an embedding.
    widths: (usize, usize),
    answered: Answered,
    /// The most that the answer takes, and the memory that is kept for it.
    pub size: u64,
    pub held: Held,
}

/// A request with its id.
pub(crate) type Identified = (Option<String>, Asked);

impl Asked {
    /// A request for a model that takes images of that shape, with what came in binary.
    pub fn images(
        (mut request, binary): (InferRequest, Bytes),
        shape: ItemShape,
        limit: usize,
        held: Held,
    ) -> Result<Identified, ApiError> {
        let shape = shape.image().ok_or_else(|| bad("the model takes sequences and no images"))?;
        let (images, pixels) = tensor::image_input(&mut request, binary, shape, limit)?;
        let each = pixels.len() / images;
        let contents = (0..images).map(|n| Content::Pixels(pixels.slice(n * each..(n + 1) * each))).collect();
        let wanted = wanted(request.parameters.as_ref(), request.outputs.as_ref())?;
        Ok((request.id, Self { wanted, contents, held }))
    }

    /// The same for a model that takes sequences.
    pub fn sequences(
        (mut request, binary): (SequenceRequest, Bytes),
        spec: SequenceSpec,
        limit: usize,
        held: Held,
    ) -> Result<Identified, ApiError> {
        let contents = sequences::sequences(&mut request, binary, spec, limit)?;
        let wanted = wanted(request.parameters.as_ref(), request.outputs.as_ref())?;
        Ok((request.id, Self { wanted, contents, held }))
    }

    /// Books the answer, and has the images assigned in their client's turn.
    pub async fn run(
        self,
        state: &State,
        slot: &Slot,
        client: u64,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<Told, ApiError> {
        let Self { mut wanted, contents, held: request } = self;
        let served = slot.served();
        if served.model.outlier().is_none() {
            // Who names no outputs gets those that there are.
            wanted.retain(|wanted| wanted.name != OUTLIER || wanted.named);
            refuse_outlier(&wanted)?;
        }
        let widths = (served.model.clusters(), served.model.embedding_size());
        let want_embedding = wanted.iter().any(|wanted| wanted.name == "embedding");
        let size =
            Extent::new(contents.len(), &served, want_embedding).infer(wanted.iter().map(|wanted| wanted.size(widths)));
        let held = state.budget.answer(size, &request)?;
        let uploads = contents.into_iter().map(|content| Upload { name: String::new(), content }).collect();
        let order = Order { uploads, want_embedding, held: request, deadline, client };
        let (served, answered) = slot.run(order, timeout).await?;
        if served.model.outlier().is_none() {
            // Another file came in between.
            refuse_outlier(&wanted)?;
        }
        let widths = (served.model.clusters(), served.model.embedding_size());
        Ok(Told { wanted, widths, answered, size, held })
    }
}

impl Told {
    /// The outputs one by one, as they were asked for.
    pub fn outputs(&self) -> Result<impl Iterator<Item = Output> + '_, ApiError> {
        let rows = rows(&self.answered.outcomes)?;
        Ok(self.wanted.iter().map(move |wanted| wanted.collect(&rows, self.widths)))
    }
}

fn rows(outcomes: &[Outcome]) -> Result<Vec<&Row>, ApiError> {
    // A tensor has no place for the error of one row: pixels of the right size only fail where a reload changed the size
    // in between, sequences where values are missing.
    outcomes.iter().map(|outcome| outcome.as_ref().map_err(|problem| bad(&problem.message))).collect()
}

/// An output as it was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    name: &'static str,
    binary: bool,
    /// False where a request names no outputs.
    named: bool,
}

fn refuse_outlier(wanted: &[Wanted]) -> Result<(), ApiError> {
    match wanted.iter().any(|wanted| wanted.name == OUTLIER) {
        true => Err(bad("the model has no output 'outlier'; `dtkc-train outliers` adds it to its file")),
        false => Ok(()),
    }
}

/// The outputs that a request asks for; all of them where it names none.
fn wanted(parameters: Option<&Parameters>, outputs: Option<&AtMost<WantedOutput, 4>>) -> Result<Vec<Wanted>, ApiError> {
    let all_binary = parameters.and_then(|p| p.binary_data_output).unwrap_or(false);
    match outputs.map(|outputs| outputs.0.as_slice()) {
        None | Some([]) => Ok(NAMES.map(|name| Wanted { name, binary: all_binary, named: false }).to_vec()),
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

const OUTLIER: &str = "outlier";
const NAMES: [&str; 4] = ["cluster", "probabilities", "embedding", OUTLIER];

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
    Ok(Wanted { name, binary: parameters.binary_data.unwrap_or(all_binary), named: true })
}

/// An output with its values, and whether they go behind the JSON.
pub(crate) struct Output {
    pub name: &'static str,
    pub shape: Vec<usize>,
    pub values: Values,
    pub binary: bool,
}

impl Wanted {
    /// Values per image, and whether they go behind the JSON.
    fn size(&self, (k, embedding): (usize, usize)) -> (u64, bool) {
        let values = match self.name {
            "cluster" | OUTLIER => 1,
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
            OUTLIER => (vec![images], Values::Floats(rows.iter().filter_map(|row| row.outlier).collect())),
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

fn answer(model_name: String, id: Option<String>, told: &Told) -> Result<Written, ApiError> {
    let mut behind = Vec::new();
    let any_binary = told.wanted.iter().any(|wanted| wanted.binary);
    let tensor = |Output { name, shape, values, binary }| {
        let datatype = values.datatype();
        let mut tensor = OutputTensor { name, datatype, shape, parameters: None, data: None };
        if binary {
            tensor.parameters = Some(BinarySize { binary_data_size: values.bytes() });
            values.append_to(&mut behind);
        } else {
            tensor.data = Some(values);
        }
        tensor
    };
    let outputs = told.outputs()?.map(tensor).collect();
    let answer = InferAnswer { model_name, model_version: VERSION, id, outputs };
    let mut body = serde_json::to_vec(&answer).map_err(|_| ApiError::Internal)?;
    let json_size = any_binary.then_some(body.len());
    body.append(&mut behind);
    Ok(Written { body, json_size })
}
