//! Why an image cannot be used, in one sentence each.

use thiserror::Error;

/// Why an image cannot be used. The text does not name the file: the caller knows it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// The content is no image in a format that we know.
    #[error("the content is not an image in a known format (PNG, JPEG, GIF, BMP, WebP, TIFF, PNM)")]
    NotAnImage,
    /// A known format, but a variant of it that the decoder lacks.
    #[error("this kind of {format} is not supported ({reason}); save it as an ordinary PNG or JPEG")]
    Unsupported {
        /// The format's name.
        format: &'static str,
        /// The decoder's words.
        reason: String,
    },
    /// The data ends too early.
    #[error("the {format} data is cut off; copy or download the file again")]
    Truncated {
        /// The format's name.
        format: &'static str,
    },
    /// The data breaks the format's rules.
    #[error("the {format} data is damaged ({reason}); copy or download the file again")]
    Damaged {
        /// The format's name.
        format: &'static str,
        /// The decoder's words.
        reason: String,
    },
    /// More bytes than allowed.
    #[error("the file has {bytes} bytes, more than the limit of {limit}")]
    TooManyBytes {
        /// What it has.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// More pixels, or a longer side, than allowed. Found before decoding.
    #[error("the image is {width}x{height} pixels, more than the limit of {max_side} per side and {max_pixels} in all")]
    TooManyPixels {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
        /// Allowed columns or rows.
        max_side: u32,
        /// Allowed pixels.
        max_pixels: u64,
    },
    /// Decoding would take more memory than the limits allow.
    #[error("the {format} image would take more than {limit} bytes to decode; save it with fewer bits or pixels")]
    TooMuchMemory {
        /// The format's name.
        format: &'static str,
        /// What is allowed.
        limit: u64,
    },
    /// The image has no pixels.
    #[error("the image has no pixels ({width}x{height})")]
    NoPixels {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// The decoder panicked; the panic was contained.
    #[error("the {format} decoder gave up on this file; save it again with another program")]
    DecoderFailed {
        /// The format's name.
        format: &'static str,
    },
    /// A buffer given by the calling program has the wrong length.
    #[error("the {what} buffer has {found} bytes instead of {expected}")]
    WrongLength {
        /// Which buffer.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length it should have.
        expected: usize,
    },
}

impl ImageError {
    /// A stable name for programs: it does not change when the sentence does.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NotAnImage => "not_an_image",
            Self::Unsupported { .. } => "unsupported",
            Self::Truncated { .. } => "truncated",
            Self::Damaged { .. } => "damaged",
            Self::TooManyBytes { .. } | Self::TooManyPixels { .. } | Self::TooMuchMemory { .. } => "too_large",
            Self::NoPixels { .. } => "no_pixels",
            Self::DecoderFailed { .. } => "decoder_failed",
            Self::WrongLength { .. } => "wrong_length",
        }
    }
}
