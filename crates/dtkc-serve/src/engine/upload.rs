//! One image on its way through the queue, in the form in which it arrived.

use std::sync::Arc;

use actix_web::web::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dtkc_image::{ImageError, Preparer};

use crate::intake::Archive;

/// One image of a request. Decoding waits until a worker takes it.
#[derive(Debug)]
pub struct Item {
    /// The name the answer repeats: a file name, or the position.
    pub name: String,
    /// Where the pixels come from.
    pub source: Source,
}

/// Where an image's pixels come from.
#[derive(Debug)]
pub enum Source {
    /// The bytes of an image file.
    Encoded(Bytes),
    /// The same in base64, with or without a `data:` prefix.
    Base64(String),
    /// One file of an archive that is still packed.
    Zipped(Arc<Archive>, usize),
    /// Pixels of exactly the model's size.
    Pixels(Bytes),
}

/// Why one image failed while the others of its request did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageProblem {
    /// Stable name.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
}

impl From<ImageError> for ImageProblem {
    fn from(error: ImageError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

impl Item {
    /// About how many bytes a worker has to decode; batches end early when this adds up.
    pub fn weight(&self) -> usize {
        match &self.source {
            Source::Encoded(bytes) | Source::Pixels(bytes) => bytes.len(),
            Source::Base64(text) => text.len() / 4 * 3,
            Source::Zipped(archive, index) => archive.packed_size(*index),
        }
    }

    /// Writes the pixels into `out`, which has exactly the model's size.
    pub fn pixels_into(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ImageProblem> {
        match &self.source {
            Source::Encoded(bytes) => preparer.prepare_into(bytes, out)?,
            Source::Base64(text) => preparer.prepare_into(&decode_base64(text)?, out)?,
            Source::Zipped(archive, index) => preparer.prepare_into(&archive.unpack(*index)?, out)?,
            Source::Pixels(bytes) if bytes.len() == out.len() => out.copy_from_slice(bytes),
            Source::Pixels(bytes) => {
                let message = format!("the image has {} bytes and the model now takes {}", bytes.len(), out.len());
                return Err(ImageProblem { code: "wrong_length", message });
            }
        }
        Ok(())
    }
}

fn decode_base64(text: &str) -> Result<Vec<u8>, ImageProblem> {
    let text = text.trim();
    let data = match text.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((_, data)) => data,
        None => text,
    };
    STANDARD.decode(data).map_err(|error| ImageProblem {
        code: "bad_base64",
        message: format!("the data is not base64 ({error}); encode the image file with standard base64 and padding"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn base64_comes_plain_or_as_a_data_url() {
        assert_eq!(decode_base64("aGVsbG8=").unwrap(), b"hello");
        assert_eq!(decode_base64(" data:image/png;base64,aGVsbG8=\n").unwrap(), b"hello");
        let problem = decode_base64("not base64!").unwrap_err();
        assert_eq!(problem.code, "bad_base64");
        assert!(problem.message.contains("standard base64"));
    }
}
