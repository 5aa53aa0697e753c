//! AVIF and HEIC, by the brand that such a file begins with. They are known so that a photo of a phone is told from a file
//! that is no image at all.

/// The name of the format; `None` for every other file.
pub fn known(bytes: &[u8]) -> Option<&'static str> {
    if bytes.get(4..8)? != b"ftyp" {
        return None;
    }
    let name = |brand: &[u8]| match brand {
        b"avif" | b"avis" => Some("AVIF"),
        b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" => Some("HEIC"),
        _ => None,
    };
    match bytes.get(8..12)? {
        // What they have in common says nothing about what is inside: the brands that follow do.
        b"mif1" | b"msf1" => {
            let length = usize::try_from(u32::from_be_bytes(*bytes.first_chunk()?)).ok()?;
            let others = bytes.get(16..length.min(bytes.len())).unwrap_or_default();
            Some(others.chunks_exact(4).find_map(name).unwrap_or("HEIF"))
        }
        brand => name(brand),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brands_are_told_apart() {
        assert_eq!(known(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"), Some("HEIC"));
        assert_eq!(known(b"\0\0\0\x18ftypmif1\0\0\0\0miafavif"), Some("AVIF"));
        assert_eq!(known(b"\0\0\0\x14ftypmif1\0\0\0\0miafavif"), Some("HEIF"), "brands end where the box does");
        assert_eq!(known(b"\0\0\0\x18ftypisom\0\0\0\0mp41avc1"), None, "a film");
        let whole = b"\xff\xff\xff\xffftypmif1\0\0\0\0heic";
        assert_eq!(known(whole), Some("HEIC"));
        assert!((0..12).all(|end| known(&whole[..end]).is_none()));
    }
}
