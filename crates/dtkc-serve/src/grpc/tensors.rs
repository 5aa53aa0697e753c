//! `ModelInferRequest`: images, or the two tensors of sequences.
//!
//! Requests become what the JSON of the same protocol is read into, so that one set of checks holds for both. Lists are read
//! no further than they may be long.

use actix_web::web::Bytes;

use super::wire::{Fields, Value, bytes, floats, numbers, text};
use crate::error::ApiError;
use crate::routes::v2::sequences::{SequenceRequest, SequenceTensor};
use crate::routes::v2::tensor::{AtMost, InferRequest, InputTensor, Parameters, WantedOutput, bad};

/// What a request for sequences takes at most, for each of its bytes: values in a list that grew, and once more as
/// sequences.
pub const PER_BYTE: u64 = 3;

/// A request for a model that takes images, and its `raw_input_contents`.
pub fn images(message: Bytes) -> Result<(InferRequest, Bytes), ApiError> {
    let Parts { id, mut inputs, outputs, raw } = parts(message, 1, image_tensor)?;
    if let (Some(input), Some(raw)) = (inputs.first_mut(), raw.first()) {
        mark_raw(input.data.is_some(), &mut input.parameters, raw)?;
    }
    let (inputs, outputs) = (AtMost(inputs), Some(AtMost(outputs)));
    let request = InferRequest { id, parameters: None, inputs, outputs };
    Ok((request, raw.into_iter().next().unwrap_or_default()))
}

/// A request for a model that takes sequences, of which at most `limit` may come, and its `raw_input_contents` one after the
/// other.
pub fn sequences(message: Bytes, limit: usize) -> Result<(SequenceRequest, Bytes), ApiError> {
    let Parts { id, mut inputs, outputs, raw } = parts(message, 2, |input| sequence_tensor(input, limit))?;
    if !raw.is_empty() && raw.len() != inputs.len() {
        return Err(bad("there are not as many raw contents as inputs; send one for each, or none"));
    }
    for (input, raw) in inputs.iter_mut().zip(&raw) {
        mark_raw(input.data.is_some(), &mut input.parameters, raw)?;
    }
    let (inputs, outputs) = (AtMost(inputs), Some(AtMost(outputs)));
    Ok((SequenceRequest { id, parameters: None, inputs, outputs }, raw.concat().into()))
}

/// What both kinds of requests have; inputs as their kind reads them.
struct Parts<T> {
    id: Option<String>,
    inputs: Vec<T>,
    outputs: Vec<WantedOutput>,
    raw: Vec<Bytes>,
}

/// Reads the whole message, which may have so many inputs.
fn parts<T>(message: Bytes, most: usize, input: impl Fn(Bytes) -> Result<T, ApiError>) -> Result<Parts<T>, ApiError> {
    let mut parts = Parts { id: None, inputs: Vec::new(), outputs: Vec::new(), raw: Vec::new() };
    for field in Fields::of(message) {
        match field? {
            (3, id) => parts.id = Some(text(id)?).filter(|id| !id.is_empty()),
            (5, given) => add(&mut parts.inputs, (most, "inputs"), || input(bytes(given)?))?,
            (6, given) => add(&mut parts.outputs, (4, "outputs"), || output(bytes(given)?))?,
            (7, content) => add(&mut parts.raw, (most, "raw contents"), || Ok(bytes(content)?))?,
            _ => {}
        }
    }
    Ok(parts)
}

fn add<T>(
    list: &mut Vec<T>,
    (most, what): (usize, &str),
    read: impl FnOnce() -> Result<T, ApiError>,
) -> Result<(), ApiError> {
    if list.len() == most {
        return Err(bad(&format!("there are more than {most} {what}; send at most {most}")));
    }
    list.push(read()?);
    Ok(())
}

/// Says that the values of an input are not in its own message.
fn mark_raw(has_data: bool, parameters: &mut Option<Parameters>, raw: &Bytes) -> Result<(), ApiError> {
    if has_data {
        return Err(bad("the input has contents and raw contents; send one of them"));
    }
    parameters.get_or_insert_default().binary_data_size = Some(raw.len());
    Ok(())
}

fn image_tensor(message: Bytes) -> Result<InputTensor, ApiError> {
    let mut data = None;
    let Head { name, datatype, shape, parameters } = head(message, 4, |contents| pixels(contents, &mut data))?;
    Ok(InputTensor { name, shape: AtMost(shape), datatype, parameters: Some(parameters), data })
}

fn sequence_tensor(message: Bytes, limit: usize) -> Result<SequenceTensor, ApiError> {
    let mut data = None;
    let Head { name, datatype, shape, parameters } = head(message, 3, |contents| values(contents, &mut data, limit))?;
    Ok(SequenceTensor { name, shape: AtMost(shape), datatype, parameters: Some(parameters), data })
}

/// An `InferInputTensor` but for its contents.
#[derive(Default)]
struct Head {
    name: String,
    datatype: String,
    shape: Vec<u64>,
    parameters: Parameters,
}

/// Reads a tensor whose shape may have so many sizes; its contents go to `contents`.
fn head(
    message: Bytes,
    sizes: usize,
    mut contents: impl FnMut(Bytes) -> Result<(), ApiError>,
) -> Result<Head, ApiError> {
    let mut head = Head::default();
    for field in Fields::of(message) {
        match field? {
            (1, given) => head.name = text(given)?,
            (2, given) => head.datatype = text(given)?,
            (3, given) => {
                for size in numbers(given) {
                    if head.shape.len() == sizes {
                        return Err(bad(&format!("the shape has more than {sizes} sizes")));
                    }
                    let size = i64::try_from(size?).ok().and_then(|size| u64::try_from(size).ok());
                    head.shape.push(size.ok_or_else(|| bad("the shape has a negative size"))?);
                }
            }
            (4, entry) => parameter(&mut head.parameters, bytes(entry)?)?,
            (5, given) => contents(bytes(given)?)?,
            _ => {}
        }
    }
    Ok(head)
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

/// The same for sequences: numbers with a point are values, whole ones lengths, of which there is one for a sequence.
fn values(message: Bytes, data: &mut Option<Vec<f32>>, limit: usize) -> Result<(), ApiError> {
    for field in Fields::of(message) {
        let data = data.get_or_insert_default();
        match field? {
            (3, lengths) => {
                for length in numbers(lengths) {
                    if data.len() == limit {
                        return Err(ApiError::TooManyImages { limit });
                    }
                    // A length that is negative stays so, and is refused where all are.
                    data.push(length?.cast_signed() as f32);
                }
            }
            (6, values) => {
                for value in floats(values)? {
                    data.push(value);
                }
            }
            _ => {
                return Err(bad(
                    "values (FP32) and lengths (INT64) are sent as raw_input_contents, or as fp32_contents and int64_contents",
                ));
            }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grpc::wire::Message;

    /// A whole request with one input, in the order of the fields.
    fn request(input: Message, contents: &Message) -> Vec<u8> {
        let parameter = Message::default().text(1, "classification").message(2, &Message::default().text(3, "x"));
        let input = input.message(4, &parameter).message(5, contents);
        let output = Message::default().text(1, "cluster").message(2, &parameter);
        let named = Message::default().text(1, "small").text(2, "1").text(3, "id").message(4, &parameter);
        named.message(5, &input).message(6, &output).into_bytes()
    }

    fn image() -> Vec<u8> {
        let input = Message::default().text(1, "image").text(2, "UINT8").numbers(3, [1, 3, 1, 1].into_iter());
        request(input, &Message::default().numbers(4, [0, 7, 255].into_iter()))
    }

    fn lengths() -> Vec<u8> {
        let input = Message::default().text(1, "lengths").text(2, "INT64").numbers(3, [3].into_iter());
        request(input, &Message::default().numbers(3, [4, -1, 300].into_iter()))
    }

    #[test]
    fn a_request_is_read_whole() {
        let (request, raw) = images(image().into()).unwrap();
        let [input] = request.inputs.0.as_slice() else { panic!("one input") };
        assert_eq!((input.shape.0.as_slice(), input.data.as_deref()), (&[1, 3, 1, 1][..], Some(&[0, 7, 255][..])));
        assert_eq!((request.id.as_deref(), request.outputs.unwrap().0[0].name.as_str()), (Some("id"), "cluster"));
        assert!(raw.is_empty());
        let (request, _) = sequences(lengths().into(), 3).unwrap();
        assert_eq!(request.inputs.0[0].data.as_deref(), Some(&[4.0, -1.0, 300.0][..]));
        assert_eq!(sequences(lengths().into(), 2).unwrap_err(), ApiError::TooManyImages { limit: 2 });
    }

    proptest! {
        /// Damaged anywhere, it is refused or read, and that is all.
        #[test]
        fn damage_breaks_nothing(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), cut in 0usize..40) {
            for mut bytes in [image(), lengths()] {
                for (at, byte) in &changes {
                    let at = at.index(bytes.len());
                    bytes[at] = *byte;
                }
                bytes.truncate(bytes.len() - cut);
                if let Ok((request, _)) = images(bytes.clone().into()) {
                    prop_assert!(request.inputs.0.len() <= 1);
                }
                if let Ok((request, _)) = sequences(bytes.into(), 3) {
                    prop_assert!(request.inputs.0.len() <= 2);
                }
            }
        }
    }
}
