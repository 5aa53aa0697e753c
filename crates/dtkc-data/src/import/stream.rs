//! Files as byte streams, unpacked on the way where they are compressed.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;

use super::ImportError;

/// Bytes asked from the operating system at a time.
const BUFFER: usize = 256 << 10;

/// A byte stream that may live in another thread.
pub type Stream = Box<dyn BufRead + Send>;

/// Opens a file; gzip and bzip2 are known by their first bytes, whatever the name says.
pub fn open(path: &Path) -> Result<Stream, ImportError> {
    let mut reader = BufReader::with_capacity(BUFFER, fs_err::File::open(path)?);
    let head = reader.fill_buf().map_err(|e| ImportError::read(path, e))?;
    Ok(if head.starts_with(&[0x1f, 0x8b]) {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(reader)))
    } else if head.starts_with(b"BZh") {
        Box::new(BufReader::with_capacity(BUFFER, MultiBzDecoder::new(reader)))
    } else {
        Box::new(reader)
    })
}

/// The first bytes of a file after unpacking; fewer than `wanted` where the file is shorter.
pub fn head(path: &Path, wanted: usize) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::with_capacity(wanted);
    let result = open(path)?.take(wanted as u64).read_to_end(&mut bytes);
    match result {
        Ok(_) => Ok(bytes),
        // Whoever asks only wants to know what the file is; the damage is reported by the one who reads it.
        Err(_) if !bytes.is_empty() => Ok(bytes),
        Err(error) => Err(ImportError::read(path, error)),
    }
}

/// Reads exactly `count` bytes without trusting `count`: memory grows only as data arrives.
pub fn read_exactly(reader: &mut dyn Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count.min(1 << 20));
    reader.take(count as u64).read_to_end(&mut bytes)?;
    if bytes.len() < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn content_decides_not_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(b"hello").unwrap();
        let mut bz = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bz.write_all(b"hello").unwrap();
        for (name, bytes) in [("a.gz", b"hello".to_vec()), ("b", gz.finish().unwrap()), ("c", bz.finish().unwrap())] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(head(&path, 100).unwrap(), b"hello", "{name}");
            assert_eq!(head(&path, 2).unwrap(), b"he", "{name}");
        }
    }

    #[test]
    fn a_false_length_costs_no_memory() {
        let error = read_exactly(&mut io::Cursor::new(b"abc"), usize::MAX / 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
