//! PNG: what the decoder would unpack and nobody looks at is left out before it sees the file.

use std::borrow::Cow;

use super::u32_at;

const HEAD: usize = 8;
/// Length, kind and checksum of a chunk.
const FRAME: usize = 12;
/// Exif data in a JPEG cannot be larger than a segment; larger ones in a PNG are not worth their memory.
const LARGEST_EXIF: usize = 64 << 10;

/// The file without texts and colour profile. The decoder would unpack a profile of a few kilobytes to hundreds of
/// megabytes, and nobody looks at it.
pub fn without_ancillary(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut chunks = chunks(bytes);
    if chunks.all(|(kind, chunk)| is_kept(kind, chunk.len())) {
        return Cow::Borrowed(bytes);
    }
    let mut kept = Vec::with_capacity(bytes.len());
    kept.extend_from_slice(&bytes[..HEAD]);
    for (kind, chunk) in self::chunks(bytes) {
        if is_kept(kind, chunk.len()) {
            kept.extend_from_slice(chunk);
        }
    }
    Cow::Owned(kept)
}

/// How many chunks there are.
pub fn parts(bytes: &[u8]) -> usize {
    chunks(bytes).count()
}

/// Texts and profiles are the chunks of any length that a decoder reads besides pixels and Exif.
fn is_kept(kind: [u8; 4], length: usize) -> bool {
    match &kind {
        b"iCCP" | b"tEXt" | b"zTXt" | b"iTXt" => false,
        b"eXIf" => length <= LARGEST_EXIF + FRAME,
        _ => true,
    }
}

/// The chunks, each with its kind; the last one may be cut off.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = bytes.get(HEAD..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, kind) = (u32_at(rest, 0, true)?, rest.get(4..8)?.try_into().ok()?);
        let end = (length as usize).saturating_add(FRAME).min(rest.len());
        let chunk;
        (chunk, rest) = rest.split_at(end);
        Some((kind, chunk))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32).to_be_bytes()[..], kind, content, &[0; 4]].concat()
    }

    #[test]
    fn pixels_and_orientation_stay() {
        let head = b"\x89PNG\r\n\x1a\n".to_vec();
        let pixels = [chunk(b"IHDR", &[0; 13]), chunk(b"tRNS", &[1]), chunk(b"eXIf", &[2; 9])].concat();
        let end = [chunk(b"IDAT", &[3; 5]), chunk(b"IEND", &[])].concat();
        let plain = [&head[..], &pixels, &end].concat();
        assert!(matches!(without_ancillary(&plain), Cow::Borrowed(same) if same == plain));
        let around = [chunk(b"iCCP", &[4; 99]), chunk(b"zTXt", &[5; 9]), chunk(b"eXIf", &vec![6; 1 << 17])].concat();
        assert_eq!(without_ancillary(&[&head[..], &pixels, &around, &end].concat()), plain);
        // What is cut off stays cut off.
        let cut = &plain[..plain.len() - 3];
        assert_eq!(without_ancillary(&[&head[..], &around, &cut[8..]].concat()), cut);
        assert_eq!(without_ancillary(b"\x89PNG"), &b"\x89PNG"[..]);
    }
}
