//! GIF: the first picture may be larger than the screen that it is drawn on.

use dtkc_item::ItemError;

use super::u16_at;
use crate::Limits;

/// Fails where the first picture is larger than allowed.
pub fn check(bytes: &[u8], limits: &Limits) -> Result<(), ItemError> {
    match first_picture(bytes) {
        Some((width, height)) if width > 0 && height > 0 => limits.check_size(width, height),
        _ => Ok(()),
    }
}

fn first_picture(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 13 + table(*bytes.get(10)?);
    loop {
        match bytes.get(at)? {
            0x21 => {
                at += 2;
                loop {
                    let length = usize::from(*bytes.get(at)?);
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
        assert_eq!(first_picture(&gif), Some((10_000, 20_000)));
        assert!(check(&gif, &Limits::default()).is_err_and(|error| error.code == "too_large"));
        assert!((0..gif.len()).all(|end| check(&gif[..end.min(30)], &Limits::default()).is_ok()));
    }
}
