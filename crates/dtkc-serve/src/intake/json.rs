//! Images in a JSON body.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::engine::{Content, Upload};
use crate::error::ApiError;

/// Images in base64, with the same options as the query.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignBody {
    /// The images, at least one.
    #[schema(min_items = 1)]
    pub images: Vec<ImageInput>,
    /// How many clusters to list per image, the most probable first.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 10_000)]
    pub top_k: Option<u32>,
    /// True to get each image's embedding.
    #[serde(default)]
    pub embedding: Option<bool>,
}

/// One image: the base64 text alone, or with a name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "each item of 'images' must be a base64 string or {\"name\": ..., \"data\": ...}")]
pub enum ImageInput {
    /// The image file in base64, with or without a `data:` prefix.
    Data(String),
    /// The same with a name.
    Named(NamedImage),
}

/// An image with a name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedImage {
    /// Repeated in the answer.
    #[serde(default)]
    pub name: Option<String>,
    /// The image file in base64, with or without a `data:` prefix.
    pub data: String,
}

/// Reads the body; the base64 is decoded later, by a worker.
pub fn parse(body: &[u8]) -> Result<AssignBody, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::BadJson(error.to_string()))
}

/// The images of a body as uploads for the queue.
pub fn uploads(images: Vec<ImageInput>) -> Vec<Upload> {
    let upload = |(index, image): (usize, ImageInput)| {
        let (name, data) = match image {
            ImageInput::Data(data) => (None, data),
            ImageInput::Named(named) => (named.name, named.data),
        };
        Upload { name: name.unwrap_or_else(|| index.to_string()), content: Content::Base64(data) }
    };
    images.into_iter().enumerate().map(upload).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_named_images_may_be_mixed() {
        let body =
            parse(br#"{"images": ["AAAA", {"name": "b", "data": "BBBB"}, {"data": "CCCC"}], "top_k": 2}"#).unwrap();
        assert_eq!(body.top_k, Some(2));
        let names: Vec<String> = uploads(body.images).into_iter().map(|upload| upload.name).collect();
        assert_eq!(names, ["0", "b", "2"]);
    }

    #[test]
    fn a_wrong_form_is_explained() {
        for (body, expected) in [
            ("{}", "missing field `images`"),
            (r#"{"images": [1]}"#, "base64 string"),
            (r#"{"images": [], "topk": 1}"#, "unknown field `topk`"),
            ("not json", "line 1"),
        ] {
            let error = parse(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{body}: {error}");
        }
    }
}
