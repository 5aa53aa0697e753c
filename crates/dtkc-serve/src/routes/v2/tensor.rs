//! The JSON of an inference request and what may follow it in binary.

use std::marker::PhantomData;

use actix_web::web::Bytes;
use dtkc_item::ImageShape;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;

/// The most that an answer repeats of an id.
const LONGEST_ID: usize = 1000;

/// An inference request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "an object with 'inputs'")]
pub struct InferRequest {
    /// Repeated in the answer; at most 1000 bytes.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub id: Option<String>,
    /// `binary_data_output` asks for all outputs in binary.
    #[serde(default)]
    #[schema(value_type = Option<Parameters>)]
    pub parameters: Option<Parameters>,
    /// Exactly one: `image`.
    #[schema(min_items = 1, max_items = 1, value_type = Vec<InputTensor>)]
    pub inputs: AtMost<InputTensor, 1>,
    /// The outputs that are wanted, each once; all where this is missing.
    #[serde(default)]
    #[schema(max_items = 4, value_type = Option<Vec<WantedOutput>>)]
    pub outputs: Option<AtMost<WantedOutput, 4>>,
}

/// Settings of a request, an input or an output; unknown ones are ignored, as the protocol says.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(expecting = "an object with parameters")]
pub struct Parameters {
    /// Bytes of this input behind the JSON.
    #[serde(default)]
    pub binary_data_size: Option<usize>,
    /// True to get this output in binary.
    #[serde(default)]
    pub binary_data: Option<bool>,
    /// True to get all outputs in binary.
    #[serde(default)]
    pub binary_data_output: Option<bool>,
    /// Shared memory is not offered.
    #[serde(default)]
    pub shared_memory_region: Option<String>,
    /// Class labels are not offered.
    #[serde(default)]
    pub classification: Option<u64>,
}

/// One input.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "an object with 'name', 'shape', 'datatype' and 'data'")]
pub struct InputTensor {
    /// `image`.
    #[schema(pattern = "^image$", example = "image")]
    pub name: String,
    /// `[images, height, width, channels]`.
    #[schema(min_items = 4, max_items = 4, value_type = Vec<u64>, example = json!([1, 28, 28, 1]))]
    pub shape: AtMost<u64, 4>,
    /// `UINT8`.
    #[schema(pattern = "^UINT8$", example = "UINT8")]
    pub datatype: String,
    /// Only for binary.
    #[serde(default)]
    #[schema(value_type = Option<Parameters>)]
    pub parameters: Option<Parameters>,
    /// The values, flat or nested, row by row.
    #[serde(default, deserialize_with = "pixels")]
    #[schema(value_type = Option<Vec<u8>>)]
    pub data: Option<Vec<u8>>,
}

/// One wanted output.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "an object with 'name'")]
pub struct WantedOutput {
    /// `cluster`, `probabilities`, `embedding` or, where the model has it, `outlier`.
    #[schema(pattern = "^(cluster|probabilities|embedding|outlier)$", example = "cluster")]
    pub name: String,
    /// Only for binary.
    #[serde(default)]
    #[schema(value_type = Option<Parameters>)]
    pub parameters: Option<Parameters>,
}

/// An inference answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct InferAnswer {
    /// The model.
    #[schema(example = "mnist")]
    pub model_name: String,
    /// Always `1`.
    pub model_version: &'static str,
    /// The request's id, where it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub id: Option<String>,
    /// The outputs in the order in which they were asked for.
    pub outputs: Vec<OutputTensor>,
}

/// One output.
#[derive(Debug, Serialize, ToSchema)]
pub struct OutputTensor {
    /// Its name.
    pub name: &'static str,
    /// `INT64` or `FP32`.
    pub datatype: &'static str,
    /// Its sizes.
    pub shape: Vec<usize>,
    /// Where the values are, for binary.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub parameters: Option<BinarySize>,
    /// The values, flat, where they are not in binary.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Vec<f32>>)]
    pub data: Option<Values>,
}

/// Bytes of one output behind the JSON.
#[derive(Debug, Serialize, ToSchema)]
pub struct BinarySize {
    /// The bytes.
    pub binary_data_size: usize,
}

/// The values of an output.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Values {
    /// Cluster ids.
    Integers(Vec<i64>),
    /// Probabilities or embeddings.
    Floats(Vec<f32>),
}

impl Values {
    /// The protocol's name of their type.
    pub fn datatype(&self) -> &'static str {
        match self {
            Self::Integers(_) => "INT64",
            Self::Floats(_) => "FP32",
        }
    }

    /// Little-endian bytes.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Integers(values) => out.extend(values.iter().flat_map(|v| v.to_le_bytes())),
            Self::Floats(values) => out.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        }
    }

    /// Bytes that [`Values::append_to`] writes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Integers(values) => values.len() * 8,
            Self::Floats(values) => values.len() * 4,
        }
    }
}

/// Splits a body into its JSON and the bytes behind it. `json_size` is what the header
/// `Inference-Header-Content-Length` says.
pub fn split(body: &Bytes, json_size: Option<usize>) -> Result<(InferRequest, Bytes), ApiError> {
    let (json, binary) = split_body(body, json_size)?;
    let request = serde_json::from_slice(&json).map_err(|error| ApiError::BadJson(error.to_string()))?;
    Ok((request, binary))
}

/// The JSON of a body, and what is behind it.
pub fn split_body(body: &Bytes, json_size: Option<usize>) -> Result<(Bytes, Bytes), ApiError> {
    let json_size = json_size.unwrap_or(body.len());
    if json_size > body.len() {
        return Err(bad("Inference-Header-Content-Length is more than the body has"));
    }
    Ok((body.slice(..json_size), body.slice(json_size..)))
}

/// An answer repeats the id, so that it must not be long.
pub fn check_id(id: Option<&str>) -> Result<(), ApiError> {
    match id.is_some_and(|id| id.len() > LONGEST_ID) {
        true => Err(bad(&format!("the id has more than {LONGEST_ID} bytes; use a shorter one"))),
        false => Ok(()),
    }
}

/// The pixels of the one input, checked against the images that the model takes and how many of them may come.
pub fn image_input(
    request: &mut InferRequest,
    binary: Bytes,
    shape: ImageShape,
    limit: usize,
) -> Result<(usize, Bytes), ApiError> {
    check_id(request.id.as_deref())?;
    let [input] = request.inputs.0.as_mut_slice() else {
        return Err(bad("there must be one input, 'image', and there is none"));
    };
    if input.name != "image" {
        return Err(bad(&format!("the input is called 'image', not '{}'", short(&input.name))));
    }
    if input.datatype != "UINT8" {
        return Err(bad(&format!("the input 'image' has the datatype UINT8, not '{}'", short(&input.datatype))));
    }
    let ImageShape { height, width, channels } = shape;
    let expected = [height, width, channels].map(|size| size as u64);
    let images = match input.shape.0.as_slice() {
        [images, rest @ ..] if rest == expected && *images > 0 => *images,
        _ => {
            return Err(bad(&format!(
                "the shape must be [images, {height}, {width}, {channels}] with at least one image"
            )));
        }
    };
    let pixels = take_pixels(input, binary)?;
    if images > limit as u64 {
        return Err(ApiError::TooManyImages { limit });
    }
    let each = shape.len() as u64;
    if images.checked_mul(each) != Some(pixels.len() as u64) {
        return Err(bad(&format!("the shape needs {images} x {each} values and the data has {}", pixels.len())));
    }
    Ok((images as usize, pixels))
}

fn take_pixels(input: &mut InputTensor, binary: Bytes) -> Result<Bytes, ApiError> {
    let parameters = input.parameters.take().unwrap_or_default();
    if parameters.shared_memory_region.is_some() {
        return Err(bad("shared memory is not offered; send the data in the request"));
    }
    match (parameters.binary_data_size, input.data.take()) {
        (Some(_), Some(_)) => Err(bad("the input has data both in JSON and in binary; send one of them")),
        (Some(size), None) if size != binary.len() => {
            Err(bad(&format!("binary_data_size is {size} and {} bytes follow the JSON", binary.len())))
        }
        (Some(_), None) => Ok(binary),
        (None, _) if !binary.is_empty() => Err(bad("bytes follow the JSON but the input has no binary_data_size")),
        (None, Some(data)) => Ok(data.into()),
        (None, None) => Err(bad("the input has no data")),
    }
}

/// A sentence about a request that does not fit.
pub fn bad(reason: &str) -> ApiError {
    ApiError::BadTensor(reason.to_owned())
}

/// Part of what a client wrote, short enough for a sentence.
pub fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A list that is read no further than it may be long: one of millions would take its memory before anybody counts.
#[derive(Debug)]
pub struct AtMost<T, const N: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for AtMost<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T, const N: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Items<T, N> {
            type Value = AtMost<T, N>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "a list of at most {N}")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<AtMost<T, N>, A::Error> {
                let mut list = Vec::new();
                while list.len() < N {
                    match items.next_element()? {
                        Some(item) => list.push(item),
                        None => return Ok(AtMost(list)),
                    }
                }
                match items.next_element::<IgnoredAny>()? {
                    None => Ok(AtMost(list)),
                    Some(_) => Err(A::Error::custom(format_args!("there are more than {N} in a list of at most {N}"))),
                }
            }
        }

        deserializer.deserialize_seq(Items(PhantomData))
    }
}

/// Reads nested arrays of 0..=255 into one flat vector, without a tree of values in between.
fn pixels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    struct Into<'a>(&'a mut Vec<u8>);

    impl<'de> DeserializeSeed<'de> for Into<'_> {
        type Value = ();
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_any(self)
        }
    }

    impl<'de> Visitor<'de> for Into<'_> {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("integers from 0 to 255 (UINT8), flat or in nested arrays")
        }
        fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
            let value =
                u8::try_from(value).map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(value), &self))?;
            self.0.push(value);
            Ok(())
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
            while values.next_element_seed(Into(self.0))?.is_some() {}
            Ok(())
        }
    }

    let mut flat = Vec::new();
    Into(&mut flat).deserialize(deserializer)?;
    Ok(Some(flat))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SHAPE: ImageShape = ImageShape { height: 2, width: 2, channels: 1 };

    fn read(json: &str, binary: &[u8]) -> Result<(usize, Bytes), ApiError> {
        let body = Bytes::from([json.as_bytes(), binary].concat());
        let (mut request, binary) = split(&body, Some(json.len()))?;
        image_input(&mut request, binary, SHAPE, 10)
    }

    fn input(shape: &str, rest: &str) -> String {
        format!(r#"{{"inputs": [{{"name": "image", "datatype": "UINT8", "shape": {shape}{rest}}}]}}"#)
    }

    #[test]
    fn flat_nested_and_binary_data_are_the_same() {
        let expected = (2, Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 255]));
        let flat = input("[2, 2, 2, 1]", r#", "data": [1, 2, 3, 4, 5, 6, 7, 255]"#);
        let nested = input("[2, 2, 2, 1]", r#", "data": [[[[1], [2]], [[3], [4]]], [[[5], [6]], [[7], [255]]]]"#);
        let binary = input("[2, 2, 2, 1]", r#", "parameters": {"binary_data_size": 8}"#);
        assert_eq!(read(&flat, &[]).unwrap(), expected);
        assert_eq!(read(&nested, &[]).unwrap(), expected);
        assert_eq!(read(&binary, &[1, 2, 3, 4, 5, 6, 7, 255]).unwrap(), expected);
    }

    #[test]
    fn what_does_not_fit_is_explained() {
        let data = r#", "data": [1, 2, 3, 4]"#;
        for (json, binary, expected) in [
            (input("[1, 2, 2]", data), &b""[..], "[images, 2, 2, 1]"),
            (input("[0, 2, 2, 1]", r#", "data": []"#), b"", "at least one image"),
            (input("[1, 2, 3, 1]", data), b"", "[images, 2, 2, 1]"),
            (input("[18446744073709551615, 2, 2, 1]", data), b"", "more than the 10 items"),
            (input("[2, 2, 2, 1]", data), b"", "2 x 4 values"),
            (input("[1, 2, 2, 1]", r#", "data": [1, 2, 3, 256]"#), b"", "0 to 255"),
            (input("[1, 2, 2, 1]", r#", "data": [1, 2, 3, -1]"#), b"", "0 to 255"),
            (input("[1, 2, 2, 1]", r#", "data": [1, 2, 3, 0.5]"#), b"", "0 to 255"),
            (input("[1, 2, 2, 1]", r#", "data": [1, 2, 3, NaN]"#), b"", "expected value"),
            (input("[1, 2, 2, 1]", ""), b"", "no data"),
            (input("[1, 2, 2, 1]", ""), b"1234", "no binary_data_size"),
            (input("[1, 2, 2, 1]", r#", "parameters": {"binary_data_size": 5}"#), b"1234", "4 bytes follow"),
            (input("[1, 2, 2, 1]", data).replace("UINT8", "FP32"), b"", "UINT8"),
            (input("[1, 2, 2, 1]", data).replace("image", "picture"), b"", "'image'"),
            (r#"{"inputs": []}"#.into(), b"", "there is none"),
            (r#"{"inputs": [1]}"#.into(), b"", "an object with 'name'"),
            ("[]".into(), b"", "an object with 'inputs'"),
            (input("[1, 2, 2, 1, 1, 1, 1]", data), b"", "at most 4"),
            (input("[1, 2, 2, \"one\"]", data), b"", "a whole number"),
            (
                input("[1, 2, 2, 1]", data).replacen("{", &format!("{{\"id\": \"{}\", ", "x".repeat(1001)), 1),
                b"",
                "shorter",
            ),
        ] {
            let error = read(&json, binary).unwrap_err().to_string();
            assert!(error.contains(expected), "{json}: {error}");
        }
    }

    /// Lists of millions became vectors of millions before anybody looked at them.
    #[test]
    fn long_lists_are_read_no_further_than_they_may_be() {
        // Behind the first item too many is nothing that could be read, and nobody tries.
        let data = r#", "data": [1, 2, 3, 4]"#;
        let one = input("[1, 2, 2, 1]", data);
        let inputs = one.replacen("}]", "}, {}, {}, this is no JSON", 1);
        let shape = input("[1, 2, 2, 1, 5, this is no JSON", data);
        let output = r#"{"name": "cluster"}, "#.repeat(5);
        let outputs = one.replacen("{", &format!(r#"{{"outputs": [{output} this is no JSON"#), 1);
        for (json, most) in [(inputs, 1), (shape, 4), (outputs, 4)] {
            let error = read(&json, b"").unwrap_err().to_string();
            assert!(error.contains(&format!("more than {most} in a list")), "{json}: {error}");
        }
    }

    #[test]
    fn a_header_that_is_too_long_is_refused() {
        assert!(split(&Bytes::from_static(b"{}"), Some(3)).unwrap_err().to_string().contains("more than the body"));
    }
}
