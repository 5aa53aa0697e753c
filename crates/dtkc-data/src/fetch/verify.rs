//! Whether a file is what it should be.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::table::Check;
use crate::import::ImportError;

/// Whether a file passes its check. A packed file that cannot be unpacked does not.
pub fn matches(path: &Path, check: Check) -> Result<bool, ImportError> {
    match check {
        Check::AtLeast(bytes) => Ok(fs_err::metadata(path)?.len() >= bytes),
        Check::File(sum) => Ok(digest(fs_err::File::open(path)?).is_ok_and(|found| found == sum)),
        Check::Content(sum) => Ok(digest(dtkc_formats::stream::open(path)?).is_ok_and(|found| found == sum)),
    }
}

fn digest(mut reader: impl Read) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match reader.read(&mut buffer)? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf abc | sha256sum`
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn content_is_checked_packed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("a");
        std::fs::write(&plain, b"abc").unwrap();
        let packed = folder.path().join("a.gz");
        let bytes = dtkc_testing::files::gz(b"abc");
        std::fs::write(&packed, &bytes).unwrap();
        assert!(matches(&plain, Check::File(ABC)).unwrap() && matches(&plain, Check::Content(ABC)).unwrap());
        assert!(!matches(&packed, Check::File(ABC)).unwrap() && matches(&packed, Check::Content(ABC)).unwrap());
        std::fs::write(&packed, &bytes[..bytes.len() - 6]).unwrap();
        assert!(!matches(&packed, Check::Content(ABC)).unwrap());
        assert!(matches(&plain, Check::AtLeast(3)).unwrap() && !matches(&plain, Check::AtLeast(4)).unwrap());
    }
}
