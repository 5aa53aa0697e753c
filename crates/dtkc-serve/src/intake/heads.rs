//! The heads of a form's parts, without control bytes.
//!
//! The parser of heads gives up on the whole form where a name has one. Here they are exchanged on the way to it for a byte
//! that no text has, which later becomes the sign for what cannot be decoded. The content of parts is passed on as it is.

use actix_web::web::Bytes;

/// No UTF-8 has it.
const REPLACED: u8 = 0xff;

/// Follows a form from piece to piece.
#[derive(Debug)]
pub struct Heads {
    /// What ends the content of a part.
    delimiter: Vec<u8>,
    place: Place,
}

/// Where in the form the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In content, so many bytes of the delimiter before it.
    Content(usize),
    /// In the rest of the delimiter's line.
    Delimiter,
    /// In a head, so many bytes of its line before it.
    Head(usize),
}

impl Heads {
    /// A form whose parts are separated by `boundary`.
    pub fn new(boundary: &[u8]) -> Self {
        let delimiter = [b"\r\n--", boundary].concat();
        // The first one may stand at the very beginning.
        Self { delimiter, place: Place::Content(2) }
    }

    /// The next piece of the form. Copied only where something in it changes.
    pub fn clean(&mut self, piece: Bytes) -> Bytes {
        let mut changed: Option<Vec<u8>> = None;
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            if self.place == Place::Content(0) && byte != b'\r' {
                // Most of a form is content, and most of that begins no delimiter.
                at += piece[at..].iter().position(|&byte| byte == b'\r').unwrap_or(piece.len() - at);
                continue;
            }
            if matches!(self.place, Place::Head(_)) && is_control(byte) {
                changed.get_or_insert_with(|| piece.to_vec())[at] = REPLACED;
            }
            self.place = self.step(byte);
            at += 1;
        }
        changed.map_or(piece, Bytes::from)
    }

    fn step(&self, byte: u8) -> Place {
        match (self.place, byte) {
            (Place::Content(met), byte) if byte == self.delimiter[met] => {
                if met + 1 == self.delimiter.len() {
                    Place::Delimiter
                } else {
                    Place::Content(met + 1)
                }
            }
            // A delimiter has this byte in front and nowhere else.
            (Place::Content(_), byte) => Place::Content(usize::from(byte == b'\r')),
            (Place::Delimiter, b'\n') => Place::Head(0),
            (Place::Delimiter, _) => Place::Delimiter,
            (Place::Head(0), b'\n') => Place::Content(0),
            (Place::Head(_), b'\n') => Place::Head(0),
            (Place::Head(length), b'\r') => Place::Head(length),
            (Place::Head(length), _) => Place::Head(length + 1),
        }
    }
}

/// Whether it may not be in a head. Ends of lines may, and so may what is in other alphabets.
fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !b"\t\r\n".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORM: &[u8] = b"--b\r\nname: a\x00\x1b\x7fb\r\nother:\t\xe4\r\n\r\n\x00\x01\r\n-\r\n--\x02\r\r\n--b\r\n\r\n\x03\r\n--b\r\nlast: \x04\r\n\r\n\x05\r\n--b--\r\n";
    const CLEAN: &[u8] = b"--b\r\nname: a\xff\xff\xffb\r\nother:\t\xe4\r\n\r\n\x00\x01\r\n-\r\n--\x02\r\r\n--b\r\n\r\n\x03\r\n--b\r\nlast: \xff\r\n\r\n\x05\r\n--b--\r\n";

    fn clean<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut heads = Heads::new(b"b");
        pieces.flat_map(|piece| heads.clean(Bytes::copy_from_slice(piece))).collect()
    }

    #[test]
    fn heads_change_and_content_does_not() {
        for size in 1..=FORM.len() {
            assert_eq!(clean(FORM.chunks(size)), CLEAN, "in pieces of {size}");
        }
        assert_eq!(clean([b"before\x01\r\n", FORM].into_iter()), [b"before\x01\r\n", CLEAN].concat());
    }

    #[test]
    fn what_needs_no_change_is_not_copied() {
        let piece = Bytes::from_static(CLEAN);
        assert_eq!(Heads::new(b"b").clean(piece.clone()).as_ptr(), piece.as_ptr());
    }

    proptest! {
        /// Whatever comes, no byte is added or lost, and only control bytes change.
        #[test]
        fn nothing_is_lost(pieces in prop::collection::vec(prop::collection::vec(prop::sample::select(b"\r\n-b\x01x:".to_vec()), 0..30), 0..8)) {
            let whole = pieces.concat();
            let cleaned = clean(pieces.iter().map(Vec::as_slice));
            prop_assert_eq!(cleaned.len(), whole.len());
            prop_assert!(cleaned.iter().zip(&whole).all(|(new, old)| new == old || (*new == REPLACED && *old == 1)));
        }
    }
}
