//! The messages of the inference protocol: small requests read, answers written. Inference requests: [`super::tensors`].
//!
//! Field numbers are those of `grpc_predict_v2.proto`.

use actix_web::web::Bytes;

use super::wire::{Fields, Malformed, Message, text};
use crate::error::ApiError;
use crate::routes::v2::VERSION;
use crate::routes::v2::infer::{Output, Told};
use crate::routes::v2::metadata::{ModelMetadata, ServerMetadata, TensorMetadata};
use crate::routes::v2::repository::RepositoryModel;
use crate::routes::v2::tensor::bad;

impl From<Malformed> for ApiError {
    fn from(Malformed: Malformed) -> Self {
        bad("the message breaks protobuf's rules; send it as grpc_predict_v2.proto describes it")
    }
}

/// The model that a message is about, and its version where it names one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct About {
    pub model: String,
    version: String,
}

impl About {
    /// `None` for whichever version there is.
    pub fn version(&self) -> Option<&str> {
        Some(self.version.as_str()).filter(|version| !version.is_empty())
    }
}

/// `ModelReadyRequest` and `ModelMetadataRequest`.
pub fn about(message: Bytes) -> Result<About, ApiError> {
    let mut about = About::default();
    for field in Fields::of(message) {
        match field? {
            (1, name) => about.model = text(name)?,
            (2, version) => about.version = text(version)?,
            _ => {}
        }
    }
    Ok(about)
}

/// `RepositoryModelLoadRequest` and its like: the model is the first field for KServe, the second for Triton, whose first
/// names a repository.
pub fn in_repository(message: Bytes) -> Result<String, ApiError> {
    let About { model: first, version: second } = about(message)?;
    Ok(if second.is_empty() { first } else { second })
}

/// `ServerMetadataResponse`.
pub fn server(metadata: &ServerMetadata) -> Message {
    let named = Message::default().text(1, metadata.name).text(2, metadata.version);
    metadata.extensions.iter().fold(named, |message, extension| message.text(3, extension))
}

/// `ModelMetadataResponse`.
pub fn model(metadata: &ModelMetadata) -> Message {
    let named = Message::default().text(1, &metadata.name);
    let versions = metadata.versions.iter().fold(named, |message, version| message.text(2, version));
    let platform = versions.text(3, metadata.platform);
    let tensor = |tensor: &TensorMetadata| {
        let named = Message::default().text(1, tensor.name).text(2, tensor.datatype);
        named.numbers(3, tensor.shape.iter().copied())
    };
    let inputs = metadata.inputs.iter().fold(platform, |message, input| message.message(4, &tensor(input)));
    metadata.outputs.iter().fold(inputs, |message, output| message.message(5, &tensor(output)))
}

/// `RepositoryIndexResponse`.
pub fn index<'a>(models: impl Iterator<Item = &'a RepositoryModel>) -> Message {
    models.fold(Message::default(), |message, model| {
        let RepositoryModel { name, version, state, reason } = model;
        message.message(1, &Message::default().text(1, name).text(2, version).text(3, state).text(4, reason))
    })
}

/// `ModelInferResponse` behind `front`, with all values as raw contents.
pub fn infer(front: &[u8], model: &str, id: Option<&str>, told: &Told) -> Result<Message, ApiError> {
    let outputs: Vec<Output> = told.outputs()?.collect();
    let values: usize = outputs.iter().map(|output| output.values.bytes()).sum();
    let mut named = Message::behind(front, values + 4096).text(1, model).text(2, VERSION);
    if let Some(id) = id {
        named = named.text(3, id);
    }
    let described = outputs.iter().fold(named, |message, Output { name, shape, values, .. }| {
        let tensor = Message::default().text(1, name).text(2, values.datatype());
        message.message(5, &tensor.numbers(3, shape.iter().map(|&size| size as i64)))
    });
    Ok(outputs
        .iter()
        .fold(described, |message, Output { values, .. }| message.put(6, values.bytes(), |out| values.append_to(out))))
}
