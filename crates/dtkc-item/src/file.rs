//! An item that is a file of its own.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::ItemError;

/// The bytes of an item that is a file of its own, at most `max_bytes`. Pipes and devices are not opened: reading them
/// may take for ever.
pub fn read_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, ItemError> {
    let meta = fs::metadata(path).map_err(ItemError::unreadable)?;
    if !meta.is_file() {
        return Err(ItemError::not_a_file());
    }
    ItemError::check_bytes(meta.len(), max_bytes)?;
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    let file = File::open(path).map_err(ItemError::unreadable)?;
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(ItemError::unreadable)?;
    // It may have grown meanwhile.
    ItemError::check_bytes(bytes.len() as u64, max_bytes)?;
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        fs::write(&path, [7; 10]).unwrap();
        assert_eq!(read_file(&path, 10).unwrap(), [7; 10]);
        assert_eq!(read_file(&path, 9).unwrap_err().code, "too_large");
        assert_eq!(read_file(&folder.path().join("b.png"), 9).unwrap_err().code, "unreadable");
        assert_eq!(read_file(folder.path(), 9).unwrap_err().code, "unreadable");
        #[cfg(unix)]
        assert!(read_file(Path::new("/dev/zero"), 9).unwrap_err().message.contains("device"));
    }
}
