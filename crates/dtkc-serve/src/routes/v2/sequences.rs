//! The two tensors of a model that takes sequences: `values` and `lengths`.

use actix_web::web::Bytes;
use dtkc_infer::SequenceSpec;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};

use super::tensor::{AtMost, Parameters, WantedOutput, bad, check_id, short, split_body};
use crate::engine::Content;
use crate::error::ApiError;

/// What a number of JSON takes at most, for each of its bytes: two bytes become four, three times while a list grows or is cut.
pub const PER_BYTE: u64 = 6;

/// An inference request for a model that takes sequences.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with 'inputs'")]
pub struct SequenceRequest {
    /// Repeated in the answer; at most 1000 bytes.
    #[serde(default)]
    pub id: Option<String>,
    /// `binary_data_output` asks for all outputs in binary.
    #[serde(default)]
    pub parameters: Option<Parameters>,
    /// `values` and `lengths`.
    pub inputs: AtMost<SequenceTensor, 2>,
    /// The outputs that are wanted, each once; all where this is missing.
    #[serde(default)]
    pub outputs: Option<AtMost<WantedOutput, 4>>,
}

/// One input.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with 'name', 'shape', 'datatype' and 'data'")]
pub struct SequenceTensor {
    /// `values` or `lengths`.
    pub name: String,
    /// `[sequences, time, dim]` or `[sequences]`.
    pub shape: AtMost<u64, 3>,
    /// `FP32` or `INT64`.
    pub datatype: String,
    /// Only for binary.
    #[serde(default)]
    pub parameters: Option<Parameters>,
    /// The numbers, row by row.
    #[serde(default, deserialize_with = "numbers")]
    pub data: Option<Vec<f32>>,
}

/// Splits a body into its JSON and the bytes behind it.
pub fn split(body: &Bytes, json_size: Option<usize>) -> Result<(SequenceRequest, Bytes), ApiError> {
    let (json, binary) = split_body(body, json_size)?;
    let request = serde_json::from_slice(&json).map_err(|error| ApiError::BadJson(error.to_string()))?;
    Ok((request, binary))
}

/// The sequences, checked against what the model takes and how many of them may come.
pub fn sequences(
    request: &mut SequenceRequest,
    binary: Bytes,
    spec: SequenceSpec,
    limit: usize,
) -> Result<Vec<Content>, ApiError> {
    check_id(request.id.as_deref())?;
    let (mut values, mut lengths, mut rest) = (None, None, binary);
    for input in &mut request.inputs.0 {
        let (place, datatype) = match input.name.as_str() {
            "values" => (&mut values, "FP32"),
            "lengths" => (&mut lengths, "INT64"),
            other => return Err(bad(&format!("the inputs are called 'values' and 'lengths', not '{}'", short(other)))),
        };
        if input.datatype != datatype {
            let (name, found) = (&input.name, short(&input.datatype));
            return Err(bad(&format!("the input '{name}' has the datatype {datatype}, not '{found}'")));
        }
        let data = take_data(input, &mut rest)?;
        if place.replace((input.shape.0.clone(), data)).is_some() {
            return Err(bad(&format!("the input '{}' is there twice", input.name)));
        }
    }
    if !rest.is_empty() {
        return Err(bad("bytes follow the JSON that no input has a binary_data_size for"));
    }
    let (Some((shape, values)), Some((counts, lengths))) = (values, lengths) else {
        return Err(bad("there must be two inputs, 'values' and 'lengths'"));
    };
    let dim = spec.dim as u64;
    let [count, time, found] = shape[..] else {
        return Err(bad(&format!("the shape of 'values' must be [sequences, time, {dim}]")));
    };
    if found != dim {
        return Err(bad(&format!("the sequences have {found} values a step and the model takes {dim}")));
    }
    if count == 0 || counts != [count] {
        return Err(bad("the shape of 'lengths' must be [sequences], as many as 'values' has, at least one"));
    }
    if count > limit as u64 {
        return Err(ApiError::TooManyImages { limit });
    }
    let each = time.checked_mul(dim).filter(|each| count.checked_mul(*each) == Some(values.len() as u64));
    let (Some(each), true) = (each, lengths.len() as u64 == count) else {
        let found = values.len();
        return Err(bad(&format!(
            "the shapes need {count} x {time} x {dim} values and {count} lengths; there are {found} and {}",
            lengths.len()
        )));
    };
    let cut = |(row, length): (usize, f64)| {
        if length.fract() != 0.0 || !(1.0..=time as f64).contains(&length) {
            return Err(bad(&format!("the length of sequence {row} is {length}; it must be from 1 to {time}")));
        }
        let steps = length as usize;
        spec.check_steps(steps).map_err(|error| bad(&error.message))?;
        let start = row * each as usize;
        Ok(Content::Sequence { dim: spec.dim, values: values.get(start, steps * spec.dim) })
    };
    lengths.iter().enumerate().map(cut).collect()
}

/// The numbers of an input, wherever they are.
enum Data {
    Json(Vec<f32>),
    Floats(Bytes),
    Integers(Bytes),
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Self::Json(values) => values.len(),
            Self::Floats(bytes) => bytes.len() / 4,
            Self::Integers(bytes) => bytes.len() / 8,
        }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match self {
            Self::Json(values) => Box::new(values.iter().map(|value| f64::from(*value))),
            Self::Floats(bytes) => {
                Box::new(bytes.as_chunks::<4>().0.iter().map(|raw| f64::from(f32::from_le_bytes(*raw))))
            }
            Self::Integers(bytes) => {
                Box::new(bytes.as_chunks::<8>().0.iter().map(|raw| i64::from_le_bytes(*raw) as f64))
            }
        }
    }

    /// Some of the values; they are known to be there.
    fn get(&self, start: usize, count: usize) -> Vec<f32> {
        match self {
            Self::Json(values) => values[start..start + count].to_vec(),
            Self::Floats(bytes) => {
                let raw = &bytes.as_chunks::<4>().0[start..start + count];
                raw.iter().map(|raw| f32::from_le_bytes(*raw)).collect()
            }
            Self::Integers(_) => Vec::new(),
        }
    }
}

/// Binary inputs lie behind the JSON one after the other.
fn take_data(input: &mut SequenceTensor, rest: &mut Bytes) -> Result<Data, ApiError> {
    let parameters = input.parameters.take().unwrap_or_default();
    let name = short(&input.name);
    if parameters.shared_memory_region.is_some() {
        return Err(bad("shared memory is not offered; send the data in the request"));
    }
    match (parameters.binary_data_size, input.data.take()) {
        (Some(_), Some(_)) => {
            Err(bad(&format!("the input '{name}' has data both in JSON and in binary; send one of them")))
        }
        (Some(size), None) => {
            let width = if input.datatype == "INT64" { 8 } else { 4 };
            if size > rest.len() || size % width != 0 {
                let left = rest.len();
                return Err(bad(&format!("binary_data_size of '{name}' is {size}, and {left} bytes are there for it")));
            }
            let bytes = rest.split_to(size);
            Ok(if width == 8 { Data::Integers(bytes) } else { Data::Floats(bytes) })
        }
        (None, Some(data)) => Ok(Data::Json(data)),
        (None, None) => Err(bad(&format!("the input '{name}' has no data"))),
    }
}

/// Reads nested arrays of numbers into one flat vector, without a tree of values in between; null is a value that is
/// missing.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f32>>, D::Error> {
    struct Into<'a>(&'a mut Vec<f32>);

    impl<'de> DeserializeSeed<'de> for Into<'_> {
        type Value = ();
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_any(self)
        }
    }

    impl<'de> Visitor<'de> for Into<'_> {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("numbers, flat or in nested arrays")
        }
        fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
            self.0.push(value as f32);
            Ok(())
        }
        fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
            self.visit_f64(value as f64)
        }
        fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
            self.visit_f64(value as f64)
        }
        fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
            self.visit_f64(f64::NAN)
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

    const SPEC: SequenceSpec = SequenceSpec { dim: 2, max_steps: 3 };

    fn read(json: &str, binary: &[u8]) -> Result<Vec<Vec<f32>>, ApiError> {
        let body = Bytes::from([json.as_bytes(), binary].concat());
        let (mut request, binary) = split(&body, Some(json.len()))?;
        let values = |content: Content| match content {
            Content::Sequence { values, .. } => values,
            other => panic!("{other:?}"),
        };
        Ok(sequences(&mut request, binary, SPEC, 10)?.into_iter().map(values).collect())
    }

    fn request(shape: &str, lengths: &str) -> String {
        let values = format!(
            r#"{{"name": "values", "datatype": "FP32", "shape": {shape}, "data": [1, 2.5, -3, null, 5, 6, 7, 8]}}"#
        );
        format!(
            r#"{{"inputs": [{values}, {{"name": "lengths", "datatype": "INT64", "shape": [2], "data": {lengths}}}]}}"#
        )
    }

    #[test]
    fn flat_nested_and_binary_data_are_the_same() {
        let found = read(&request("[2, 2, 2]", "[1, 2]"), &[]).unwrap();
        assert_eq!(found, [vec![1.0, 2.5], vec![5.0, 6.0, 7.0, 8.0]]);
        let json = r#"{"inputs": [
            {"name": "lengths", "datatype": "INT64", "shape": [2], "parameters": {"binary_data_size": 16}},
            {"name": "values", "datatype": "FP32", "shape": [2, 2, 2], "parameters": {"binary_data_size": 32}}]}"#;
        let lengths = [1i64, 2].map(i64::to_le_bytes).concat();
        let values = [1.0f32, 2.5, -3.0, f32::NAN, 5.0, 6.0, 7.0, 8.0].map(f32::to_le_bytes).concat();
        assert_eq!(read(json, &[lengths, values].concat()).unwrap(), found);
    }

    #[test]
    fn what_does_not_fit_is_explained() {
        for (json, expected) in [
            (request("[2, 2, 3]", "[1, 2]"), "3 values a step and the model takes 2"),
            (request("[2, 4]", "[1, 2]"), "[sequences, time, 2]"),
            (request("[2, 3, 2]", "[1, 2]"), "2 x 3 x 2 values"),
            (request("[2, 2, 2]", "[1, 3]"), "length of sequence 1 is 3; it must be from 1 to 2"),
            (request("[2, 2, 2]", "[0, 2]"), "length of sequence 0 is 0"),
            (request("[2, 2, 2]", "[1.5, 2]"), "length of sequence 0 is 1.5"),
            (request("[2, 2, 2]", "[1]"), "2 lengths; there are 8 and 1"),
            (request("[2, 2, 2]", "[1, 2]").replace("INT64", "FP32"), "'lengths' has the datatype INT64"),
            (request("[2, 2, 2]", "[1, 2]").replace("\"values\"", "\"image\""), "'values' and 'lengths', not 'image'"),
            (request("[2, 2, 2]", "[1, 2]").replace("\"lengths\"", "\"values\""), "datatype FP32"),
            (request("[18446744073709551615, 2, 2]", "[1, 2]"), "as many as 'values' has"),
            (r#"{"inputs": []}"#.into(), "two inputs"),
            (request("[2, 2, 2]", "[\"x\", 2]"), "numbers, flat or in nested arrays"),
        ] {
            let error = read(&json, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{json}: {error}");
        }
        assert!(read(&request("[2, 2, 2]", "[1, 2]"), b"more").unwrap_err().to_string().contains("no input has"));
        let long = r#"{"inputs": [
            {"name": "values", "datatype": "FP32", "shape": [1, 4, 2], "data": [1, 2, 3, 4, 5, 6, 7, 8]},
            {"name": "lengths", "datatype": "INT64", "shape": [1], "data": [4]}]}"#;
        assert!(read(long, &[]).unwrap_err().to_string().contains("4 steps, more than the limit of 3"));
    }
}
