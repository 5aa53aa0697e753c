//! One image or sequence on its way through the queue, in the form in which it arrived.

use std::sync::Arc;

use actix_web::web::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, alphabet};
use dtkc_image::{Cost, Preparer};
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
    Base64(Bytes),
    /// One file of an archive that is still packed.
    Zipped(Arc<Archive>, usize),
    /// Pixels of exactly the model's size.
    Pixels(Bytes),
    /// A sequence.
    Sequence {
        /// Values per time step.
        dim: usize,
        /// The time steps, one after the other.
        values: Vec<f32>,
    },
    /// Something that could not be read, and keeps its place.
    Failed(ItemError),
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
            Content::Zipped(archive, index) => archive.size(*index),
            Content::Sequence { values, .. } => size_of_val(values.as_slice()),
            Content::Failed(_) => 0,
            #[cfg(test)]
            Content::Fatal => 1,
        }
    }

    /// The sequence, with the values of a step.
    pub fn sequence(&self) -> Result<(usize, &[f32]), ItemError> {
        match &self.content {
            Content::Sequence { dim, values } => Ok((*dim, values)),
            Content::Failed(error) => Err(error.clone()),
            #[cfg(test)]
            Content::Fatal => panic!("a strange file"),
            _ => Err(ItemError::new("not_a_sequence", "it is an image, and the model now takes sequences")),
        }
    }
}

impl Upload {
    /// Writes the image's pixels into `out`. `admit` hears before the decoding what it will cost.
    pub fn prepare(
        &self,
        preparer: &mut Preparer,
        out: &mut [u8],
        admit: impl FnOnce(Cost) -> Result<(), ItemError>,
    ) -> Result<(), ItemError> {
        match &self.content {
            Content::Encoded(bytes) => preparer.prepare_if(bytes, out, admit),
            Content::Base64(text) => preparer.prepare_if(&decode_base64(text)?, out, admit),
            Content::Zipped(archive, index) => preparer.prepare_if(&archive.unpack(*index)?, out, admit),
            Content::Pixels(bytes) if bytes.len() == out.len() => {
                out.copy_from_slice(bytes);
                Ok(())
            }
            Content::Pixels(bytes) => {
                let (found, taken) = (bytes.len(), out.len());
                let message = format_args!("the image has {found} bytes and the model now takes {taken}");
                Err(ItemError::new("wrong_length", message))
            }
            Content::Sequence { .. } => {
                Err(ItemError::new("not_an_image", "it is a sequence, and the model now takes images"))
            }
            Content::Failed(error) => Err(error.clone()),
            #[cfg(test)]
            Content::Fatal => panic!("a strange file"),
        }
    }
}

/// With the padding or without it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reads base64 as programs write it: with the letters for addresses, in lines, without padding.
fn decode_base64(text: &[u8]) -> Result<Vec<u8>, ItemError> {
    let text = text.trim_ascii();
    let data = match text.starts_with(b"data:") {
        true => text.iter().position(|&byte| byte == b',').map_or(text, |comma| &text[comma + 1..]),
        false => text,
    };
    if let Ok(bytes) = STANDARD.decode(data) {
        return Ok(bytes);
    }
    let plain = |byte: &u8| match byte {
        byte if byte.is_ascii_whitespace() => None,
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        byte => Some(*byte),
    };
    let data: Vec<u8> = data.iter().filter_map(plain).collect();
    LENIENT.decode(data).map_err(|error| {
        let cause = match error {
            DecodeError::InvalidByte(..) => "it has a character of another kind",
            _ => "its end is wrong",
        };
        ItemError::new(
            "bad_base64",
            format_args!("the data is not base64 ({cause}); encode the image file with base64"),
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn base64_comes_plain_or_as_a_data_url() {
        assert_eq!(decode_base64(b"aGVsbG8=").unwrap(), b"hello");
        assert_eq!(decode_base64(b" data:image/png;base64,aGVsbG8=\n").unwrap(), b"hello");
        for wrong in [&b"not base64!"[..], b"a", b"aGVsbG8=aGVs", "aGVsbG8é".as_bytes()] {
            let problem = decode_base64(wrong).unwrap_err();
            assert_eq!(problem.code, "bad_base64");
            assert!(problem.message.contains("with base64"), "{problem}");
        }
    }

    /// MIME breaks lines, tokens use other letters, and many leave the padding out.
    #[test]
    fn base64_comes_in_lines_with_other_letters_and_without_padding() {
        let bytes = [0xfb, 0xef, 0xbe, 0xff, 0xfe, 0x3f, 7];
        for text in
            ["++++//4/Bw==", "----__4_Bw==", "++++//4/Bw", "----__4_Bw", "++++\r\n//4/\r\nBw==\r\n", "++ ++\t//4/Bw="]
        {
            assert_eq!(decode_base64(text.as_bytes()).unwrap(), bytes, "{text:?}");
        }
    }
}
