//! GIF: the first picture may be larger than the screen that it is drawn on.

use super::u16_at;

/// What comes up to the first picture.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct First {
    /// Blocks before it.
    pub parts: usize,
    /// Its width and height, where it is there and not empty.
    pub size: Option<(u32, u32)>,
}

/// Looks for the first picture.
pub fn first(bytes: &[u8]) -> First {
    let mut found = First::default();
    found.size = look(bytes, &mut found.parts).filter(|&(width, height)| width > 0 && height > 0);
    found
}

fn look(bytes: &[u8], parts: &mut usize) -> Option<(u32, u32)> {
    let mut at = 13 + table(*bytes.get(10)?);
    loop {
        match bytes.get(at)? {
            0x21 => {
                at += 2;
                loop {
                    let length = usize::from(*bytes.get(at)?);
                    *parts += 1;
                    at += 1 + length;
                    if length == 0 {
                        break;
                    }
                }
            }
            0x2c => {
                let side = |from| u16_at(bytes, from, false).map(u32::from);
                return Some((side(at + 5)?, side(at + 7)?));
            }
            // Decoders skip nothing else, except bytes of no meaning one by one.
            0x00 => at += 1,
            _ => return None,
        }
    }
}

/// Bytes of a colour table, from the flags that announce it.
fn table(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_picture_is_found_behind_table_and_extensions() {
        let mut gif = b"GIF89a\x08\0\x08\0\x80\0\0".to_vec();
        gif.extend([0; 6]);
        gif.extend(b"\x21\xfe\x03abc\x02de\x00");
        gif.extend(b"\x2c\0\0\0\0\x10\x27\x20\x4e\x00");
        assert_eq!(first(&gif), First { parts: 3, size: Some((10_000, 20_000)) });
        assert!((0..gif.len() - 1).all(|end| first(&gif[..end]).size.is_none()));
    }
}
