//! Files that appear whole or not at all, and never in place of what is being read.
//!
//! A reader must never see half a dataset, model or checkpoint, whatever happens to the writer: [`Pending`]. Two
//! programs must not write the same file at once, and the second one should say who the first is: [`Lock`]. And an
//! output must not replace an input, however either of them is spelled: [`Sources`].

mod identity;
mod lock;
mod pending;
mod sources;

use std::io;
use std::path::Path;

pub use identity::Identity;
pub use lock::{Lock, LockError};
pub use pending::{Pending, is_leftover, remove, write};
pub use sources::{Refused, Sources, real, refuse_existing, refuse_twins};

/// Why something could not be written, with the remedy where there is one. The error must not name a file itself.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; free some space or choose another folder".into(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up; free some space or choose another folder".into(),
        io::ErrorKind::FileTooLarge => {
            "the file would be larger than the system allows; raise the limit or choose another folder".into()
        }
        io::ErrorKind::PermissionDenied => "this user may not write there; choose another folder".into(),
        _ => error.to_string(),
    }
}

/// The folder that a path lies in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_with_a_remedy() {
        let reason = |kind: io::ErrorKind| reason(&kind.into());
        assert_eq!(reason(io::ErrorKind::StorageFull), "the disk is full; free some space or choose another folder");
        assert!(reason(io::ErrorKind::PermissionDenied).ends_with("choose another folder"));
    }
}
