//! Images as the files of a multipart form.

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::http::header::HeaderMap;
use actix_web::web::Bytes;
use futures_util::TryStreamExt;

use super::archive::{self, ArchiveLimits};
use super::body::Body;
use super::budget::Held;
use crate::answer::PassedOver;
use crate::engine::{Content, Upload};
use crate::error::ApiError;

/// Reads every file of the form, zips included, in the order in which they come, and what was passed over in zips.
pub async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: ArchiveLimits,
) -> Result<(Vec<Upload>, PassedOver, Held), ApiError> {
    let meter = body.meter();
    let explain = |error: MultipartError| {
        let problem = meter.borrow_mut().take_problem();
        problem.unwrap_or_else(|| ApiError::BadMultipart(error.to_string().to_lowercase()))
    };
    let mut form = Multipart::new(headers, body);
    let (mut uploads, mut passed): (Vec<Upload>, PassedOver) = Default::default();
    while let Some(mut field) = form.try_next().await.map_err(explain)? {
        let name = file_name(&field, uploads.len());
        let bytes = content(&mut field).await.map_err(explain)?;
        if archive::is_zip(&bytes) {
            let left = ArchiveLimits { max_images: limits.max_images - uploads.len(), ..limits };
            let opened = super::blocking(move || archive::open(bytes, left)).await?;
            let (images, others) = opened.map_err(|error| whole_limit(error, limits))?;
            uploads.extend(images);
            passed.join(others);
        } else if uploads.len() == limits.max_images {
            return Err(ApiError::TooManyImages { limit: limits.max_images });
        } else {
            uploads.push(Upload { name, content: Content::Encoded(bytes) });
        }
    }
    let held = meter.borrow_mut().take_held();
    Ok((uploads, passed, held))
}

/// The client should read the limit of the request, not what was left of it for one archive.
fn whole_limit(error: ApiError, limits: ArchiveLimits) -> ApiError {
    match error {
        ApiError::TooManyImages { .. } => ApiError::TooManyImages { limit: limits.max_images },
        other => other,
    }
}

fn file_name(field: &Field, index: usize) -> String {
    let disposition = field.content_disposition();
    let given = disposition.and_then(|d| d.get_filename()).filter(|name| !name.is_empty());
    given.map_or_else(|| index.to_string(), str::to_owned)
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
    Ok(whole.into())
}
