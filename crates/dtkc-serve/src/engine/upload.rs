//! One image on its way through the queue, in the form in which it arrived.

use std::sync::Arc;

use actix_web::web::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dtkc_image::Preparer;
use dtkc_infer::Prepare;
use dtkc_item::ItemError;

use crate::intake::Archive;

/// One image of a request. Decoding waits until a worker takes it.
#[derive(Debug)]
pub struct Upload {
    /// The name the answer repeats: a file name, or the position.
    pub name: String,
    /// Where the pixels come from.
    pub content: Content,
}

/// Where an image's pixels come from.
#[derive(Debug)]
pub enum Content {
    /// The bytes of an image file.
    Encoded(Bytes),
    /// The same in base64, with or without a `data:` prefix.
    Base64(String),
    /// One file of an archive that is still packed.
    Zipped(Arc<Archive>, usize),
    /// Pixels of exactly the model's size.
    Pixels(Bytes),
    /// A file on which its decoder breaks down.
    #[cfg(test)]
    Fatal,
}

impl Upload {
    /// About how many bytes a worker has to decode; batches end early when this adds up.
    pub fn weight(&self) -> usize {
        match &self.content {
            Content::Encoded(bytes) | Content::Pixels(bytes) => bytes.len(),
            Content::Base64(text) => text.len() / 4 * 3,
            Content::Zipped(archive, index) => archive.packed_size(*index),
            #[cfg(test)]
            Content::Fatal => 1,
        }
    }
}

impl Prepare for Upload {
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError> {
        match &self.content {
            Content::Encoded(bytes) => preparer.prepare_into(bytes, out),
            Content::Base64(text) => preparer.prepare_into(&decode_base64(text)?, out),
            Content::Zipped(archive, index) => preparer.prepare_into(&archive.unpack(*index)?, out),
            Content::Pixels(bytes) if bytes.len() == out.len() => {
                out.copy_from_slice(bytes);
                Ok(())
            }
            Content::Pixels(bytes) => {
                let (found, taken) = (bytes.len(), out.len());
                let message = format_args!("the image has {found} bytes and the model now takes {taken}");
                Err(ItemError::new("wrong_length", message))
            }
            #[cfg(test)]
            Content::Fatal => panic!("a strange file"),
        }
    }
}

fn decode_base64(text: &str) -> Result<Vec<u8>, ItemError> {
    let text = text.trim();
    let data = match text.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((_, data)) => data,
        None => text,
    };
    let remedy = "encode the image file with standard base64 and padding";
    let wrong = |error| ItemError::new("bad_base64", format_args!("the data is not base64 ({error}); {remedy}"));
    STANDARD.decode(data).map_err(wrong)
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
