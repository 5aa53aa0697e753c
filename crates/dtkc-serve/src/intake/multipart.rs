//! Images as the files of a multipart form, and options as its fields.

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use actix_web::web::Bytes;
use dtkc_infer::SequenceSpec;
use futures_util::{StreamExt, TryStreamExt};

use super::archive::{self, ArchiveLimits};
use super::body::{Body, Meter};
use super::disposition::{Disposition, parameters};
use super::heads::Heads;
use super::heavy::heavy;
use super::{Intake, Options, table};
use crate::engine::{Content, Upload};
use crate::error::ApiError;

/// No option needs more.
const LONGEST_OPTION: usize = 100;

/// Reads every file of the form, zips included, in the order in which they come, and what was passed over in zips.
/// Where the model takes `sequences`, every file is a table of them.
pub async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: ArchiveLimits,
    sequences: Option<SequenceSpec>,
) -> Result<Intake, ApiError> {
    let meter = body.meter();
    let explain = |error: MultipartError| explain(&mut meter.borrow_mut(), &error);
    let mut heads = Heads::new(&boundary(headers));
    let body = body.map(move |piece| piece.map(|piece| heads.clean(piece)));
    let mut form = Multipart::new(&any_part(headers), body);
    let mut intake = Intake::default();
    while let Some(mut field) = form.try_next().await.map_err(explain)? {
        let part = Disposition::of(field.headers());
        let bytes = content(&mut field).await.map_err(explain)?;
        if part.file.is_none() && intake.options.is_one(&part.field) {
            read_option(&mut intake.options, &part.field, &bytes)?;
            continue;
        }
        let uploads = &mut intake.uploads;
        if let Some(spec) = sequences {
            meter.borrow_mut().hold(table::cost(&bytes))?;
            let left = limits.max_images - uploads.len();
            let file = part.file.filter(|name| !name.is_empty());
            let read = heavy(move || table::parse(file.as_deref(), bytes, spec, left)).await?;
            uploads.extend(read.map_err(|error| whole_limit(error, limits))?);
        } else if archive::is_zip(&bytes) {
            let left = ArchiveLimits { max_images: limits.max_images - uploads.len(), ..limits };
            let opened = heavy(move || archive::open(bytes, left)).await?;
            let (images, others) = opened.map_err(|error| whole_limit(error, limits))?;
            uploads.extend(images);
            intake.passed.join(others);
        } else if uploads.len() == limits.max_images {
            return Err(ApiError::TooManyImages { limit: limits.max_images });
        } else {
            let name = part.file.filter(|name| !name.is_empty()).unwrap_or_else(|| uploads.len().to_string());
            uploads.push(Upload { name, content: Content::Encoded(bytes) });
        }
    }
    intake.held = meter.borrow_mut().take_held();
    Ok(intake)
}

/// The parser looks into the names of a form's parts and gives up on the whole form where it cannot decode one. For any
/// other kind of multipart it leaves the names to us.
fn any_part(headers: &HeaderMap) -> HeaderMap {
    let given = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let parameters = given.iter().position(|&byte| byte == b';').map_or(&b""[..], |at| &given[at..]);
    let mut changed = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(&[b"multipart/mixed", parameters].concat()) {
        changed.insert(CONTENT_TYPE, value);
    }
    changed
}

/// What separates the parts; nothing where the parser will say that it is missing.
fn boundary(headers: &HeaderMap) -> Vec<u8> {
    let given = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    parameters(given).into_iter().find(|(key, _)| key == "boundary").map(|(_, value)| value).unwrap_or_default()
}

fn explain(meter: &mut Meter, error: &MultipartError) -> ApiError {
    let reason = match error {
        MultipartError::Payload(PayloadError::Overflow) if !meter.is_stopped() => "a part's head is too long",
        MultipartError::Payload(error) => return meter.explain(error),
        MultipartError::BoundaryMissing => "its boundary is not found",
        MultipartError::Incomplete => "it is cut short",
        MultipartError::Nested => "a part is a form of its own",
        _ => "a part's head breaks the rules",
    };
    ApiError::BadMultipart(reason.into())
}

/// The client should read the limit of the request, not what was left of it for one archive.
fn whole_limit(error: ApiError, limits: ArchiveLimits) -> ApiError {
    match error {
        ApiError::TooManyImages { .. } => ApiError::TooManyImages { limit: limits.max_images },
        other => other,
    }
}

fn read_option(options: &mut Options, field: &str, bytes: &[u8]) -> Result<(), ApiError> {
    let text = bytes.get(..bytes.len().min(LONGEST_OPTION)).unwrap_or_default();
    options.set(field, String::from_utf8_lossy(text).trim())
}

async fn content(field: &mut Field) -> Result<Bytes, MultipartError> {
    let Some(first) = field.try_next().await? else { return Ok(Bytes::new()) };
    let Some(second) = field.try_next().await? else { return Ok(first) };
    let mut whole = Vec::with_capacity((first.len() + second.len()) * 2);
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&second);
    while let Some(chunk) = field.try_next().await? {
        whole.extend_from_slice(&chunk);
    }
    // It grew in leaps; only what it holds is counted.
    whole.shrink_to_fit();
    Ok(whole.into())
}
