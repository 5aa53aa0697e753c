//! How much memory the pages of a Parquet column take, from their headers: the library believes what these say, up to 2 GiB
//! for each, and makes room for it before it looks at the rest.
//!
//! A header is a struct of Thrift's compact protocol: 1 the kind of page, 2 its bytes when unpacked, 3 its bytes in the file,
//! 8 what there is to know about a page of the second version, in it 5 and 6 the bytes of its levels, which are never packed.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;

/// No header is longer: it may hold the least and the greatest value.
const MAX_HEADER: u64 = 1 << 24;
/// Structs within structs.
const MAX_DEPTH: usize = 8;

/// The bytes of the largest page of a column when unpacked. The column lies at `start` and takes `length` bytes. Pages that
/// are packed with gzip are unpacked once to see that they are no larger than they say: the library goes on to their end.
pub fn largest_page(file: impl Read + Seek, start: u64, length: u64, gzip: bool) -> io::Result<u64> {
    let mut file = BufReader::with_capacity(4096, file);
    let (mut at, mut largest) = (start, 0);
    let end = start.checked_add(length).ok_or(io::ErrorKind::InvalidData)?;
    while at < end {
        file.seek(SeekFrom::Start(at))?;
        let mut header = Compact { bytes: (&mut file).take(MAX_HEADER.min(end - at)), read: 0 };
        let Sizes { unpacked, packed, levels } = header.sizes()?;
        largest = largest.max(unpacked);
        at += header.read;
        if gzip {
            file.seek(SeekFrom::Start(at.saturating_add(levels)))?;
            check_gzip((&mut file).take(packed.saturating_sub(levels)), unpacked.saturating_sub(levels))?;
        }
        at = at.saturating_add(packed);
    }
    Ok(largest)
}

/// Refuses what unpacks to more than `claimed` bytes; other damage is found by whoever reads it.
fn check_gzip(packed: impl Read, claimed: u64) -> io::Result<()> {
    let mut unpacked = MultiGzDecoder::new(packed).take(claimed.saturating_add(1));
    match io::copy(&mut unpacked, &mut io::sink()) {
        Ok(bytes) if bytes > claimed => Err(io::Error::new(io::ErrorKind::InvalidData, "larger than it says")),
        _ => Ok(()),
    }
}

/// What a header says about memory.
struct Sizes {
    unpacked: u64,
    packed: u64,
    /// What lies before the packed part.
    levels: u64,
}

/// A reader of the compact protocol that counts what it has read.
struct Compact<R> {
    bytes: R,
    read: u64,
}

impl<R: BufRead> Compact<R> {
    /// The sizes in a page's header, which is read to its end.
    fn sizes(&mut self) -> io::Result<Sizes> {
        let (mut unpacked, mut packed, mut levels, mut id) = (None, None, 0u64, 0i64);
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (2, 5) => unpacked = u64::try_from(self.number()?).ok(),
                (3, 5) => packed = u64::try_from(self.number()?).ok(),
                (8, 12) => levels = self.levels()?,
                _ => self.skip(kind, 0)?,
            }
        }
        match (unpacked, packed) {
            (Some(unpacked), Some(packed)) => Ok(Sizes { unpacked, packed, levels }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// The bytes of the levels of a page of the second version.
    fn levels(&mut self) -> io::Result<u64> {
        let (mut levels, mut id) = (0u64, 0i64);
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (5 | 6, 5) => levels = levels.saturating_add(u64::try_from(self.number()?).unwrap_or(0)),
                _ => self.skip(kind, 1)?,
            }
        }
        Ok(levels)
    }

    /// The kind of the next field, whose number becomes `id`; `None` at the end of a struct.
    fn field(&mut self, id: &mut i64) -> io::Result<Option<u8>> {
        let (delta, kind) = match self.byte()? {
            0 => return Ok(None),
            head => (i64::from(head >> 4), head & 15),
        };
        *id = if delta == 0 { self.number()? } else { id.saturating_add(delta) };
        Ok(Some(kind))
    }

    /// Passes over a value of that kind.
    fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(io::ErrorKind::InvalidData.into());
        }
        match kind {
            // A flag is in the head of its field.
            1 | 2 => Ok(()),
            3 => self.byte().map(drop),
            4..=6 => self.number().map(drop),
            7 => self.pass(8),
            8 => {
                let length = self.varint()?;
                self.pass(length)
            }
            12 => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            // Headers of pages have no lists and no maps.
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.bytes.read_exact(&mut byte)?;
        self.read += 1;
        Ok(byte[0])
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    /// A number whose sign is its last bit.
    fn number(&mut self) -> io::Result<i64> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    fn pass(&mut self, length: u64) -> io::Result<()> {
        let passed = io::copy(&mut (&mut self.bytes).take(length), &mut io::sink())?;
        self.read += passed;
        if passed == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Cursor;

    use crate::testing::gz;

    use super::*;

    /// A header: kind 0, those sizes, and a struct with a text in it.
    fn header(unpacked: u8, packed: u8) -> Vec<u8> {
        vec![0x15, 0, 0x15, unpacked * 2, 0x15, packed * 2, 0x2c, 0x18, 2, b'a', b'b', 0x11, 0, 0]
    }

    #[test]
    fn pages_are_walked_by_their_headers() {
        let column = [header(50, 3), vec![9; 3], header(60, 0), header(7, 1), vec![9]].concat();
        let file = [vec![1; 5], column.clone(), vec![2; 9]].concat();
        assert_eq!(largest_page(Cursor::new(file), 5, column.len() as u64, false).unwrap(), 60);
        // 2 GiB less one byte.
        let huge = [0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0, 0];
        assert_eq!(largest_page(Cursor::new(huge), 0, 11, false).unwrap(), i32::MAX as u64);
    }

    #[test]
    fn what_is_no_header_is_an_error() {
        let negative = [0x15, 0, 0x15, 1, 0x15, 0, 0];
        for bytes in [&[0][..], &[0x15], &[0x19, 0], &[0x18, 0xff, 0xff, 3], &negative, &[0x1c; 40]] {
            assert!(largest_page(Cursor::new(bytes), 0, bytes.len() as u64, false).is_err(), "{bytes:?}");
        }
        assert!(largest_page(Cursor::new([]), u64::MAX, 2, false).is_err());
    }

    #[test]
    fn a_page_that_unpacks_to_more_than_it_says_is_refused() {
        let packed = gz(&[7; 60]);
        for (claimed, fits) in [(60, true), (59, false), (63, true)] {
            let page = [header(claimed, packed.len() as u8), packed.clone()].concat();
            let length = page.len() as u64;
            assert_eq!(largest_page(Cursor::new(page), 0, length, true).is_ok(), fits, "{claimed}");
        }
        // Version two: levels of two bytes and one byte lie before the packed part.
        let head = |claimed: u8| {
            let sizes = [0x15, 6, 0x15, (claimed + 3) * 2, 0x15, (packed.len() as u8 + 3) * 2];
            [&sizes[..], &[0x5c, 0x15, 2, 0x15, 0, 0x15, 2, 0x15, 0, 0x15, 4, 0x15, 2, 0, 0]].concat()
        };
        for (claimed, fits) in [(60, true), (59, false)] {
            let page = [head(claimed), vec![1, 2, 3], packed.clone()].concat();
            let length = page.len() as u64;
            assert_eq!(largest_page(Cursor::new(page), 0, length, true).is_ok(), fits, "{claimed}");
        }
    }
}
