//! Images in a JSON body. Nothing is kept of it but the images themselves, which stay where they are in the body.

use std::fmt;

use actix_web::web::Bytes;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use utoipa::ToSchema;

use super::budget::Held;
use super::list::{Given, Name, Parsed, Reading, read};
use crate::engine::Content;
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

/// Reads a body with at most `most` images; the base64 is decoded later, by a worker. What is not simply a part of the body
/// is counted by `held`.
pub fn parse(body: &Bytes, most: usize, held: &mut Held) -> Result<Parsed, ApiError> {
    read(body, Images(body), most, held)
}

/// Images of a body.
#[derive(Clone, Copy)]
struct Images<'a>(&'a Bytes);

impl Given for Images<'_> {
    const LIST: &'static str = "images";

    fn next<'de, A: SeqAccess<'de>>(
        reading: &mut Reading<'_, Self>,
        list: &mut A,
    ) -> Result<Option<(Option<String>, Content)>, A::Error> {
        let next = list.next_element_seed(Image(reading))?;
        Ok(next.map(|(name, text)| (name, Content::Base64(text))))
    }
}

/// One image: its name, where it has one, and its data.
struct Image<'a, 'b, 'c>(&'a mut Reading<'b, Images<'c>>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum ImageField {
    Name,
    Data,
}

impl<'de> DeserializeSeed<'de> for Image<'_, '_, '_> {
    type Value = (Option<String>, Bytes);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Image<'_, '_, '_> {
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
struct Text<'a, 'b, 'c>(&'a mut Reading<'b, Images<'c>>);

impl<'de> DeserializeSeed<'de> for Text<'_, '_, '_> {
    type Value = Bytes;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Bytes, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text<'_, '_, '_> {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a base64 string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Bytes, E> {
        // What is borrowed is part of the body: the reader was given nothing else.
        Ok(self.0.given.0.slice_ref(text.as_bytes()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        self.0.count(text.len())?;
        Ok(Bytes::copy_from_slice(text.as_bytes()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::engine::Upload;
    use crate::intake::{Budget, Options};

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
