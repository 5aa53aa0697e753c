//! How much memory the pages of a Parquet column take, from their headers: the library believes what these say, up to 2 GiB
//! for each, and makes room for it before it looks at the rest.
//!
//! A header is a struct of Thrift's compact protocol: 1 the kind of page, 2 its bytes when unpacked, 3 its bytes in the file.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// What the pages that are open at one time may take together when unpacked, one of each column.
pub const MAX_PAGES: u64 = 1 << 30;
/// No header is longer: it may hold the least and the greatest value.
const MAX_HEADER: u64 = 1 << 24;
/// Structs within structs.
const MAX_DEPTH: usize = 8;

/// The bytes of the largest page of a column when unpacked. The column lies at `start` and takes `length` bytes.
pub fn largest_page(file: impl Read + Seek, start: u64, length: u64) -> io::Result<u64> {
    let mut file = BufReader::with_capacity(4096, file);
    let (mut at, mut largest) = (start, 0);
    let end = start.checked_add(length).ok_or(io::ErrorKind::InvalidData)?;
    while at < end {
        file.seek(SeekFrom::Start(at))?;
        let mut header = Compact { bytes: (&mut file).take(MAX_HEADER.min(end - at)), read: 0 };
        let [unpacked, packed] = header.sizes()?;
        largest = largest.max(unpacked);
        at += header.read + packed;
    }
    Ok(largest)
}

/// A reader of the compact protocol that counts what it has read.
struct Compact<R> {
    bytes: R,
    read: u64,
}

impl<R: BufRead> Compact<R> {
    /// The second and third field of a page's header, read to its end.
    fn sizes(&mut self) -> io::Result<[u64; 2]> {
        let (mut sizes, mut id) = ([None; 2], 0i64);
        loop {
            let (delta, kind) = match self.byte()? {
                0 => break,
                head => (i64::from(head >> 4), head & 15),
            };
            id = if delta == 0 { self.number()? } else { id + delta };
            match (id, kind) {
                (2 | 3, 5) => sizes[(id - 2) as usize] = u64::try_from(self.number()?).ok(),
                _ => self.skip(kind, 0)?,
            }
        }
        match sizes {
            [Some(unpacked), Some(packed)] => Ok([unpacked, packed]),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
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
            12 => loop {
                match self.byte()? {
                    0 => return Ok(()),
                    head => {
                        if head >> 4 == 0 {
                            self.number()?;
                        }
                        self.skip(head & 15, depth + 1)?;
                    }
                }
            },
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
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A header: kind 0, those sizes, and a struct with a text in it.
    fn header(unpacked: u8, packed: u8) -> Vec<u8> {
        vec![0x15, 0, 0x15, unpacked * 2, 0x15, packed * 2, 0x2c, 0x18, 2, b'a', b'b', 0x11, 0, 0]
    }

    #[test]
    fn pages_are_walked_by_their_headers() {
        let column = [header(50, 3), vec![9; 3], header(60, 0), header(7, 1), vec![9]].concat();
        let file = [vec![1; 5], column.clone(), vec![2; 9]].concat();
        assert_eq!(largest_page(Cursor::new(file), 5, column.len() as u64).unwrap(), 60);
        // 2 GiB less one byte.
        let huge = [0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0, 0];
        assert_eq!(largest_page(Cursor::new(huge), 0, 11).unwrap(), i32::MAX as u64);
    }

    #[test]
    fn what_is_no_header_is_an_error() {
        let negative = [0x15, 0, 0x15, 1, 0x15, 0, 0];
        for bytes in [&[0][..], &[0x15], &[0x19, 0], &[0x18, 0xff, 0xff, 3], &negative, &[0x1c; 40]] {
            assert!(largest_page(Cursor::new(bytes), 0, bytes.len() as u64).is_err(), "{bytes:?}");
        }
        assert!(largest_page(Cursor::new([]), u64::MAX, 2).is_err());
    }
}
