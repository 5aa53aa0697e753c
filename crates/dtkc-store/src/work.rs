//! Where a program keeps what is on its way to a store, or from one.

use std::io;
use std::path::{Path, PathBuf};

/// The folder for what is on its way: `DTKC_WORK_DIR`, else the place where the system keeps what programs need for the next
/// time, else that for temporary files.
pub fn root() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("DTKC_WORK_DIR")
        .or_else(|| set("XDG_STATE_HOME").map(|state| state.join("dtkc")))
        .or_else(|| std::env::home_dir().map(|home| home.join(".local/state/dtkc")))
        .unwrap_or_else(|| std::env::temp_dir().join("dtkc"))
}

/// The folder of one output: the same whenever it is asked for, so that a run that was interrupted is found again.
pub fn folder_of(url: &str) -> io::Result<PathBuf> {
    let name: String = last_part(url).chars().take(64).collect();
    let folder = root().join(format!("{name}-{:016x}", sum(url)));
    make(&folder)?;
    Ok(folder)
}

/// A new folder that goes away when it is dropped.
pub fn temporary() -> io::Result<tempfile::TempDir> {
    let root = root();
    make(&root)?;
    tempfile::Builder::new().prefix("transit-").tempdir_in(root)
}

fn make(folder: &Path) -> io::Result<()> {
    fs_err::create_dir_all(folder)
        .map_err(|error| io::Error::new(error.kind(), format!("{error}; choose another folder with DTKC_WORK_DIR")))
}

/// A name for a local copy of an object: its last part, without anything that a path could mean.
pub fn last_part(url: &str) -> String {
    let plain = if url.starts_with("http") { url.split(['?', '#']).next().unwrap_or_default() } else { url };
    let part = plain.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or_default();
    let fits = |c: char| if c.is_alphanumeric() || "-._ ()+,=@".contains(c) { c } else { '_' };
    let name: String = part.chars().map(fits).take(128).collect();
    match name.trim_matches(['.', ' ']).is_empty() || name.starts_with('.') {
        true => format!("object{name}"),
        false => name,
    }
}

/// The same in every version of this program: FNV-1a.
fn sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects_are_no_paths() {
        for (url, expected) in [
            ("s3://b/a/x.npy", "x.npy"),
            ("s3://b/a/..", "object.."),
            ("s3://b/a\\..\\x", "x"),
            ("s3://b/.hidden", "object.hidden"),
            ("https://h/a/x.tar?sig=a/b", "x.tar"),
            ("s3://b/a/x?y.npy", "x_y.npy"),
            ("s3://b/new\nline", "new_line"),
        ] {
            assert_eq!(last_part(url), expected, "{url}");
        }
        assert!(last_part(&format!("s3://b/{}", "x".repeat(5000))).len() <= 128);
    }

    #[test]
    fn an_output_has_one_folder() {
        assert_eq!(sum("s3://b/x"), sum("s3://b/x"));
        assert_ne!(sum("s3://b/x"), sum("s3://c/x"));
    }
}
