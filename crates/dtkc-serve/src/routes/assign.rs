//! Images in, clusters out.

use std::time::Instant;

use actix_web::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use utoipa::ToSchema;

use crate::answer::{AssignAnswer, Assigned, Format};
use crate::client;
use crate::engine::{Answered, Order};
use crate::error::{ApiError, ErrorBody};
use crate::extent::Extent;
use crate::intake::{self, AssignBody, Intake, Options, SequencesBody};
use crate::models::{Served, Slot, queue_full};
use crate::pieces::Pieces;
use crate::state::State;

/// Files of a multipart form: any field name, any number of files, zips included; and options as fields without a file.
#[derive(ToSchema)]
#[allow(dead_code)] // Only describes the form for /docs.
pub struct AssignForm {
    /// The image files.
    #[schema(format = Binary, content_media_type = "application/octet-stream", min_items = 1)]
    image: Vec<String>,
    /// How many clusters to list per image, the most probable first.
    #[schema(minimum = 0, maximum = 10_000)]
    top_k: Option<u32>,
    /// True to get each image's embedding.
    embedding: Option<bool>,
}

/// The bytes of a file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code)] // Only describes the body for /docs.
pub struct FileContent(Vec<u8>);

/// Assign images to the clusters of the default model.
///
/// Send one image, a zip, multipart files or JSON with base64; the answer has one entry per image, in order, those of a
/// zip in natural order of their names. An image that cannot be used gets an `error` of its own and does not disturb the
/// others; files of a zip that are no images are passed over and counted. The headers
/// `x-queue-ms` and `x-inference-ms` say where the time went.
///
/// A model for sequences takes JSON with `sequences`, a CSV, or CSVs as multipart files: with a column of ids, with a row
/// for every sequence, or each one sequence. The answer has `sequences` in place of `images`.
#[utoipa::path(
    post, path = "/v1/assign", tag = "assign", params(Options),
    request_body(content(
        (AssignForm = "multipart/form-data"),
        (AssignBody = "application/json"),
        (SequencesBody = "application/vnd.dtkc.sequences+json"),
        (String = "text/csv"),
        (FileContent = "image/*"),
        (FileContent = "application/zip"),
    )),
    responses(
        (status = 200, description = "One entry per image, in order", content(
            (AssignAnswer = "application/json"), (String = "text/csv"), (String = "application/x-ndjson"))),
        (status = 422, description = "No image in the body, or one that cannot be decoded", body = ErrorBody),
        (status = 504, description = "The answer was not ready in time", body = ErrorBody),
    ),
)]
pub async fn assign(
    request: HttpRequest,
    payload: Payload,
    query: Query<Options>,
    state: Data<State>,
) -> Result<HttpResponse, ApiError> {
    handle(&request, payload, &query, state.default_model()?, &state).await
}

/// The same as [`assign`] with the model named in the path; `openapi` describes it by that.
pub async fn assign_with(
    model: Path<String>,
    request: HttpRequest,
    payload: Payload,
    query: Query<Options>,
    state: Data<State>,
) -> Result<HttpResponse, ApiError> {
    handle(&request, payload, &query, state.model(&model)?, &state).await
}

async fn handle(
    request: &HttpRequest,
    payload: Payload,
    query: &Options,
    slot: &Slot,
    state: &State,
) -> Result<HttpResponse, ApiError> {
    let timeout = state.config.request_timeout;
    let deadline = Instant::now() + timeout;
    let payload = payload.into_inner();
    let (client, format) = (client::of(request), Format::wanted(request));
    if let Some((queued, wait)) = slot.served().engine()?.full(client) {
        intake::drain(request.headers(), payload).await;
        return Err(queue_full(queued, 1, wait));
    }
    let sequences = slot.served().model.sequences(state.config.max_steps as usize);
    let kind = slot.served().model.shape().kind();
    let reading = intake::read(request, payload, &state.config, sequences, state.budget.open_for(client));
    let intake = tokio::time::timeout_at(deadline.into(), reading).await.map_err(|_| ApiError::SlowBody(timeout))??;
    let Intake { mut uploads, passed, held, raw, options } = intake;
    let options = options.or(*query)?;
    let (top_k, want_embedding) = (options.top_k.unwrap_or(0) as usize, options.embedding.unwrap_or(false));
    let names: Vec<String> = uploads.iter_mut().map(|upload| std::mem::take(&mut upload.name)).collect();
    let extent = Extent::new(names.len(), &slot.served(), want_embedding);
    let size = extent.assign(format, top_k, names.iter().map(String::len).sum());
    let answer_held = state.budget.answer(size, &held)?;
    let order = Order { uploads, want_embedding, held, deadline, client };
    let (served, mut answered) = slot.run(order, timeout).await?;

    // A body that is one image and nothing else has nowhere to put an error of its own.
    if raw && answered.outcomes.first().is_some_and(Result::is_err) {
        return Err(answered.outcomes.swap_remove(0).map_or_else(ApiError::BadImage, |_| ApiError::Internal));
    }
    let assigned = Assigned {
        model: slot.name().to_owned(),
        kind,
        names,
        passed_over: passed,
        outcomes: std::mem::take(&mut answered.outcomes),
        cluster_names: served.cluster_names(),
        top_k,
    };
    let body = if Extent::is_large(size) {
        intake::heavy(move || format.write(&assigned.into_answer())).await??
    } else {
        format.write(&assigned.into_answer())?
    };
    let mut response = HttpResponse::Ok();
    times(&mut response, &answered).insert_header((CONTENT_TYPE, format.content_type()));
    let mut response = response.body(Pieces::new(body, answer_held)?);
    mark_model(&mut response, &served);
    Ok(response)
}

/// Says which file an answer comes from: a client that has seen others can notice that it was replaced.
pub(crate) fn mark_model(response: &mut HttpResponse, served: &Served) {
    if let Ok(value) = HeaderValue::from_str(&served.fingerprint) {
        response.headers_mut().insert(HeaderName::from_static("x-model-fingerprint"), value);
    }
}

/// Says where the time went, in headers for programs and in the one that browsers show.
pub(crate) fn times<'a>(response: &'a mut HttpResponseBuilder, answered: &Answered) -> &'a mut HttpResponseBuilder {
    let ms = |time: std::time::Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
    let (queue, inference) = (ms(answered.queued), ms(answered.worked));
    response
        .insert_header(("server-timing", format!("queue;dur={queue}, inference;dur={inference}")))
        .insert_header(("x-queue-ms", queue))
        .insert_header(("x-inference-ms", inference))
}
