//! Images in a JSON body. Nothing is kept of it but the images themselves, which stay where they are in the body, and
//! reading ends with the first image too many: a body of a few kilobytes may unpack to millions of them.

use std::fmt;

use actix_web::web::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use utoipa::ToSchema;

use super::Options;
use super::budget::Held;
use super::name::{LONGEST, name};
use crate::engine::{Content, Upload};
use crate::error::ApiError;

/// Images in base64, with the same options as the query.
#[derive(ToSchema)]
#[allow(dead_code)] // Only describes the body for /docs.
pub struct AssignBody {
    /// The images, at least one.
    #[schema(min_items = 1)]
    images: Vec<ImageInput>,
    /// How many clusters to list per image, the most probable first.
    #[schema(minimum = 0, maximum = 10_000)]
    top_k: Option<u32>,
    /// True to get each image's embedding.
    embedding: Option<bool>,
}

/// One image: the base64 text alone, or with a name.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)] // Only describes the body for /docs.
pub enum ImageInput {
    /// The image file in base64, with or without a `data:` prefix.
    Data(String),
    /// The same with a name.
    Named(NamedImage),
}

/// An image with a name.
#[derive(ToSchema)]
#[allow(dead_code)] // Only describes the body for /docs.
pub struct NamedImage {
    /// Repeated in the answer.
    name: Option<String>,
    /// The image file in base64, with or without a `data:` prefix.
    data: String,
}

/// What a body holds; the base64 is decoded later, by a worker.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The images.
    pub uploads: Vec<Upload>,
    /// The options.
    pub options: Options,
}

/// Reads a body with at most `most` images. What is not simply a part of the body is counted by `held`.
pub fn parse(body: &Bytes, most: usize, held: &mut Held) -> Result<Parsed, ApiError> {
    let mut reading = Reading { body, most, held, problem: None };
    let mut json = serde_json::Deserializer::from_slice(body);
    let parsed = json.deserialize_map(Whole(&mut reading)).and_then(|parsed| json.end().map(|()| parsed));
    match (reading.problem, parsed) {
        (Some(problem), _) => Err(problem),
        (None, parsed) => parsed.map_err(|error| ApiError::BadJson(error.to_string())),
    }
}

/// What all parts of the reader share.
struct Reading<'a> {
    body: &'a Bytes,
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

    /// Counts memory that is not part of the body.
    fn count<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        self.held.grow(bytes as u64).map_err(|problem| self.stop(problem))
    }
}

struct Whole<'a, 'b>(&'a mut Reading<'b>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Images,
    TopK,
    Embedding,
}

impl<'de> Visitor<'de> for Whole<'_, '_> {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with 'images'")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        let (mut uploads, mut options) = (None, Options::default());
        while let Some(field) = map.next_key()? {
            match field {
                Field::Images if uploads.is_none() => uploads = Some(map.next_value_seed(Images(self.0))?),
                Field::TopK if options.top_k.is_none() => {
                    options.top_k = map.next_value::<Option<Count>>()?.map(|count| count.0);
                }
                Field::Embedding if options.embedding.is_none() => options.embedding = map.next_value()?,
                Field::Images => return Err(A::Error::duplicate_field("images")),
                Field::TopK => return Err(A::Error::duplicate_field("top_k")),
                Field::Embedding => return Err(A::Error::duplicate_field("embedding")),
            }
        }
        let uploads = uploads.ok_or_else(|| A::Error::missing_field("images"))?;
        Ok(Parsed { uploads, options })
    }
}

/// A whole number that is not negative.
pub(super) struct Count(pub(super) u32);

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

struct Images<'a, 'b>(&'a mut Reading<'b>);

impl<'de> DeserializeSeed<'de> for Images<'_, '_> {
    type Value = Vec<Upload>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Upload>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Images<'_, '_> {
    type Value = Vec<Upload>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of images")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut images: A) -> Result<Vec<Upload>, A::Error> {
        let mut uploads: Vec<Upload> = Vec::new();
        while uploads.len() < self.0.most {
            let Some((given, content)) = images.next_element_seed(Image(self.0))? else { return Ok(uploads) };
            let name = given.unwrap_or_else(|| uploads.len().to_string());
            self.0.count(size_of::<Upload>() + name.len())?;
            uploads.push(Upload { name, content: Content::Base64(content) });
        }
        match images.next_element::<IgnoredAny>()? {
            None => Ok(uploads),
            Some(_) => Err(self.0.stop(ApiError::TooManyImages { limit: self.0.most })),
        }
    }
}

/// One image: its name, where it has one, and its data.
struct Image<'a, 'b>(&'a mut Reading<'b>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum ImageField {
    Name,
    Data,
}

impl<'de> DeserializeSeed<'de> for Image<'_, '_> {
    type Value = (Option<String>, Bytes);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Image<'_, '_> {
    type Value = (Option<String>, Bytes);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("each item of 'images' to be a base64 string or {\"name\": ..., \"data\": ...}")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok((None, Text(self.0).visit_borrowed_str(text)?))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok((None, Text(self.0).visit_str(text)?))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut name, mut data) = (None, None);
        while let Some(field) = map.next_key()? {
            match field {
                ImageField::Name if name.is_none() => name = map.next_value::<Option<Name>>()?.map(|name| name.0),
                ImageField::Data if data.is_none() => data = Some(map.next_value_seed(Text(self.0))?),
                ImageField::Name => return Err(A::Error::duplicate_field("name")),
                ImageField::Data => return Err(A::Error::duplicate_field("data")),
            }
        }
        Ok((name, data.ok_or_else(|| A::Error::missing_field("data"))?))
    }
}

/// A string of the body: the place where it is, or a copy where it is written with escapes.
struct Text<'a, 'b>(&'a mut Reading<'b>);

impl<'de> DeserializeSeed<'de> for Text<'_, '_> {
    type Value = Bytes;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Bytes, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text<'_, '_> {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a base64 string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Bytes, E> {
        // What is borrowed is part of the body: the reader was given nothing else.
        Ok(self.0.body.slice_ref(text.as_bytes()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        self.0.count(text.len())?;
        Ok(Bytes::copy_from_slice(text.as_bytes()))
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::intake::Budget;

    fn read(body: &str) -> Result<Parsed, ApiError> {
        parse(&Bytes::copy_from_slice(body.as_bytes()), 1000, &mut Held::default())
    }

    fn data(upload: &Upload) -> Bytes {
        match &upload.content {
            Content::Base64(text) => text.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn strings_and_named_images_may_be_mixed() {
        let body =
            r#"{"images": ["AAAA", {"name": "b", "data": "BB\/B"}, {"data": "CCCC"}], "top_k": 2, "embedding": null}"#;
        let Parsed { uploads, options } = read(body).unwrap();
        assert_eq!(options, Options { top_k: Some(2), embedding: None });
        let names: Vec<&str> = uploads.iter().map(|upload| upload.name.as_str()).collect();
        assert_eq!(names, ["0", "b", "2"]);
        let texts: Vec<Bytes> = uploads.iter().map(data).collect();
        assert_eq!(texts, ["AAAA", "BB/B", "CCCC"]);
    }

    #[test]
    fn a_wrong_form_is_explained() {
        for (body, expected) in [
            ("{}", "missing field `images`"),
            ("[]", "an object with 'images'"),
            (r#"{"images": [1]}"#, "base64 string"),
            (r#"{"images": [[[[]]]]}"#, "base64 string"),
            (r#"{"images": [{"name": "a"}]}"#, "missing field `data`"),
            (r#"{"images": "AAAA"}"#, "a list of images"),
            (r#"{"images": [], "topk": 1}"#, "unknown field `topk`"),
            (r#"{"images": [], "images": []}"#, "duplicate field `images`"),
            (r#"{"images": [], "top_k": "3"}"#, "a whole number from 0"),
            (r#"{"images": [], "top_k": -1}"#, "a whole number from 0"),
            (r#"{"images": []} more"#, "trailing characters"),
            ("not json", "line 1"),
        ] {
            let error = read(body).unwrap_err().to_string();
            assert!(error.contains(expected), "{body}: {error}");
            assert!(!error.contains("struct") && !error.contains("u32"), "{error}");
        }
    }

    /// Ten million empty strings became ten million images before they were counted.
    #[test]
    fn reading_ends_with_the_first_image_too_many() {
        let most = 1000;
        // Behind the first image too many is nothing that could be read, and nobody tries.
        let body = format!(r#"{{"images": [{} this is no JSON"#, r#""","#.repeat(most + 1));
        let budget = Budget::new(1 << 20);
        let mut held = budget.open();
        let refused = parse(&body.into(), most, &mut held).unwrap_err();
        assert_eq!(refused, ApiError::TooManyImages { limit: most });
        assert!(budget.used() < 200 * most as u64, "{} bytes", budget.used());
    }

    #[test]
    fn what_is_copied_is_counted() {
        let budget = Budget::new(1 << 20);
        let (plain, escaped) = ("A".repeat(50_000), "\\/".repeat(50_000));
        let count = |text: &str| {
            let mut held = budget.open();
            let body = format!(r#"{{"images": ["{text}"]}}"#);
            parse(&body.into(), 1000, &mut held).map(|parsed| (parsed.uploads.len(), budget.used()))
        };
        assert!(count(&plain).unwrap().1 < 1000);
        assert!((50_000..51_000).contains(&count(&escaped).unwrap().1));
        assert!(matches!(count(&escaped.repeat(30)), Err(ApiError::BodyTooLarge { .. })));
    }
}
