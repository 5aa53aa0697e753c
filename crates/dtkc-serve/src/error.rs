//! Every answer that is not a success: one enum, one JSON form.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, ResponseError};
use dtkc_item::ItemError;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

/// Why a request was not served. The sentence says the thing, the cause and the remedy; the code is stable.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ApiError {
    /// Nothing lives at that path.
    #[error("there is nothing at this path; /docs lists every path")]
    NotFound,
    /// The path exists, for other methods.
    #[error("this path does not answer {method}; use {allowed}")]
    MethodNotAllowed {
        /// What was asked.
        method: String,
        /// What would work, as in the `Allow` header.
        allowed: &'static str,
    },
    /// No model of that name is served.
    #[error("there is no model '{0}' here; GET /v1/models lists the models")]
    UnknownModel(String),
    /// Models have one version only.
    #[error("the model has no version '{0}'; use version 1 or none")]
    UnknownVersion(String),
    /// The model has no such cluster.
    #[error("the model has no cluster {id}; its clusters are 0 to {last}")]
    UnknownCluster {
        /// What was asked.
        id: String,
        /// The highest id.
        last: usize,
    },
    /// A body was expected.
    #[error("the request has no body; send an image, a zip, multipart files or JSON")]
    EmptyBody,
    /// The connection ended, or the framing broke, before the body was complete.
    #[error("the request body ended early or could not be read ({0}); send it again")]
    BrokenBody(String),
    /// Not JSON, or not of the documented form.
    #[error("the JSON body cannot be used: {0}; /docs shows the expected form")]
    BadJson(String),
    /// A query parameter cannot be read.
    #[error("the query cannot be used: {0}; /docs lists the parameters")]
    BadQuery(String),
    /// A part of the path cannot be read.
    #[error("the path cannot be used: {0}; /docs lists the paths")]
    BadPath(String),
    /// The multipart form breaks the rules or was cut short.
    #[error(
        "the multipart form cannot be read ({0}); send each image as a file part and end with the closing boundary"
    )]
    BadMultipart(String),
    /// The archive cannot be opened.
    #[error("the zip cannot be opened ({0}); pack it again as an ordinary zip")]
    BadZip(String),
    /// The request holds no image at all.
    #[error("the request holds no image; send at least one file, or one item in 'images'")]
    NoImages,
    /// One raw image that cannot be used.
    #[error("the image cannot be used: {0}")]
    BadImage(ItemError),
    /// More bytes than allowed.
    #[error("the request body has more than the {} that are allowed; send fewer images at a time", dtkc_human::bytes(*.limit))]
    BodyTooLarge {
        /// What is allowed.
        limit: u64,
    },
    /// An archive that would unpack to more bytes than allowed.
    #[error("the zip unpacks to more than the {} that are allowed; send fewer images at a time", dtkc_human::bytes(*.limit))]
    UnpackedTooLarge {
        /// What is allowed.
        limit: u64,
    },
    /// More images than allowed.
    #[error("the request has more than the {limit} images that are allowed; send them in several requests")]
    TooManyImages {
        /// What is allowed.
        limit: usize,
    },
    /// A content type that is not understood here.
    #[error(
        "the content type {0} is not understood; send an image (image/png, ...), application/zip, multipart/form-data or application/json; with curl: -F image=@file"
    )]
    WrongType(String),
    /// A content type that is not understood where JSON is expected.
    #[error("the content type {0} is not understood; send application/json")]
    NotJsonType(String),
    /// A content encoding that is not understood.
    #[error("the content encoding {0} is not understood; send the body plain, or with gzip or deflate")]
    WrongEncoding(String),
    /// A tensor of the inference protocol that does not fit the model.
    #[error("the inference request cannot be used: {0}")]
    BadTensor(String),
    /// A name that is not allowed.
    #[error("the cluster name cannot be used: {0}")]
    BadName(String),
    /// Keys are required and none was sent.
    #[error("this service needs a key; send it as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'")]
    NoKey,
    /// A key was sent that is not one of ours.
    #[error("the key is not valid here; check it or ask for a new one")]
    WrongKey,
    /// A page of another site tries to use the service through its visitor.
    #[error("pages of other sites may not use this service; start it with --cors to allow an origin")]
    CrossSite,
    /// A page of another name tries to use the service through its visitor, or a proxy hands on a name nobody told us.
    #[error("this service is not known as {0}; start it with --allowed-host and that name to allow it")]
    WrongHost(String),
    /// Too many wrong keys came from this address.
    #[error("too many wrong keys came from this address; wait {retry_after} s and send a valid one")]
    TooManyWrongKeys {
        /// Seconds to wait.
        retry_after: u64,
    },
    /// More connections than there is room for; only health checks are answered.
    #[error("too many connections are open; close some, or wait 5 s and send again")]
    Crowded,
    /// The client has gone; nobody reads this but the log and the metrics.
    #[error("the client has gone before it was answered")]
    ClientGone,
    /// Something else than HTTP came.
    #[error("the request is no valid HTTP; check the request line and the headers")]
    NotHttp,
    /// The head of a request is too large.
    #[error("the request's head is too large; send fewer or shorter headers, and a shorter path")]
    LargeHead,
    /// The head of a request did not arrive in time.
    #[error("the request's head did not arrive in time; send it at once")]
    SlowHead,
    /// The client sends more often than allowed.
    #[error("this client sends more often than allowed; wait {retry_after} s and send again")]
    RateLimited {
        /// Seconds to wait.
        retry_after: u64,
    },
    /// The queue is full.
    #[error("{queued} images are waiting and {images} more do not fit; wait {retry_after} s and send again")]
    QueueFull {
        /// Images waiting.
        queued: usize,
        /// Images of this request.
        images: usize,
        /// Seconds to wait.
        retry_after: u64,
    },
    /// Too many request bodies, or answers that nobody reads, are being held.
    #[error("too many large requests are under way; wait {retry_after} s and send again")]
    Busy {
        /// Seconds to wait.
        retry_after: u64,
    },
    /// The body did not arrive in time.
    #[error("the request body did not arrive within {}; send it faster or in smaller parts", dtkc_human::duration(*.0))]
    SlowBody(std::time::Duration),
    /// The answer was not ready in time.
    #[error("the answer was not ready within {}; send fewer images at a time, or later", dtkc_human::duration(*.0))]
    Deadline(std::time::Duration),
    /// Models are still being loaded.
    #[error("the service is starting; send again in a moment")]
    Starting,
    /// The service is about to end.
    #[error("the service is stopping; send again in a moment")]
    Stopping,
    /// Another reload of the same model is under way.
    #[error("the model is being reloaded already; wait until that is done")]
    ReloadRunning,
    /// The changed model file cannot be used.
    #[error("the model was not reloaded and the old one keeps serving: {0}")]
    BadModelFile(String),
    /// The client means a model file that is no longer there.
    #[error("the model was replaced by another file; read /v1/models again and name its clusters")]
    ModelChanged,
    /// The side file with the names cannot be written.
    #[error("the name was not kept: {0}; make the folder writable or start with --state-dir")]
    NotSaved(String),
    /// ONNX Runtime failed.
    #[error("inference failed: {0}")]
    Inference(String),
    /// Something that should not happen.
    #[error("something went wrong inside the service; the log has the details under this request's id")]
    Internal,
}

impl ApiError {
    /// A stable name for programs: it does not change when the sentence does.
    pub fn code(&self) -> &str {
        match self {
            Self::NotFound => "not_found",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::UnknownModel(_) => "unknown_model",
            Self::UnknownVersion(_) => "unknown_version",
            Self::UnknownCluster { .. } => "unknown_cluster",
            Self::EmptyBody => "empty_body",
            Self::BrokenBody(_) => "broken_body",
            Self::BadJson(_) => "bad_json",
            Self::BadQuery(_) => "bad_query",
            Self::BadPath(_) => "bad_path",
            Self::BadMultipart(_) => "bad_multipart",
            Self::BadZip(_) => "bad_zip",
            Self::NoImages => "no_images",
            Self::BadImage(error) => &error.code,
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::UnpackedTooLarge { .. } => "unpacked_too_large",
            Self::TooManyImages { .. } => "too_many_images",
            Self::WrongType(_) | Self::NotJsonType(_) => "unsupported_type",
            Self::WrongEncoding(_) => "unsupported_encoding",
            Self::BadTensor(_) => "bad_tensor",
            Self::BadName(_) => "bad_name",
            Self::NoKey => "key_missing",
            Self::WrongKey => "key_wrong",
            Self::CrossSite => "cross_site",
            Self::WrongHost(_) => "wrong_host",
            Self::TooManyWrongKeys { .. } => "too_many_wrong_keys",
            Self::Crowded => "crowded",
            Self::ClientGone => "client_gone",
            Self::NotHttp => "not_http",
            Self::LargeHead => "head_too_large",
            Self::SlowHead => "slow_head",
            Self::RateLimited { .. } => "rate_limited",
            Self::QueueFull { .. } => "queue_full",
            Self::Busy { .. } => "busy",
            Self::SlowBody(_) => "slow_body",
            Self::Deadline(_) => "deadline_passed",
            Self::Starting => "starting",
            Self::Stopping => "stopping",
            Self::ReloadRunning => "reload_running",
            Self::BadModelFile(_) => "bad_model_file",
            Self::ModelChanged => "model_changed",
            Self::NotSaved(_) => "not_saved",
            Self::Inference(_) => "inference_failed",
            Self::Internal => "internal",
        }
    }

    /// The answer's content.
    pub fn body(&self) -> ErrorBody {
        ErrorBody { error: self.to_string(), code: self.code().to_owned() }
    }

    fn retry_after(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after }
            | Self::TooManyWrongKeys { retry_after }
            | Self::QueueFull { retry_after, .. }
            | Self::Busy { retry_after } => Some(*retry_after),
            Self::Crowded => Some(5),
            Self::Starting | Self::Stopping => Some(1),
            _ => None,
        }
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::NotFound | Self::UnknownModel(_) | Self::UnknownVersion(_) | Self::UnknownCluster { .. } => {
                StatusCode::NOT_FOUND
            }
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::EmptyBody
            | Self::BrokenBody(_)
            | Self::BadJson(_)
            | Self::BadQuery(_)
            | Self::BadPath(_)
            | Self::BadMultipart(_)
            | Self::BadTensor(_)
            | Self::NotHttp => StatusCode::BAD_REQUEST,
            Self::BadImage(error) if error.code == "too_large" => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooLarge { .. } | Self::UnpackedTooLarge { .. } | Self::TooManyImages { .. } => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::BadZip(_) | Self::NoImages | Self::BadImage(_) | Self::BadName(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::WrongType(_) | Self::NotJsonType(_) | Self::WrongEncoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NoKey | Self::WrongKey => StatusCode::UNAUTHORIZED,
            Self::CrossSite => StatusCode::FORBIDDEN,
            Self::WrongHost(_) => StatusCode::MISDIRECTED_REQUEST,
            // As nginx calls it: the only one who could read a standard one is not there.
            Self::ClientGone => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
            Self::LargeHead => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::RateLimited { .. } | Self::TooManyWrongKeys { .. } | Self::QueueFull { .. } => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::SlowBody(_) | Self::SlowHead => StatusCode::REQUEST_TIMEOUT,
            Self::Deadline(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Busy { .. } | Self::Crowded | Self::Starting | Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            Self::ModelChanged => StatusCode::PRECONDITION_FAILED,
            Self::ReloadRunning | Self::BadModelFile(_) => StatusCode::CONFLICT,
            Self::NotSaved(_) | Self::Inference(_) | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        if let Some(seconds) = self.retry_after() {
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        match self {
            Self::MethodNotAllowed { allowed, .. } => {
                response.insert_header((header::ALLOW, *allowed));
            }
            Self::NoKey | Self::WrongKey => {
                response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
            }
            _ => {}
        }
        if matches!(self, Self::Crowded) {
            response.force_close();
        }
        response.json(self.body())
    }
}

/// The body of every answer that is not a success.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"error": "there is no model 'mnits' here; GET /v1/models lists the models", "code": "unknown_model"}))]
pub struct ErrorBody {
    /// One sentence: the thing, the cause, the remedy.
    pub error: String,
    /// Stable name of the error, for programs.
    pub code: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_says_when_to_come_back() {
        let response = ApiError::QueueFull { queued: 1000, images: 32, retry_after: 3 }.error_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers().get("retry-after").and_then(|v| v.to_str().ok()), Some("3"));
    }

    #[test]
    fn an_image_that_is_too_large_is_413_and_a_broken_one_422() {
        let image = |code: &'static str| ApiError::BadImage(ItemError::new(code, "")).status_code().as_u16();
        assert_eq!((image("too_large"), image("truncated")), (413, 422));
    }
}
