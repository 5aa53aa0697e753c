//! A JSON body with a list of items and options. Reading ends with the first item too many: a body of a few kilobytes may
//! unpack to millions of them.

use std::fmt;

use actix_web::web::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

use super::Options;
use super::budget::Held;
use super::name::{LONGEST, name};
use crate::engine::{Content, Upload};
use crate::error::ApiError;

/// What a body holds.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The items.
    pub uploads: Vec<Upload>,
    /// The options.
    pub options: Options,
}

/// What the list holds, and how one item of it is read.
pub(super) trait Given: Copy {
    /// The field of the list, and what the items are called.
    const LIST: &'static str;

    /// The next item: its name, where it has one, and its content.
    fn next<'de, A: SeqAccess<'de>>(
        reading: &mut Reading<'_, Self>,
        list: &mut A,
    ) -> Result<Option<(Option<String>, Content)>, A::Error>;
}

/// Reads a body with at most `most` items. What is not simply a part of the body is counted by `held`.
pub(super) fn read<G: Given>(body: &Bytes, given: G, most: usize, held: &mut Held) -> Result<Parsed, ApiError> {
    let mut reading = Reading { given, most, held, problem: None };
    let mut json = serde_json::Deserializer::from_slice(body);
    let parsed = json.deserialize_map(Whole(&mut reading)).and_then(|parsed| json.end().map(|()| parsed));
    match (reading.problem, parsed) {
        (Some(problem), _) => Err(problem),
        (None, parsed) => parsed.map_err(|error| ApiError::BadJson(error.to_string())),
    }
}

/// What all parts of the reader share.
pub(super) struct Reading<'a, G> {
    /// What items are read with.
    pub given: G,
    most: usize,
    held: &'a mut Held,
    /// Why reading stopped, where that is no fault of the JSON.
    problem: Option<ApiError>,
}

impl<G> Reading<'_, G> {
    fn stop<E: Error>(&mut self, problem: ApiError) -> E {
        self.problem = Some(problem);
        E::custom("stopped")
    }

    /// Counts memory that is not part of the body.
    pub fn count<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        self.held.grow(bytes as u64).map_err(|problem| self.stop(problem))
    }
}

struct Whole<'a, 'b, G>(&'a mut Reading<'b, G>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Images,
    Sequences,
    TopK,
    Embedding,
}

impl Field {
    /// The name of a list.
    fn list(&self) -> Option<&'static str> {
        match self {
            Self::Images => Some("images"),
            Self::Sequences => Some("sequences"),
            Self::TopK | Self::Embedding => None,
        }
    }
}

impl<'de, G: Given> Visitor<'de> for Whole<'_, '_, G> {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with '{}'", G::LIST)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        let (mut uploads, mut options) = (None, Options::default());
        while let Some(field) = map.next_key::<Field>()? {
            if let Some(other) = field.list().filter(|list| *list != G::LIST) {
                let message = format_args!("unknown field `{other}`: the model takes `{}`", G::LIST);
                return Err(A::Error::custom(message));
            }
            match field {
                Field::TopK if options.top_k.is_none() => {
                    options.top_k = map.next_value::<Option<Count>>()?.map(|count| count.0);
                }
                Field::Embedding if options.embedding.is_none() => options.embedding = map.next_value()?,
                Field::TopK => return Err(A::Error::duplicate_field("top_k")),
                Field::Embedding => return Err(A::Error::duplicate_field("embedding")),
                _ if uploads.is_none() => uploads = Some(map.next_value_seed(List(self.0))?),
                _ => return Err(A::Error::duplicate_field(G::LIST)),
            }
        }
        let uploads = uploads.ok_or_else(|| A::Error::missing_field(G::LIST))?;
        Ok(Parsed { uploads, options })
    }
}

/// A whole number that is not negative.
struct Count(u32);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 0 to 10000")
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Count, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Unsigned(value), &self);
                u32::try_from(value).map(Count).map_err(wrong)
            }
        }
        deserializer.deserialize_u32(Number)
    }
}

struct List<'a, 'b, G>(&'a mut Reading<'b, G>);

impl<'de, G: Given> DeserializeSeed<'de> for List<'_, '_, G> {
    type Value = Vec<Upload>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Upload>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, G: Given> Visitor<'de> for List<'_, '_, G> {
    type Value = Vec<Upload>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", G::LIST)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Upload>, A::Error> {
        let mut uploads: Vec<Upload> = Vec::new();
        while uploads.len() < self.0.most {
            let Some((given, content)) = G::next(self.0, &mut list)? else { return Ok(uploads) };
            let name = given.unwrap_or_else(|| uploads.len().to_string());
            self.0.count(size_of::<Upload>() + name.len())?;
            uploads.push(Upload { name, content });
        }
        match list.next_element::<IgnoredAny>()? {
            None => Ok(uploads),
            Some(_) => Err(self.0.stop(ApiError::TooManyImages { limit: self.0.most })),
        }
    }
}

/// A name, cut to what answers repeat before it is copied.
pub(super) struct Name(pub(super) String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Cut;
        impl Visitor<'_> for Cut {
            type Value = Name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a name of at most {LONGEST} bytes")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Name, E> {
                Ok(Name(name(text)))
            }
        }
        deserializer.deserialize_str(Cut)
    }
}
