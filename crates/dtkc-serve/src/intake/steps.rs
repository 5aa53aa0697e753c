//! Sequences in a JSON body. A sequence that does not fit the model fails alone; reading ends with the first one too many,
//! and memory is counted before it is taken.

use std::fmt;

use actix_web::web::Bytes;
use dtkc_infer::SequenceSpec;
use dtkc_item::ItemError;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use utoipa::ToSchema;

use super::Options;
use super::budget::Held;
use super::json::{Count, Name, Parsed};
use crate::engine::{Content, Upload};
use crate::error::ApiError;

/// Sequences, with the same options as the query.
#[derive(ToSchema)]
#[allow(dead_code)] // Only describes the body for /docs.
pub struct SequencesBody {
    /// The sequences, at least one.
    #[schema(min_items = 1)]
    sequences: Vec<SequenceGiven>,
    /// How many clusters to list per sequence, the most probable first.
    #[schema(minimum = 0, maximum = 10_000)]
    top_k: Option<u32>,
    /// True to get each sequence's embedding.
    embedding: Option<bool>,
}

/// One sequence: its time steps alone, or with a name.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)] // Only describes the body for /docs.
pub enum SequenceGiven {
    /// Time steps, each a list of values.
    Steps(Vec<Vec<f32>>),
    /// The same with a name.
    Named(NamedSequence),
}

/// A sequence with a name.
#[derive(ToSchema)]
#[allow(dead_code)] // Only describes the body for /docs.
pub struct NamedSequence {
    /// Repeated in the answer.
    name: Option<String>,
    /// Time steps, each a list of values; numbers alone where a step has one value.
    values: Vec<Vec<f32>>,
}

/// Reads a body with at most `most` sequences.
pub fn parse(body: &Bytes, spec: SequenceSpec, most: usize, held: &mut Held) -> Result<Parsed, ApiError> {
    let mut reading = Reading { spec, most, held, problem: None };
    let mut json = serde_json::Deserializer::from_slice(body);
    let parsed = json.deserialize_map(Whole(&mut reading)).and_then(|parsed| json.end().map(|()| parsed));
    match (reading.problem, parsed) {
        (Some(problem), _) => Err(problem),
        (None, parsed) => parsed.map_err(|error| ApiError::BadJson(error.to_string())),
    }
}

/// What all parts of the reader share.
struct Reading<'a> {
    spec: SequenceSpec,
    most: usize,
    held: &'a mut Held,
    /// Why reading stopped, where that is no fault of the JSON.
    problem: Option<ApiError>,
}

impl Reading<'_> {
    fn stop<E: Error>(&mut self, problem: ApiError) -> E {
        self.problem = Some(problem);
        E::custom("stopped")
    }

    fn count<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        self.held.grow(bytes as u64).map_err(|problem| self.stop(problem))
    }
}

struct Whole<'a, 'b>(&'a mut Reading<'b>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Sequences,
    TopK,
    Embedding,
}

impl<'de> Visitor<'de> for Whole<'_, '_> {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with 'sequences'")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        let (mut uploads, mut options) = (None, Options::default());
        while let Some(field) = map.next_key()? {
            match field {
                Field::Sequences if uploads.is_none() => uploads = Some(map.next_value_seed(Sequences(self.0))?),
                Field::TopK if options.top_k.is_none() => {
                    options.top_k = map.next_value::<Option<Count>>()?.map(|count| count.0);
                }
                Field::Embedding if options.embedding.is_none() => options.embedding = map.next_value()?,
                Field::Sequences => return Err(A::Error::duplicate_field("sequences")),
                Field::TopK => return Err(A::Error::duplicate_field("top_k")),
                Field::Embedding => return Err(A::Error::duplicate_field("embedding")),
            }
        }
        let uploads = uploads.ok_or_else(|| A::Error::missing_field("sequences"))?;
        Ok(Parsed { uploads, options })
    }
}

struct Sequences<'a, 'b>(&'a mut Reading<'b>);

impl<'de> DeserializeSeed<'de> for Sequences<'_, '_> {
    type Value = Vec<Upload>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Upload>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Sequences<'_, '_> {
    type Value = Vec<Upload>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of sequences")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequences: A) -> Result<Vec<Upload>, A::Error> {
        let mut uploads: Vec<Upload> = Vec::new();
        while uploads.len() < self.0.most {
            let Some((given, steps)) = sequences.next_element_seed(One(self.0))? else { return Ok(uploads) };
            let name = given.unwrap_or_else(|| uploads.len().to_string());
            self.0.count(size_of::<Upload>() + name.len())?;
            uploads.push(Upload { name, content: steps.into_content(self.0.spec) });
        }
        match sequences.next_element::<IgnoredAny>()? {
            None => Ok(uploads),
            Some(_) => Err(self.0.stop(ApiError::TooManyImages { limit: self.0.most })),
        }
    }
}

/// One sequence: its name, where it has one, and its steps.
struct One<'a, 'b>(&'a mut Reading<'b>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum OneField {
    Name,
    Values,
}

impl<'de> DeserializeSeed<'de> for One<'_, '_> {
    type Value = (Option<String>, Steps);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for One<'_, '_> {
    type Value = (Option<String>, Steps);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("each item of 'sequences' to be a list of time steps or {\"name\": ..., \"values\": [...]}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, steps: A) -> Result<Self::Value, A::Error> {
        Ok((None, StepList(self.0).visit_seq(steps)?))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut name, mut values) = (None, None);
        while let Some(field) = map.next_key()? {
            match field {
                OneField::Name if name.is_none() => name = map.next_value::<Option<Name>>()?.map(|name| name.0),
                OneField::Values if values.is_none() => values = Some(map.next_value_seed(StepList(self.0))?),
                OneField::Name => return Err(A::Error::duplicate_field("name")),
                OneField::Values => return Err(A::Error::duplicate_field("values")),
            }
        }
        Ok((name, values.ok_or_else(|| A::Error::missing_field("values"))?))
    }
}

/// Time steps that were read, or why they cannot be used.
#[derive(Debug, Default)]
struct Steps {
    values: Vec<f32>,
    steps: usize,
    problem: Option<ItemError>,
}

impl Steps {
    /// Notes a problem; what was kept goes.
    fn fail(&mut self, problem: ItemError) {
        self.values = Vec::new();
        self.problem.get_or_insert(problem);
    }

    fn into_content(self, spec: SequenceSpec) -> Content {
        match self.problem {
            Some(problem) => Content::Failed(problem),
            None => Content::Sequence { dim: spec.dim, values: self.values },
        }
    }
}

struct StepList<'a, 'b>(&'a mut Reading<'b>);

impl<'de> DeserializeSeed<'de> for StepList<'_, '_> {
    type Value = Steps;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Steps, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for StepList<'_, '_> {
    type Value = Steps;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of time steps")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Steps, A::Error> {
        let mut steps = Steps::default();
        while let Some(found) = list.next_element_seed(Step(self.0, &mut steps))? {
            steps.steps += 1;
            let SequenceSpec { dim, .. } = self.0.spec;
            if found != dim {
                steps.fail(ItemError::other_dimension(found, dim));
            } else if let Err(too_long) = self.0.spec.check_steps(steps.steps) {
                steps.fail(too_long);
            }
        }
        Ok(steps)
    }
}

/// One step: a list of values, or a value alone. Says how many there were.
struct Step<'a, 'b, 'c>(&'a mut Reading<'b>, &'c mut Steps);

impl Step<'_, '_, '_> {
    /// Keeps a value, where the sequence can still be used, in memory that was counted.
    fn keep<E: Error>(&mut self, place: usize, value: f32) -> Result<(), E> {
        if self.1.problem.is_some() || place >= self.0.spec.dim {
            return Ok(());
        }
        let values = &mut self.1.values;
        if values.len() == values.capacity() {
            let more = values.capacity().max(16);
            self.0.count(more * size_of::<f32>())?;
            values.reserve_exact(more);
        }
        values.push(value);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Step<'_, '_, '_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Step<'_, '_, '_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time step: a list of numbers, or a number")
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<usize, E> {
        self.keep(0, value as f32).map(|()| 1)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<usize, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<usize, E> {
        self.visit_f64(value as f64)
    }

    fn visit_unit<E: Error>(self) -> Result<usize, E> {
        self.visit_f64(f64::NAN)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<usize, A::Error> {
        let mut found = 0;
        while let Some(value) = values.next_element::<Option<f64>>()? {
            // What is null is missing, and the worker says so.
            self.keep(found, value.map_or(f32::NAN, |value| value as f32))?;
            found += 1;
        }
        Ok(found)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::intake::Budget;

    fn read_as(body: &str, dim: usize) -> Result<Parsed, ApiError> {
        let spec = SequenceSpec { dim, max_steps: 4 };
        parse(&Bytes::copy_from_slice(body.as_bytes()), spec, 3, &mut Held::default())
    }

    fn told(upload: &Upload) -> String {
        upload.sequence().map_or_else(|error| error.message, |(_, values)| format!("{values:?}"))
    }

    #[test]
    fn sequences_come_alone_or_named_and_fail_alone() {
        let body =
            r#"{"sequences": [[[1, 2], [3.5, -4]], {"name": "b", "values": [[1, null]]}, [[1], [2]]], "top_k": 2}"#;
        let Parsed { uploads, options } = read_as(body, 2).unwrap();
        assert_eq!(options, Options { top_k: Some(2), embedding: None });
        let names: Vec<&str> = uploads.iter().map(|upload| upload.name.as_str()).collect();
        assert_eq!(names, ["0", "b", "2"]);
        assert_eq!(told(&uploads[0]), "[1.0, 2.0, 3.5, -4.0]");
        assert_eq!(told(&uploads[1]), "[1.0, NaN]");
        assert_eq!(told(&uploads[2]), "the sequence has 1 value a step and the model takes 2");
        let flat = read_as(r#"{"sequences": [[1, 2, 3], [[4], [5]], [1, 2, 3, 4, 5]]}"#, 1).unwrap().uploads;
        assert_eq!((told(&flat[0]), told(&flat[1])), ("[1.0, 2.0, 3.0]".into(), "[4.0, 5.0]".into()));
        assert!(told(&flat[2]).contains("5 steps, more than the limit of 4"), "{}", told(&flat[2]));
    }

    #[test]
    fn a_wrong_form_is_explained() {
        for (body, expected) in [
            ("{}", "missing field `sequences`"),
            ("[]", "an object with 'sequences'"),
            (r#"{"images": []}"#, "unknown field `images`"),
            (r#"{"sequences": [1]}"#, "a list of time steps or"),
            (r#"{"sequences": [["x"]]}"#, "a list of numbers, or a number"),
            (r#"{"sequences": [[[[1]]]]}"#, "invalid type: sequence"),
            (r#"{"sequences": [{"name": "a"}]}"#, "missing field `values`"),
            (r#"{"sequences": [], "sequences": []}"#, "duplicate field `sequences`"),
            (r#"{"sequences": []} more"#, "trailing characters"),
        ] {
            let error = read_as(body, 2).unwrap_err().to_string();
            assert!(error.contains(expected), "{body}: {error}");
        }
        let many = format!(r#"{{"sequences": [{} this is no JSON"#, "[],".repeat(4));
        assert_eq!(read_as(&many, 2).unwrap_err(), ApiError::TooManyImages { limit: 3 });
    }

    #[test]
    fn memory_is_counted_before_it_is_taken() {
        let budget = Budget::new(100_000);
        let spec = SequenceSpec { dim: 1, max_steps: usize::MAX };
        let read = |numbers: usize| {
            let body = format!(r#"{{"sequences": [[{}0]]}}"#, "1,".repeat(numbers));
            let mut held = budget.open();
            parse(&body.into(), spec, 10, &mut held).map(|_| budget.used())
        };
        let used = read(10_000).unwrap();
        assert!((40_000..100_000).contains(&used), "{used}");
        assert!(matches!(read(30_000), Err(ApiError::BodyTooLarge { .. })));
        assert_eq!(budget.used(), 0);
    }
}
