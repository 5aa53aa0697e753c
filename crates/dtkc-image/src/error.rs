//! Why an image cannot be used, in one sentence each. The code is stable; the sentence may change.

use dtkc_item::ItemError;

/// No bytes at all.
pub fn empty() -> ItemError {
    ItemError::new("empty", "the file is empty")
}

/// The content is no image in a format that we know.
pub fn not_an_image() -> ItemError {
    let formats = "PNG, JPEG, GIF, BMP, WebP, TIFF, PNM";
    ItemError::new("not_an_image", format_args!("the content is not an image in a known format ({formats})"))
}

/// A format of phones and browsers that no decoder here reads.
pub fn not_read(format: &str) -> ItemError {
    let remedy = "save it as JPEG or PNG, with `heif-convert` for example, or build the program with --features heif";
    ItemError::new(
        "unsupported",
        format_args!("the file holds an image in the format {format}, which is not read; {remedy}"),
    )
}

/// A known format, but a variant of it that the decoder lacks; `reason` has the decoder's words.
pub fn unsupported(format: &str, reason: &str) -> ItemError {
    let remedy = "save it as an ordinary PNG or JPEG";
    ItemError::new("unsupported", format_args!("this kind of {format} is not supported ({reason}); {remedy}"))
}

/// Pixels that are neither gray nor RGB.
pub fn wrong_channels(channels: usize) -> ItemError {
    ItemError::new("unsupported", format_args!("images have 1 or 3 channels, not {channels}"))
}

/// The data ends too early.
pub fn truncated(format: &str) -> ItemError {
    ItemError::new("truncated", format_args!("the {format} data is cut off; copy or download the file again"))
}

/// The data breaks the format's rules; `reason` has the decoder's words.
pub fn damaged(format: &str, reason: &str) -> ItemError {
    let remedy = "copy or download the file again";
    ItemError::new("damaged", format_args!("the {format} data is damaged ({reason}); {remedy}"))
}

/// More pixels, or a longer side, than allowed. Found before decoding.
pub fn too_many_pixels(width: u32, height: u32, max_side: u32, max_pixels: u64) -> ItemError {
    let limit = format_args!("the limit of {max_side} per side and {max_pixels} in all");
    ItemError::new("too_large", format_args!("the image is {width}x{height} pixels, more than {limit}"))
}

/// Decoding would take more memory than the limits allow.
pub fn too_much_memory(format: &str, limit: u64) -> ItemError {
    let remedy = "save it with fewer bits or pixels";
    ItemError::new(
        "too_large",
        format_args!("the {format} image would take more than {limit} bytes to decode; {remedy}"),
    )
}

/// Decoding would go over the picture too often.
pub fn too_costly(pixels: u64, work: u64, most: u64) -> ItemError {
    let remedy = "save it as an ordinary PNG or as a JPEG that is not progressive";
    let sentence = format_args!(
        "decoding the image's {pixels} pixels would go over {work} in all, more than the limit of {most}; {remedy}"
    );
    ItemError::new("too_costly", sentence)
}

/// The file is cut into more pieces than any program would.
pub fn too_many_parts() -> ItemError {
    ItemError::new("too_costly", "the file is made of too many small parts; save it again with another program")
}

/// The image has no pixels.
pub fn no_pixels(width: u32, height: u32) -> ItemError {
    ItemError::new("no_pixels", format_args!("the image has no pixels ({width}x{height})"))
}

/// The decoder panicked; the panic was contained.
pub fn decoder_failed(format: &str) -> ItemError {
    let remedy = "save it again with another program";
    ItemError::new("decoder_failed", format_args!("the {format} decoder gave up on this file; {remedy}"))
}

/// A buffer given by the calling program has the wrong length.
pub fn wrong_length(what: &str, found: usize, expected: usize) -> ItemError {
    ItemError::new("wrong_length", format_args!("the {what} buffer has {found} bytes instead of {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs and people rely on these; a change must be one on purpose.
    #[test]
    fn codes_and_sentences_stay_what_they_are() {
        let told = |error: ItemError| format!("{}: {}", error.code, error.message);
        let expected = [
            (empty(), "empty: the file is empty"),
            (
                not_an_image(),
                "not_an_image: the content is not an image in a known format (PNG, JPEG, GIF, BMP, WebP, TIFF, PNM)",
            ),
            (
                not_read("HEIC"),
                "unsupported: the file holds an image in the format HEIC, which is not read; \
                 save it as JPEG or PNG, with `heif-convert` for example, or build the program with --features heif",
            ),
            (
                unsupported("PNG", "odd"),
                "unsupported: this kind of PNG is not supported (odd); save it as an ordinary PNG or JPEG",
            ),
            (truncated("GIF"), "truncated: the GIF data is cut off; copy or download the file again"),
            (damaged("BMP", "odd"), "damaged: the BMP data is damaged (odd); copy or download the file again"),
            (
                too_many_pixels(5, 4, 3, 12),
                "too_large: the image is 5x4 pixels, more than the limit of 3 per side and 12 in all",
            ),
            (
                too_much_memory("TIFF", 9),
                "too_large: the TIFF image would take more than 9 bytes to decode; save it with fewer bits or pixels",
            ),
            (
                too_costly(5, 9, 8),
                "too_costly: decoding the image's 5 pixels would go over 9 in all, more than the limit of 8; \
                 save it as an ordinary PNG or as a JPEG that is not progressive",
            ),
            (
                too_many_parts(),
                "too_costly: the file is made of too many small parts; save it again with another program",
            ),
            (no_pixels(0, 4), "no_pixels: the image has no pixels (0x4)"),
            (
                decoder_failed("WebP"),
                "decoder_failed: the WebP decoder gave up on this file; save it again with another program",
            ),
            (wrong_length("pixel", 1, 2), "wrong_length: the pixel buffer has 1 bytes instead of 2"),
            (ItemError::too_many_bytes(9, 8), "too_large: the file has 9 bytes, more than the limit of 8"),
        ];
        for (error, sentence) in expected {
            assert_eq!(told(error), sentence);
        }
    }
}
