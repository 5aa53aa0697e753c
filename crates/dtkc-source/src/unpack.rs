//! Files as byte streams, unpacked on the way where they are compressed.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;

use crate::remote::File;

/// Bytes asked from the operating system at a time.
const BUFFER: usize = 256 << 10;

/// A byte stream that may live in another thread.
pub type Stream = Box<dyn BufRead + Send>;

/// How a file is compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// gzip, one or several members.
    Gzip,
    /// bzip2, one or several streams.
    Bzip2,
}

/// How a file that begins with `head` is compressed, whatever its name says.
pub fn packing(head: &[u8]) -> Packing {
    match head {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Packing::Bzip2,
        _ => Packing::Plain,
    }
}

/// Opens a file or an object as what is in it. Errors do not name the file: whoever reads it knows it.
pub fn open(path: &Path) -> io::Result<Stream> {
    let mut reader = BufReader::with_capacity(BUFFER, File::open(path)?);
    Ok(match packing(reader.fill_buf()?) {
        Packing::Gzip => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(reader))),
        Packing::Bzip2 => Box::new(BufReader::with_capacity(BUFFER, MultiBzDecoder::new(reader))),
        Packing::Plain => Box::new(reader),
    })
}

/// The first bytes of a file after unpacking; fewer than `wanted` where the file is shorter.
pub fn head(path: &Path, wanted: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(wanted);
    match open(path)?.take(wanted as u64).read_to_end(&mut bytes) {
        // Whoever asks only wants to know what the file is; the damage is reported by the one who reads it.
        Err(error) if bytes.is_empty() => Err(error),
        _ => Ok(bytes),
    }
}

/// Reads exactly `count` bytes without trusting `count`: memory grows only as data arrives.
pub fn read_exactly(reader: &mut dyn Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count.min(1 << 20));
    reader.take(count as u64).read_to_end(&mut bytes)?;
    if bytes.len() < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{bz2, gz};

    #[test]
    fn content_decides_not_the_name() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("a.gz", b"hello".to_vec()), ("b", gz(b"hello")), ("c", bz2(b"hello"))] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(head(&path, 100).unwrap(), b"hello", "{name}");
            assert_eq!(head(&path, 2).unwrap(), b"he", "{name}");
        }
        assert_eq!(head(&folder.path().join("gone"), 2).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn members_one_after_the_other_are_one_stream() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for pack in [gz, bz2] {
            std::fs::write(&path, [pack(b"hel"), pack(b"lo")].concat()).unwrap();
            assert_eq!(head(&path, 100).unwrap(), b"hello");
        }
    }

    #[test]
    fn a_false_length_costs_no_memory() {
        let error = read_exactly(&mut io::Cursor::new(b"abc"), usize::MAX / 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
