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
    #[error("this path does not answer {}; use {allowed}", shown(method))]
    MethodNotAllowed {
        /// What was asked.
        method: String,
        /// What would work, as in the `Allow` header.
        allowed: &'static str,
    },
    /// No model of that name is served.
    #[error("there is no model '{}' here; GET /v1/models lists the models", shown(.0))]
    UnknownModel(String),
    /// Models have one version only.
    #[error("the model has no version '{}'; use version 1 or none", shown(.0))]
    UnknownVersion(String),
    /// The model has no such cluster.
    #[error("the model has no cluster {}; its clusters are 0 to {last}", shown(id))]
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
    #[error("the JSON body cannot be used: {}; /docs shows the expected form", reason(.0))]
    BadJson(String),
    /// A query parameter cannot be read.
    #[error("the query cannot be used: {}; /docs lists the parameters", reason(.0))]
    BadQuery(String),
    /// A part of the path cannot be read.
    #[error("the path cannot be used: {}; /docs lists the paths", reason(.0))]
    BadPath(String),
    /// The multipart form breaks the rules or was cut short.
    #[error(
        "the multipart form cannot be read ({0}); send each image as a file part and end with the closing boundary"
    )]
    BadMultipart(String),
    /// The archive cannot be opened.
    #[error("the zip cannot be opened ({}); pack it again as an ordinary zip", shown(.0))]
    BadZip(String),
    /// A table of sequences that cannot be used.
    #[error("the table cannot be used: {}", reason(.0))]
    BadTable(String),
    /// The request holds no image or sequence at all.
    #[error("the request holds no image or sequence; send at least one file, or one item in 'images' or 'sequences'")]
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
    /// An answer that would take more memory than all answers may.
    #[error(
        "the answer would take up to {}, more than the {} that are allowed; send fewer images at a time, or ask for less about each",
        dtkc_human::bytes(*.bytes), dtkc_human::bytes(*.limit)
    )]
    AnswerTooLarge {
        /// What it would take at most.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// More images than allowed.
    #[error("the request has more than the {limit} items that are allowed; send them in several requests")]
    TooManyImages {
        /// What is allowed.
        limit: usize,
    },
    /// A content type that is not understood here.
    #[error(
        "the content type {} is not understood; send an image (image/png, ...), application/zip, multipart/form-data or application/json; with curl: -F image=@file",
        shown(.0)
    )]
    WrongType(String),
    /// A content type that is not understood by a model for sequences.
    #[error(
        "the content type {} is not understood, and the model takes sequences; send text/csv, application/json or multipart/form-data; with curl: -F file=@sequences.csv",
        shown(.0)
    )]
    NoSequenceType(String),
    /// A content type that is not understood where JSON is expected.
    #[error("the content type {} is not understood; send application/json", shown(.0))]
    NotJsonType(String),
    /// A content encoding that is not understood.
    #[error("the content encoding '{}' is not understood; send the body plain, or with gzip or deflate", shown(.0))]
    WrongEncoding(String),
    /// A tensor of the inference protocol that does not fit the model.
    #[error("the inference request cannot be used: {}", shown(.0))]
    BadTensor(String),
    /// A name that is not allowed.
    #[error("the cluster name cannot be used: {}", shown(.0))]
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
    /// Somebody unloaded the model.
    #[error("the model '{0}' was unloaded; load it again with POST /v2/repository/models/{0}/load")]
    Unloaded(String),
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
    #[error("the model was replaced by another file; read /v1/models again and look at its clusters")]
    ModelChanged,
    /// The side file with the names cannot be written.
    #[error("the name was not kept: {0}; make the folder writable or start with --state-dir")]
    NotSaved(String),
    /// Model files are not to be changed.
    #[error(
        "clusters are not merged here; start the service with --allow-edits, or use `dtkc-train clusters` on the model file"
    )]
    EditsOff,
    /// The model comes with the programs.
    #[error("'{0}' is a bundled model, which stays as it is; copy its file and serve the copy to merge clusters")]
    Bundled(String),
    /// The clusters cannot be edited like that.
    #[error("the clusters were not changed: {0}")]
    BadEdit(String),
    /// The edited model file cannot be written.
    #[error("the clusters were not changed: the model file cannot be written; make its folder writable")]
    EditNotSaved,
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
            Self::BadTable(_) => "bad_table",
            Self::NoImages => "no_images",
            Self::BadImage(error) => &error.code,
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::UnpackedTooLarge { .. } => "unpacked_too_large",
            Self::AnswerTooLarge { .. } => "answer_too_large",
            Self::TooManyImages { .. } => "too_many_images",
            Self::WrongType(_) | Self::NoSequenceType(_) | Self::NotJsonType(_) => "unsupported_type",
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
            Self::Unloaded(_) => "unloaded",
            Self::Stopping => "stopping",
            Self::ReloadRunning => "reload_running",
            Self::BadModelFile(_) => "bad_model_file",
            Self::ModelChanged => "model_changed",
            Self::NotSaved(_) | Self::EditNotSaved => "not_saved",
            Self::EditsOff => "edits_off",
            Self::Bundled(_) => "bundled_model",
            Self::BadEdit(_) => "bad_edit",
            Self::Inference(_) => "inference_failed",
            Self::Internal => "internal",
        }
    }

    /// The answer's content.
    pub fn body(&self) -> ErrorBody {
        ErrorBody { error: self.to_string(), code: self.code().to_owned() }
    }

    /// Seconds to wait, where that helps.
    pub fn retry_after(&self) -> Option<u64> {
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
            Self::BodyTooLarge { .. }
            | Self::UnpackedTooLarge { .. }
            | Self::AnswerTooLarge { .. }
            | Self::TooManyImages { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BadZip(_)
            | Self::BadTable(_)
            | Self::NoImages
            | Self::BadImage(_)
            | Self::BadName(_)
            | Self::BadEdit(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::WrongType(_) | Self::NoSequenceType(_) | Self::NotJsonType(_) | Self::WrongEncoding(_) => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::NoKey | Self::WrongKey => StatusCode::UNAUTHORIZED,
            Self::CrossSite | Self::EditsOff => StatusCode::FORBIDDEN,
            Self::WrongHost(_) => StatusCode::MISDIRECTED_REQUEST,
            // As nginx calls it: the only one who could read a standard one is not there.
            Self::ClientGone => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
            Self::LargeHead => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::RateLimited { .. } | Self::TooManyWrongKeys { .. } | Self::QueueFull { .. } => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::SlowBody(_) | Self::SlowHead => StatusCode::REQUEST_TIMEOUT,
            Self::Deadline(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Busy { .. } | Self::Crowded | Self::Starting | Self::Unloaded(_) | Self::Stopping => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::ModelChanged => StatusCode::PRECONDITION_FAILED,
            Self::ReloadRunning | Self::BadModelFile(_) | Self::Bundled(_) => StatusCode::CONFLICT,
            Self::NotSaved(_) | Self::EditNotSaved | Self::Inference(_) | Self::Internal => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
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

/// The most that a sentence repeats of what a client wrote, at its beginning and at its end.
const SHOWN: (usize, usize) = (140, 60);

/// What a client wrote, or a sentence about it, short enough for an answer and the log: one that is long loses its middle.
pub fn shown(text: &str) -> String {
    let (head, tail) = SHOWN;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    if text.chars().nth(head + tail).is_none() {
        return text.chars().map(plain).collect();
    }
    let end: Vec<char> = text.chars().rev().take(tail).collect();
    text.chars().take(head).chain(" ... ".chars()).chain(end.into_iter().rev()).map(plain).collect()
}

/// What libraries say about a value, in words for people who do not know in what the service is written.
fn reason(text: &str) -> String {
    const WORDS: [(&str, &str); 10] = [
        ("Query deserialize error: ", ""),
        ("invalid digit found in string", "a number is expected, whole and not negative"),
        ("number too large to fit in target type", "a number is too large"),
        ("cannot parse integer from empty string", "a number is missing"),
        ("provided string was not `true` or `false`", "a value is neither true nor false"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected usize", "expected a whole number"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected an object"),
    ];
    // What the program calls a thing means nothing to its clients.
    let named = |(before, rest): (&str, &str)| {
        let behind = rest.find(" at line ").map_or("", |at| &rest[at..]);
        format!("{before}expected an object{behind}")
    };
    let text = text.split_once("expected struct ").map_or_else(|| text.to_owned(), named);
    let shown = shown(&text);
    WORDS
        .iter()
        .fold(shown, |text, (theirs, ours)| if text.contains(theirs) { text.replace(theirs, ours) } else { text })
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
    fn what_a_client_wrote_is_repeated_in_part() {
        let long = format!("unknown field `{}`, expected `images` at line 1", "x".repeat(5_000_000));
        for error in [
            ApiError::BadJson(long.clone()),
            ApiError::BadQuery(long.clone()),
            ApiError::BadPath(long.clone()),
            ApiError::BadTensor(long.clone()),
            ApiError::BadZip(long.clone()),
            ApiError::WrongType(long.clone()),
            ApiError::WrongEncoding(long.clone()),
            ApiError::UnknownModel(long.clone()),
            ApiError::UnknownVersion(long.clone()),
            ApiError::UnknownCluster { id: long.clone(), last: 3 },
            ApiError::MethodNotAllowed { method: long, allowed: "GET" },
        ] {
            let sentence = error.to_string();
            assert!(sentence.len() < 500 && sentence.contains(" at line 1"), "{sentence}");
        }
        assert_eq!(shown("two\nlines"), "two lines");
    }

    #[test]
    fn no_word_is_for_programmers() {
        let told = ApiError::BadQuery("Query deserialize error: invalid digit found in string".into()).to_string();
        assert_eq!(
            told,
            "the query cannot be used: a number is expected, whole and not negative; /docs lists the parameters"
        );
    }

    #[test]
    fn types_of_the_program_are_not_named() {
        let told = reason("invalid length 0, expected struct ClusterName with 1 element at line 1 column 2");
        assert_eq!(told, "invalid length 0, expected an object at line 1 column 2");
    }

    #[test]
    fn an_image_that_is_too_large_is_413_and_a_broken_one_422() {
        let image = |code: &'static str| ApiError::BadImage(ItemError::new(code, "")).status_code().as_u16();
        assert_eq!((image("too_large"), image("truncated")), (413, 422));
    }
}
