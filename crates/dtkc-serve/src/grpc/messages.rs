//! The messages of the inference protocol: requests read, answers written.
//!
//! Field numbers are those of `grpc_predict_v2.proto`. Requests become what the JSON of the same protocol is read into,
//! so that one set of checks holds for both. Lists are read no further than they may be long.

use actix_web::web::Bytes;

use super::wire::{Fields, Malformed, Message, Value, numbers};
use crate::error::ApiError;
use crate::routes::v2::VERSION;
use crate::routes::v2::infer::{Output, Told};
use crate::routes::v2::metadata::{ModelMetadata, ServerMetadata, TensorMetadata};
use crate::routes::v2::repository::RepositoryModel;
use crate::routes::v2::tensor::{AtMost, InferRequest, InputTensor, Parameters, WantedOutput, bad};

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

/// `ModelInferRequest`.
#[derive(Debug)]
pub struct Infer {
    pub about: About,
    pub request: InferRequest,
    /// `raw_input_contents`.
    pub raw: Bytes,
}

impl Infer {
    /// Reads the whole message.
    pub fn read(message: Bytes) -> Result<Self, ApiError> {
        let (mut about, mut id) = (About::default(), String::new());
        let (mut inputs, mut outputs, mut raw) = (Vec::new(), Vec::new(), None);
        for field in Fields::of(message) {
            match field? {
                (1, name) => about.model = text(name)?,
                (2, version) => about.version = text(version)?,
                (3, given) => id = text(given)?,
                (5, input) => add::<_, 1>(&mut inputs, input, "inputs", self::input)?,
                (6, output) => add::<_, 3>(&mut outputs, output, "outputs", self::output)?,
                (7, _) if raw.is_some() => return Err(bad("there is one input and more than one raw content")),
                (7, content) => raw = Some(bytes(content)?),
                _ => {}
            }
        }
        if let (Some(input), Some(raw)) = (inputs.first_mut(), &raw) {
            mark_raw(input, raw.len())?;
        }
        let request = InferRequest {
            id: Some(id).filter(|id| !id.is_empty()),
            parameters: None,
            inputs: AtMost(inputs),
            outputs: Some(AtMost(outputs)),
        };
        Ok(Self { about, request, raw: raw.unwrap_or_default() })
    }
}

/// Says that an input's pixels are not in its own message.
fn mark_raw(input: &mut InputTensor, size: usize) -> Result<(), ApiError> {
    if input.data.is_some() {
        return Err(bad("the input has contents and raw contents; send one of them"));
    }
    input.parameters.get_or_insert_default().binary_data_size = Some(size);
    Ok(())
}

fn add<T, const N: usize>(
    list: &mut Vec<T>,
    value: Value,
    what: &str,
    read: fn(Bytes) -> Result<T, ApiError>,
) -> Result<(), ApiError> {
    if list.len() == N {
        return Err(bad(&format!("there are more than {N} {what}; send at most {N}")));
    }
    list.push(read(bytes(value)?)?);
    Ok(())
}

/// `InferInputTensor`.
fn input(message: Bytes) -> Result<InputTensor, ApiError> {
    let (mut name, mut datatype, mut shape) = (String::new(), String::new(), Vec::new());
    let (mut parameters, mut data) = (Parameters::default(), None);
    for field in Fields::of(message) {
        match field? {
            (1, given) => name = text(given)?,
            (2, given) => datatype = text(given)?,
            (3, sizes) => {
                for size in numbers(sizes) {
                    if shape.len() == 4 {
                        return Err(bad("the shape has more than four sizes"));
                    }
                    let size = size?;
                    shape.push(i64::try_from(size).map(|_| size).map_err(|_| bad("the shape has a negative size"))?);
                }
            }
            (4, entry) => parameter(&mut parameters, bytes(entry)?)?,
            (5, contents) => pixels(bytes(contents)?, &mut data)?,
            _ => {}
        }
    }
    Ok(InputTensor { name, shape: AtMost(shape), datatype, parameters: Some(parameters), data })
}

/// `InferTensorContents`, of which unsigned numbers of 32 bits stand for pixels.
fn pixels(message: Bytes, data: &mut Option<Vec<u8>>) -> Result<(), ApiError> {
    for field in Fields::of(message) {
        let (field, value) = field?;
        if field != 4 {
            return Err(bad("pixels (UINT8) are sent as raw_input_contents, or as uint_contents"));
        }
        let data = data.get_or_insert_default();
        for number in numbers(value) {
            let pixel = u8::try_from(number?);
            data.push(pixel.map_err(|_| bad("a pixel is not in 0 to 255 (UINT8)"))?);
        }
    }
    Ok(())
}

/// `InferRequestedOutputTensor`.
fn output(message: Bytes) -> Result<WantedOutput, ApiError> {
    let (mut name, mut parameters) = (String::new(), Parameters::default());
    for field in Fields::of(message) {
        match field? {
            (1, given) => name = text(given)?,
            (2, entry) => parameter(&mut parameters, bytes(entry)?)?,
            _ => {}
        }
    }
    Ok(WantedOutput { name, parameters: Some(parameters) })
}

/// An entry of `parameters`. Only what asks for something that is not offered is of interest.
fn parameter(parameters: &mut Parameters, entry: Bytes) -> Result<(), ApiError> {
    let (mut key, mut value) = (Bytes::new(), Bytes::new());
    for field in Fields::of(entry) {
        match field? {
            (1, given) => key = bytes(given)?,
            (2, given) => value = bytes(given)?,
            _ => {}
        }
    }
    match &key[..] {
        b"shared_memory_region" => parameters.shared_memory_region = Some(String::new()),
        b"classification" => {
            let classes = Fields::of(value).find_map(|field| match field {
                Ok((2, Value::Number(classes))) => Some(classes),
                _ => None,
            });
            parameters.classification = classes;
        }
        _ => {}
    }
    Ok(())
}

fn bytes(value: Value) -> Result<Bytes, Malformed> {
    if let Value::Bytes(bytes) = value { Ok(bytes) } else { Err(Malformed) }
}

fn text(value: Value) -> Result<String, Malformed> {
    std::str::from_utf8(&bytes(value)?).map(str::to_owned).map_err(|_| Malformed)
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A whole request, in the order of the fields.
    fn request() -> Vec<u8> {
        let parameter = Message::default().text(1, "classification").message(2, &Message::default().text(3, "x"));
        let contents = Message::default().numbers(4, [0, 7, 255].into_iter());
        let input = Message::default().text(1, "image").text(2, "UINT8").numbers(3, [1, 3, 1, 1].into_iter());
        let input = input.message(4, &parameter).message(5, &contents);
        let output = Message::default().text(1, "cluster").message(2, &parameter);
        let named = Message::default().text(1, "small").text(2, "1").text(3, "id").message(4, &parameter);
        named.message(5, &input).message(6, &output).into_bytes()
    }

    #[test]
    fn a_request_is_read_whole() {
        let Infer { about, request, raw } = Infer::read(request().into()).unwrap();
        assert_eq!((about.model.as_str(), about.version(), request.id.as_deref()), ("small", Some("1"), Some("id")));
        let [input] = request.inputs.0.as_slice() else { panic!("one input") };
        assert_eq!((input.shape.0.as_slice(), input.data.as_deref()), (&[1, 3, 1, 1][..], Some(&[0, 7, 255][..])));
        assert_eq!(request.outputs.unwrap().0[0].name, "cluster");
        assert!(raw.is_empty());
    }

    proptest! {
        /// Damaged anywhere, it is refused or read, and that is all.
        #[test]
        fn damage_breaks_nothing(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), cut in 0usize..40) {
            let mut bytes = request();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(bytes.len() - cut);
            if let Ok(Infer { request, .. }) = Infer::read(bytes.into()) {
                prop_assert!(request.inputs.0.len() <= 1);
            }
        }
    }
}
