//! WebP: pictures inside the file, and whether it is as long as it says.

use dtkc_item::ItemError;

use super::{u16_at, u32_at};
use crate::Limits;

/// False where the file is shorter than it says; its decoder would call the data corrupt. Fails where a picture inside
/// is larger than allowed, whatever size the file claims for itself.
pub fn check(bytes: &[u8], limits: &Limits) -> Result<bool, ItemError> {
    let Some(length) = u32_at(bytes, 4, false) else { return Ok(false) };
    if (bytes.len() as u64) < u64::from(length) + 8 {
        return Ok(false);
    }
    let mut animated = false;
    // What follows the announced end is not part of it.
    for (kind, content, whole) in chunks(bytes.get(12..length as usize + 8).unwrap_or_default()) {
        check_picture(kind, content, limits)?;
        if kind == b"ANMF" && !animated {
            // Only the first picture of an animation is decoded.
            animated = true;
            for (kind, content, _) in chunks(content.get(16..).unwrap_or_default()) {
                check_picture(kind, content, limits)?;
            }
        }
        if !whole {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How many chunks there are.
pub fn parts(bytes: &[u8]) -> usize {
    chunks(bytes.get(12..).unwrap_or_default()).count()
}

fn check_picture(kind: &[u8], content: &[u8], limits: &Limits) -> Result<(), ItemError> {
    match size(kind, content) {
        Some((width, height)) if width > 0 && height > 0 => limits.check_size(width, height),
        _ => Ok(()),
    }
}

fn size(kind: &[u8], content: &[u8]) -> Option<(u32, u32)> {
    match kind {
        b"VP8 " => {
            let side = |at| u16_at(content, at, false).map(|side| u32::from(side & 0x3fff));
            Some((side(6)?, side(8)?))
        }
        b"VP8L" => {
            let packed = u32_at(content, 1, false)?;
            Some(((packed & 0x3fff) + 1, ((packed >> 14) & 0x3fff) + 1))
        }
        _ => None,
    }
}

/// Kind and content of the chunks, and whether the content is all there.
fn chunks(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8], bool)> {
    std::iter::from_fn(move || {
        let length = u32_at(rest, 4, false)? as usize;
        let (head, behind) = rest.split_at(8);
        let whole = length <= behind.len();
        let content = &behind[..length.min(behind.len())];
        // Chunks lie at even places.
        rest = behind.get(length.saturating_add(length & 1)..).unwrap_or_default();
        Some((&head[..4], content, whole))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let odd = vec![0; content.len() & 1];
        [kind, &(content.len() as u32).to_le_bytes()[..], content, &odd].concat()
    }

    fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
        let content = [b"WEBP".to_vec(), chunks.concat()].concat();
        chunk(b"RIFF", &content)
    }

    #[test]
    fn a_large_picture_in_a_small_frame_is_found() {
        let limits = Limits::default();
        let frame = chunk(b"VP8X", &[0, 0, 0, 0, 27, 0, 0, 27, 0, 0]);
        let vp8 = |side: u16| {
            chunk(b"VP8 ", &[&[0, 0, 0, 0x9d, 1, 0x2a][..], &side.to_le_bytes(), &side.to_le_bytes()].concat())
        };
        let vp8l = chunk(b"VP8L", &[0x2f, 0xff, 0xff, 0xff, 0x0f]);
        let animated = |inner: &[u8]| chunk(b"ANMF", &[&[0; 16], inner].concat());
        assert!(check(&file(&[frame.clone(), vp8(28)]), &limits).unwrap());
        for large in [vp8(16_383), vp8l.clone(), animated(&vp8(16_383)), animated(&vp8l)] {
            let refused = check(&file(&[frame.clone(), large]), &limits).unwrap_err();
            assert_eq!(refused.code, "too_large");
        }
    }

    #[test]
    fn a_chunk_that_claims_more_than_there_is_means_cut_off() {
        let mut bytes = file(&[chunk(b"VP8L", &[0x2f, 0, 0, 0, 0]), chunk(b"EXIF", &[1; 8])]);
        assert!(check(&bytes, &Limits::default()).unwrap());
        let place = bytes.len() - 12;
        bytes[place..place + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(!check(&bytes, &Limits::default()).unwrap());
        assert!(!check(b"RIFF", &Limits::default()).unwrap());
    }
}
