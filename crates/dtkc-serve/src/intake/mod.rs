//! From a request body to images or sequences for the queue, whatever form they come in. No image is decoded here.

mod archive;
mod body;
mod budget;
mod disposition;
mod heads;
mod heavy;
mod json;
mod list;
mod multipart;
mod name;
mod options;
mod steps;
mod table;
mod unpack;

use actix_web::HttpMessage;
use actix_web::HttpRequest;
use actix_web::dev::Payload;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::Bytes;
use dtkc_infer::SequenceSpec;

pub use archive::Archive;
pub use body::{Body, drain};
pub use budget::{Budget, Held};
pub use heavy::{blocking, heavy};
pub use json::AssignBody;
pub use options::Options;
pub use steps::SequencesBody;

use self::archive::ArchiveLimits;
use crate::answer::PassedOver;
use crate::config::ServeConfig;
use crate::engine::{Content, Upload};
use crate::error::ApiError;

/// Bodies up to this size are parsed where they arrive; larger ones on a thread that may block.
const SMALL_BODY: usize = 64 << 10;

/// The images of one request.
#[derive(Debug, Default)]
pub struct Intake {
    /// The images, at least one.
    pub uploads: Vec<Upload>,
    /// What was passed over in zips.
    pub passed: PassedOver,
    /// The memory they hold.
    pub held: Held,
    /// True where the body was one image and nothing around it: its problem is the request's problem.
    pub raw: bool,
    /// Options of a JSON body or a form; they win over the query.
    pub options: Options,
}

/// Reads the images of a request, or its sequences where the model takes `sequences`.
pub async fn read(
    request: &HttpRequest,
    payload: Payload,
    config: &ServeConfig,
    sequences: Option<SequenceSpec>,
    held: Held,
) -> Result<Intake, ApiError> {
    let limits = ArchiveLimits { max_images: config.images_per_request(), max_bytes: config.max_body };
    let headers = request.headers();
    let kind = Kind::of(request, sequences.is_some())?;
    let body = Body::open(headers, payload, config.max_body, held)?;
    let intake = match (kind, sequences) {
        (Kind::Multipart, _) => multipart::read(headers, body, limits, sequences).await?,
        (Kind::Table | Kind::Json, Some(spec)) => {
            let (bytes, mut held) = body.collect(headers).await?;
            let read = move |bytes: &Bytes| match kind {
                Kind::Table => {
                    held.grow(table::cost(bytes))?;
                    let uploads = table::parse(None, bytes.clone(), spec, limits.max_images)?;
                    table::settle(&uploads, &mut held)?;
                    Ok(Intake { uploads, held, ..Intake::default() })
                }
                _ => {
                    let list::Parsed { uploads, options } = steps::parse(bytes, spec, limits.max_images, &mut held)?;
                    Ok(Intake { uploads, options, held, ..Intake::default() })
                }
            };
            parse_maybe_heavy(bytes, read).await?
        }
        (Kind::Table, None) => return Err(ApiError::WrongType(shown_type(request))),
        (Kind::Json, None) => {
            let (bytes, mut held) = body.collect(headers).await?;
            let read = move |bytes: &Bytes| {
                let list::Parsed { uploads, options } = json::parse(bytes, limits.max_images, &mut held)?;
                Ok(Intake { uploads, options, held, ..Intake::default() })
            };
            parse_maybe_heavy(bytes, read).await?
        }
        (Kind::Binary, _) => {
            let (bytes, held) = body.collect(headers).await?;
            let raw = !archive::is_zip(&bytes);
            let (uploads, passed) = if raw {
                (vec![Upload { name: "0".into(), content: Content::Encoded(bytes) }], PassedOver::default())
            } else {
                heavy(move || archive::open(bytes, limits)).await??
            };
            Intake { uploads, passed, held, raw, ..Intake::default() }
        }
    };
    check_count(&intake.uploads, limits.max_images)?;
    Ok(intake)
}

fn check_count(uploads: &[Upload], most: usize) -> Result<(), ApiError> {
    match uploads.len() {
        0 => Err(ApiError::NoImages),
        n if n > most => Err(ApiError::TooManyImages { limit: most }),
        _ => Ok(()),
    }
}

/// Reads a JSON document, such as a cluster's name.
pub async fn read_json<T>(request: &HttpRequest, payload: Payload, limit: u64, held: Held) -> Result<T, ApiError>
where
    T: serde::de::DeserializeOwned + Send + 'static,
{
    if !matches!(request.mime_type(), Ok(Some(mime)) if is_json(mime.essence_str())) {
        return Err(ApiError::NotJsonType(shown_type(request)));
    }
    let (bytes, _held) = Body::open(request.headers(), payload, limit, held)?.collect(request.headers()).await?;
    parse_maybe_heavy(bytes, |bytes| {
        serde_json::from_slice(bytes).map_err(|error| ApiError::BadJson(error.to_string()))
    })
    .await
}

/// Runs `parse` at once for a small body, on a thread that may block for a large one.
pub async fn parse_maybe_heavy<T: Send + 'static>(
    bytes: Bytes,
    parse: impl FnOnce(&Bytes) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if bytes.len() <= SMALL_BODY { parse(&bytes) } else { heavy(move || parse(&bytes)).await? }
}

/// How a body must be read. Images and zips tell themselves apart by their first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Multipart,
    Json,
    Binary,
    Table,
}

impl Kind {
    fn of(request: &HttpRequest, sequences: bool) -> Result<Self, ApiError> {
        let wrong = || match sequences {
            true => ApiError::NoSequenceType(shown_type(request)),
            false => ApiError::WrongType(shown_type(request)),
        };
        let mime = request.mime_type().map_err(|_| wrong())?.ok_or_else(wrong)?;
        match mime.essence_str() {
            "multipart/form-data" => Ok(Self::Multipart),
            text if is_json(text) => Ok(Self::Json),
            "text/csv" | "text/tab-separated-values" | "text/plain" | "application/csv" if sequences => Ok(Self::Table),
            _ if sequences => Err(wrong()),
            "application/zip" | "application/x-zip-compressed" | "application/x-zip" | "application/octet-stream" => {
                Ok(Self::Binary)
            }
            text if text.starts_with("image/") => Ok(Self::Binary),
            _ => Err(wrong()),
        }
    }
}

fn is_json(essence: &str) -> bool {
    essence == "application/json" || essence.ends_with("+json")
}

/// The content type as the client sent it.
fn shown_type(request: &HttpRequest) -> String {
    match request.headers().get(CONTENT_TYPE) {
        None => "(none)".into(),
        Some(value) => format!("'{}'", String::from_utf8_lossy(value.as_bytes())),
    }
}
